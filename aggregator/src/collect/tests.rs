mod late;
mod site;
mod steps;
mod texts;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use steward_common::intern::Names;
use steward_common::job::{AgentUse, NodeUse};
use steward_common::summary::row::Row;
use steward_common::summary::scope::Detail;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::Request;
use crate::archive::cells::whole;
use crate::archive::measured::measured;
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::{Day, Part, agent};
use crate::jobs::{Question, Whose};
use crate::keep::retention::Retention;
use crate::keep::{forget, rebuild, told};
use crate::source::slurm::sacct::Sacct;
use site::{Fault, SACCT, Site, Unwatched};

fn run(job: i64, name: &str, state: &str, open: bool) -> (i64, String, String, bool) {
    (job, name.to_owned(), state.to_owned(), open)
}

const TWO_BROKEN: &str = "5~5~ann~COMPLETED~100@~150@~200@~x~y~5\n\
                          6~6~bob~FAILED~100@~150@~300@~z~9~6\n\
                          7~7~bob~FAILED~100@~150@~300@~plain~7\n";
const TWO_BARE: &str = "5~5~ann~COMPLETED~100@~150@~200@~5\n6~6~bob~FAILED~100@~150@~300@~6\n";
const TWO_TEXTS: &str = r#"{"jobs":[{"job_id":5,"name":"x\u001fy","time":{"submission":100}},
                                   {"job_id":6,"name":"z\u001f9","time":{"submission":100}}]}"#;

#[test]
fn jobs_that_cannot_be_cut_are_asked_for_together() {
    let site = Site::new();
    site.write("window", TWO_BROKEN);
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (3, 0));
    assert_eq!((site.calls("bare"), site.calls("json")), (1, 1));
    let expected = [
        run(5, "x\x1fy", "COMPLETED", false),
        run(6, "z\x1f9", "FAILED", false),
        run(7, "plain", "FAILED", false),
    ];
    assert_eq!(site.runs(), expected);
    assert_eq!(site.collect(1001).runs, 0);
}

#[test]
fn a_failure_by_number_costs_those_jobs_only_and_they_come_later() {
    let site = Site::new();
    site.write("window", TWO_BROKEN);
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    site.write("fail", "");
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (1, 2));
    assert_eq!(site.runs(), [run(7, "plain", "FAILED", false)]);
    assert_eq!(site.forms(), ["short", "malformed", "malformed"]);
    // They are no longer in the time that is asked for.
    site.remove("fail");
    site.write("window", "");
    assert_eq!(site.collect(9000).runs, 2);
    assert_eq!(site.runs()[0], run(5, "x\x1fy", "COMPLETED", false));
    assert_eq!(site.runs().len(), 3);
    let asked = site.calls("bare");
    site.collect(9001);
    assert_eq!(site.calls("bare"), asked);
}

#[test]
fn a_run_that_can_be_cut_is_not_mended_with_another_one_of_its_job() {
    let site = Site::new();
    let good = "5~5~ann~REQUEUED~90@~95@~99@~good~5\n";
    site.write("window", &format!("{good}5~5~ann~COMPLETED~100@~150@~200@~x~y~5\n"));
    site.write("bare", "5~5~ann~REQUEUED~90@~95@~99@~5\n5~5~ann~COMPLETED~100@~150@~200@~5\n");
    site.write("json", TWO_TEXTS);
    assert_eq!(site.collect(1000).runs, 2);
    assert_eq!(site.forms(), ["short", "mended"]);
    assert_eq!(site.collect(1001).runs, 0);
    assert_eq!(site.forms(), ["short", "mended"]);
}

#[test]
fn a_run_that_has_ended_is_not_asked_for_by_number() {
    let site = Site::new();
    site.write("window", "5~5~ann~RUNNING~100@~150@~Unknown~a~5\n");
    site.collect(1000);
    assert_eq!(site.runs(), [run(5, "a", "RUNNING", true)]);
    site.write("window", "5~5~ann~COMPLETED~100@~150@~1100@~a~5\n");
    site.collect(1200);
    assert_eq!(site.runs(), [run(5, "a", "COMPLETED", false)]);
    assert_eq!(site.calls("jobs"), 0);
}

#[test]
fn a_run_that_vanished_and_cannot_be_cut_is_mended() {
    let site = Site::new();
    site.write("window", "5~5~ann~RUNNING~100@~150@~Unknown~a~5\n");
    site.collect(1000);
    site.write("window", "");
    site.write("jobs", "5~5~ann~COMPLETED~100@~150@~200@~x~y~5\n");
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    site.collect(1200);
    assert_eq!(site.runs(), [run(5, "x\x1fy", "COMPLETED", false)]);
}

#[test]
fn a_run_that_vanished_while_sacct_fails_stays_as_it_was() {
    let site = Site::new();
    site.write("window", "5~5~ann~RUNNING~100@~150@~Unknown~a~5\n");
    site.collect(1000);
    site.write("window", "");
    site.write("fail", "");
    site.collect(1200);
    assert_eq!(site.runs(), [run(5, "a", "RUNNING", true)]);
    // The days in which it ran are not final.
    assert_eq!(site.archive().manifest().unwrap().clusters["c1"].open_since, Some(150));
    site.remove("fail");
    site.write("jobs", "5~5~ann~COMPLETED~100@~150@~200@~a~5\n");
    site.collect(1300);
    assert_eq!(site.runs(), [run(5, "a", "COMPLETED", false)]);
}

#[test]
fn text_that_cannot_be_read_is_counted_and_kept_once() {
    let site = Site::new();
    let odd = "x~x~ann~FAILED~100@~150@~200@~a~x\n";
    site.write("window", &format!("what is this\n{odd}7~7~bob~FAILED~100@~150@~300@~b~7\n"));
    assert_eq!(site.collect(1000).malformed, 2);
    assert_eq!(site.collect(1001).malformed, 0);
    assert_eq!(site.forms().iter().filter(|form| **form == "malformed").count(), 2);
    assert_eq!(site.archive().manifest().unwrap().clusters["c1"].malformed, 2);
}

#[test]
fn text_behind_a_row_is_counted_and_kept_and_the_job_is_too() {
    let site = Site::new();
    let good = "7~7~bob~FAILED~100@~150@~300@~b~7\n";
    let cut = "8~8~bob~FAILED~Unknown~150@~300@~c~8\n";
    site.write("window", &format!("{good}what is this\n{}{cut}", good.replace('7', "9")));
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (2, 2));
    assert_eq!(site.runs(), [run(7, "b", "FAILED", false), run(9, "b", "FAILED", false)]);
    let kept = ["what is this\n".to_owned(), cut.replace('~', "\x1f").replace('@', "")];
    assert_eq!(site.malformed(), kept);
    let examples = collected.examples.join(" ");
    assert!(examples.contains("no row: \"what is this\\n\""), "{examples}");
    // Neither job had to be asked for again.
    assert_eq!((site.calls("bare"), site.collect(1001).malformed), (0, 0));
}

#[test]
fn text_behind_every_answer_costs_no_job() {
    let site = Site::new();
    let footer = "-- the wrapper says goodbye\n";
    site.write("window", &format!("{TWO_BROKEN}{footer}"));
    site.write("bare", &format!("{TWO_BARE}{footer}"));
    site.write("json", TWO_TEXTS);
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (3, 1));
    assert_eq!((site.runs().len(), site.malformed()), (3, vec![footer.to_owned()]));
}

#[test]
fn a_row_that_was_cut_short_is_kept_though_its_job_is_found() {
    let site = Site::new();
    site.write("window", "5~5~ann~COMPLETED~100@\n7~7~bob~FAILED~100@~150@~300@~b~7\n");
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (2, 1));
    assert_eq!(site.runs()[0], run(5, "x\x1fy", "COMPLETED", false));
    assert_eq!(site.malformed(), ["5\x1f5\x1fann\x1fCOMPLETED\x1f100\n"]);
}

#[test]
fn what_may_be_a_name_is_asked_for_and_kept_if_it_is_none() {
    let site = Site::new();
    // Either the job has a name of two lines, or a row without a time of its own follows it.
    let rest = "5~5~ann~FAILED~Unknown~150@~200@~again~5\n";
    site.write("window", &format!("5~5~ann~COMPLETED~100@~150@~200@~x~5\n{rest}"));
    site.write("bare", TWO_BARE);
    let rest = rest.replace('~', "\x1f").replace('@', "");
    let forged = format!("x\x1f5\n{}", rest.trim_end_matches("\x1f5\n"));
    for (name, kept) in [(forged.as_str(), vec![]), ("x", vec![rest.clone()])] {
        let name = serde_json::Value::from(name);
        let json =
            format!(r#"{{"jobs":[{{"job_id":5,"name":{name},"time":{{"submission":100}}}}]}}"#);
        site.write("json", &json);
        let again = Site::new();
        for file in ["window", "bare", "json"] {
            again.write(file, &fs::read_to_string(site.path(file)).unwrap());
        }
        assert_eq!(again.collect(1000).malformed, kept.len() as u64);
        assert_eq!(again.runs(), [run(5, name.as_str().unwrap(), "COMPLETED", false)]);
        assert_eq!(again.malformed(), kept);
    }
}

#[test]
fn text_that_several_days_give_is_kept_once() {
    let site = Site::new();
    site.write("window", "what is this\n7~7~bob~FAILED~100@~150@~300@~b~7\n");
    let collected = site.collect(300_000);
    assert_eq!((collected.days, collected.malformed), (4, 1));
    assert_eq!(collected.examples.len(), 1, "{:?}", collected.examples);
    assert_eq!(site.malformed(), ["what is this\n"]);
}

#[test]
fn a_greeting_before_an_answer_without_jobs_is_kept_and_nothing_fails() {
    let site = Site::new();
    site.write("window", "welcome to login1\n");
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (0, 1));
    assert_eq!(site.malformed(), ["welcome to login1\n"]);
}

#[test]
fn text_between_the_rows_of_a_job_is_none_of_it() {
    let site = Site::new();
    let (own, step) = (
        "7~7~bob~RUNNING~100@~150@~Unknown~b~7\n",
        "7.0~7.0~bob~RUNNING~100@~150@~Unknown~s~7.0\n",
    );
    site.write("window", &format!("{own}at noon\n{step}"));
    assert_eq!(site.collect(1000).runs, 1);
    // Other text, or none, changes nothing of it.
    for between in ["at one\n", ""] {
        site.write("window", &format!("{own}{between}{step}"));
        assert_eq!(site.collect(1001).runs, 0, "{between:?}");
    }
    let kept: BTreeSet<String> = site.malformed().into_iter().collect();
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), ["at noon\n", "at one\n"]);
}

#[test]
fn what_a_failed_call_showed_is_not_counted() {
    let site = Site::new();
    // The second call, for the cancelled, fails the first time.
    let once = "[ $answer = window ] && [ $(grep -c ^window calls) = 2 ] && exit 1\n[ -e $answer ]";
    site.write("sacct", &SACCT.replace("[ -e $answer ]", once));
    site.write("window", "what is this\n7~7~bob~FAILED~100@~150@~300@~b~7\n");
    let collected = site.collect_as(&Request { retries: 1, ..site.request(1000) });
    // One row, though both answers have it.
    assert_eq!((collected.rows, collected.runs, collected.malformed), (1, 1, 1));
    assert_eq!(site.calls("window"), 4);
}

#[test]
fn without_raw_no_text_is_kept() {
    let site = Site::new();
    site.write("window", &format!("what is this\n{TWO_BROKEN}"));
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    let collected = site.collect_as(&Request { raw: false, ..site.request(1000) });
    assert_eq!((collected.runs, collected.malformed), (3, 1));
    assert!(site.forms().is_empty());
}

#[test]
fn text_about_somebody_who_is_forgotten_is_not_kept() {
    let site = Site::new();
    site.write("window", "7~7~bob~FAILED~100@~150@~300@~b~7\n");
    site.collect(1000);
    let (archive, now) = (site.archive(), Timestamp::new(1000));
    let order = forget::Order { user: "bob", cluster: None, now, stop: &|| false };
    forget::run(&archive, archive.lock(Duration::from_secs(30), || {}).unwrap(), &order).unwrap();
    site.write("window", "7~7~bob~FAILED~100@~150@~300@~b~x~7\nx~x~bob~FAILED~1@~1@~2@~a~x\n");
    site.write("fail", "");
    assert_eq!(site.collect(1001).malformed, 0);
    assert!(site.forms().is_empty());
}

#[test]
fn rows_of_somebody_who_is_forgotten_are_not_shown_before_files_are_in_their_places() {
    let site = Site::new();
    site.write("window", "7~7~bob~FAILED~100@~150@~300@~b~7\n8~8~ann~FAILED~1@~1@~2@~a~8\n");
    site.collect(1000);
    let (archive, now) = (site.archive(), Timestamp::new(1000));
    let shown = |job| told::told(&archive, None, job).unwrap().len();
    assert_eq!((shown(7), shown(8)), (1, 1));
    *site.1.2.lock().unwrap() = Some(Fault::Rename);
    let order = forget::Order { user: "bob", cluster: None, now, stop: &|| false };
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    forget::run(&archive, lock, &order).map(|_| ()).unwrap_err();
    assert_eq!((shown(7), shown(8)), (0, 1));
    *site.1.2.lock().unwrap() = None;
    site.write("window", "");
    site.collect(1001);
    assert_eq!((shown(7), shown(8)), (0, 1));
}

/// Two jobs, of which the second ended three days after the first.
fn two_days() -> Site {
    let site = Site::new();
    site.write("window", "5~5~ann~FAILED~100@~150@~200@~a~5\n");
    site.collect(1000);
    site.opened();
    site.write("window", "9~9~ann~FAILED~259300@~259400@~259500@~b~9\n");
    site.collect(260_000);
    site
}

#[test]
fn files_without_runs_of_the_jobs_that_are_new_are_not_opened() {
    let site = two_days();
    assert!(!site.opened().contains("1970-01-01.parquet"));
    // A second run of the first job.
    site.write("window", "5~5~ann~FAILED~259900@~260000@~260100@~a~5\n");
    site.collect(260_200);
    assert!(site.opened().contains("1970-01-01.parquet"));
    let archive = site.archive();
    let day = "1970-01-04".parse().unwrap();
    let entry = archive.manifest().unwrap().clusters["c1"].days[&day];
    assert_eq!(entry.jobs, Some((5, 9)));
    let table = archive.open("c1", Part::Day(day), entry).unwrap().unwrap();
    let batch = table.batches(None, false).unwrap().next().unwrap().unwrap();
    let ranks: Vec<_> = whole(&batch, "job_id_raw").zip(whole(&batch, "restart")).collect();
    assert!(ranks.contains(&(Some(5), Some(1))) && ranks.contains(&(Some(9), Some(0))));
}

#[test]
fn files_are_opened_when_they_are_read() {
    let site = two_days();
    let archive = site.archive();
    site.opened();
    let none = Vec::new;
    let question = Question {
        whose: Whose::All,
        from: 0,
        to: 300_000,
        states: none(),
        accounts: none(),
        partitions: none(),
        clusters: none(),
        name: None,
        job_id: None,
        limit: 1,
    };
    assert_eq!(archive.jobs(&question).unwrap().runs.len(), 1);
    assert_eq!(site.opened(), BTreeSet::from(["1970-01-04.parquet".to_owned()]));
    // Of one job only files that may have it.
    for (job, file) in [("5", Some("1970-01-01.parquet")), ("77", None), ("9999999999", None)] {
        let question = Question { job_id: Some(job.to_owned()), limit: 0, ..question.clone() };
        let found = archive.jobs(&question).unwrap().runs.len();
        assert_eq!(found, usize::from(file.is_some()), "{job}");
        let expected: BTreeSet<String> = file.map(str::to_owned).into_iter().collect();
        assert_eq!(site.opened(), expected, "{job}");
    }
    let window = Window::new(Timestamp::new(0), Timestamp::new(300_000)).unwrap();
    let manifest = archive.manifest().unwrap();
    let (mut seen, mut names) = (Vec::new(), Names::default());
    let all = archive.rows(&manifest, window, None, Detail::All, &mut names, &mut |rows, _| {
        seen.push((rows.len(), site.opened().len()));
    });
    assert_eq!((all.unwrap(), seen), (true, vec![(1, 1), (1, 1)]));
}

#[test]
fn those_that_may_never_have_run_are_asked_for_by_their_state() {
    let site = Site::new();
    site.collect(1000);
    let calls = fs::read_to_string(site.path("calls")).unwrap();
    assert!(calls.contains(" --state=CANCELLED,DEADLINE"), "{calls}");
}

#[test]
fn other_clusters_of_a_federation_are_not_asked_for() {
    let site = Site::new();
    site.write("window", TWO_BROKEN);
    site.collect(1000);
    let calls = fs::read_to_string(site.path("calls")).unwrap();
    assert!(calls.lines().count() >= 3 && calls.lines().all(|call| call.contains(" --local")));
    let named = Sacct::new(
        &["sh".to_owned(), site.path("sacct").display().to_string()],
        Some("c1".parse().unwrap()),
        Duration::from_secs(60),
        Arc::new(|| false),
    );
    fs::remove_file(site.path("calls")).unwrap();
    site.collect_as(&Request { sacct: named, ..site.request(1001) });
    let calls = fs::read_to_string(site.path("calls")).unwrap();
    assert!(calls.lines().all(|call| call.contains(" --clusters=c1") && !call.contains("--local")));
}

#[test]
fn a_failure_after_the_change_says_that_it_is_kept() {
    for fault in [Fault::Rename, Fault::Manifest] {
        let site = Site::new();
        site.write("window", "7~7~bob~FAILED~100@~150@~300@~b~7\n");
        *site.1.2.lock().unwrap() = Some(fault);
        let error = site.try_collect(&site.request(1000)).unwrap_err();
        assert!(error.is_kept(), "{error}");
        assert!(error.to_string().contains("the disk is gone; all of it is kept"), "{error}");
        assert_eq!(site.runs(), [run(7, "b", "FAILED", false)]);
        *site.1.2.lock().unwrap() = None;
        assert_eq!(site.collect(1001).runs, 0);
        assert_eq!(site.runs(), [run(7, "b", "FAILED", false)]);
    }
}

#[test]
fn a_file_of_runs_that_never_began_is_not_read_for_an_earlier_time() {
    let site = Site::new();
    site.write("window", "7~7~bob~CANCELLED~259300@~None~259500@~b~7\n");
    site.collect(260_000);
    let archive = site.archive();
    let window = Window::new(Timestamp::new(0), Timestamp::new(86_400)).unwrap();
    let (mut seen, mut names) = (0, Names::default());
    let manifest = archive.manifest().unwrap();
    let add = &mut |rows: &[Row], _: &Names| seen += rows.len();
    archive.rows(&manifest, window, None, Detail::All, &mut names, add).unwrap();
    assert_eq!(seen, 0);
}

#[test]
fn what_agents_measured_outlasts_rows_that_change_while_prometheus_is_silent() {
    let site = Site::new();
    site.write("window", "7~7~bob~FAILED~100@~150@~300@~b~7\n");
    site.collect(1000);
    let node = NodeUse {
        node: "n1".to_owned(),
        cpu_seconds: Some(1.5),
        peak_memory_bytes: Some(4096),
        gpus: Some(2),
    };
    let agent = AgentUse {
        nodes: vec![node],
        gpu_seconds: None,
        read_bytes: Some(7),
        written_bytes: Some(8),
        coverage: Some(0.5),
    };
    // As a collection with Prometheus would have left it.
    let (archive, now) = (site.archive(), Timestamp::new(1000));
    let mut change = archive.change(archive.lock(Duration::from_secs(30), || {}).unwrap()).unwrap();
    let scratch = archive.shelf().scratch().unwrap();
    let mut raw = RawWriter::new(scratch, change.generation(), "JobIDRaw", now).unwrap();
    let (submit, end) = (Some(Timestamp::new(100)), Some(Timestamp::new(300)));
    let key = Key { job: Some(7), submit, end, step: None };
    raw.push(key, Form::Agent, agent::write(&agent).unwrap().as_bytes()).unwrap();
    let name = change.raw_name("c1", Day::of(now), "0000");
    archive.shelf().put(raw.finish().unwrap(), &name).unwrap();
    let stop = || false;
    let retention = Retention::default();
    let order = rebuild::Order { cluster: None, now, retention, stop: &stop };
    rebuild::cluster(&archive, "c1", &order, &mut change, &Unwatched).unwrap();
    change.commit().unwrap();
    site.write("window", "7~7~bob~FAILED~100@~150@~300@~another~7\n");
    assert_eq!(site.collect(1001).runs, 1);
    assert_eq!(site.runs(), [run(7, "another", "FAILED", false)]);
    let entry = archive.manifest().unwrap().clusters["c1"].days[&Day::of(now)];
    let table = archive.open("c1", Part::Day(Day::of(now)), entry).unwrap().unwrap();
    assert_eq!(measured(&table).unwrap()[&(7, Timestamp::new(100))], agent);
    // It is not kept as if it had been measured again.
    assert_eq!(site.forms().iter().filter(|form| **form == "agent").count(), 1);
}
