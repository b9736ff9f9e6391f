//! Reports of an archive that was collected from a made-up sacct.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;
use steward_common::intern::Names;
use steward_common::slurm::duration;

use super::*;
use crate::analyze::groups::GroupSource;
use crate::analyze::options::Options;
use crate::analyze::{Analysis, Setting};
use crate::archive::shelf::Directory;
use crate::collect::plan::Terms;
use crate::collect::{self, Request, Watch};
use crate::command;
use crate::keep::retention::Retention;
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::source::slurm::sacct::Sacct;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The present.
const NOW: i64 = 30 * DAY + 12 * HOUR;

/// Answers with the file `window` beside it, in which `~` is a delimiter and `@` the end of a time.
const SACCT: &str = r#"#!/bin/sh
cd "${0%/*}" || exit 1
case "$*" in
*--helpformat*) echo JobIDRaw JobID User Account Partition QOS State Submit Start End ElapsedRaw \
    AllocCPUS AllocNodes NodeList AllocTRES TotalCPU JobName; exit ;;
*--json*) exit ;;
esac
sed "s/~/$(printf '\037')/g; s/@/${SLURM_TIME_FORMAT#%s}/g" window
"#;

const SCONTROL: &str = r#"
case "$*" in
*"show config"*) echo "ClusterName = c1" ;;
*"show nodes"*) echo '{"nodes": []}' ;;
*) exit 1 ;;
esac
"#;

/// Answers with the file `queue` beside it, if there is one.
const SQUEUE: &str = r#"cat "${0%/*}/queue""#;

struct Quiet;

impl Watch for Quiet {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

/// A job as sacct tells of it.
#[derive(Clone)]
struct Row {
    user: &'static str,
    place: (&'static str, &'static str),
    state: &'static str,
    start: i64,
    hours: f64,
    cpus: u32,
    gpus: u32,
    billing: Option<u32>,
    /// Used of the CPU time held.
    used: f64,
    name: &'static str,
}

fn row(user: &'static str, start: i64, hours: f64, cpus: u32) -> Row {
    let (place, state, name) = (("main", "x"), "COMPLETED", "n");
    Row { user, place, state, start, hours, cpus, gpus: 0, billing: Some(cpus), used: 0.9, name }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    for (id, row) in (1..).zip(rows) {
        let seconds = (row.hours * 3600.0).round() as i64;
        let end = if row.state == "RUNNING" {
            "Unknown".to_owned()
        } else {
            format!("{}@", row.start + seconds)
        };
        let used = (row.used * seconds as f64 * f64::from(row.cpus)).round() as u64;
        let total = duration::format(Duration::from_secs(used));
        let billing = row.billing.map_or(String::new(), |billing| format!("billing={billing},"));
        let Row { user, place: (partition, account), state, start, cpus, gpus, name, .. } = row;
        text += &format!(
            "{id}~{id}~{user}~{account}~{partition}~normal~{state}~{start}@~{start}@~{end}~{seconds}\
             ~{cpus}~1~n1~{billing}cpu={cpus},gres/gpu={gpus},node=1~{total}~{name}~{id}\n"
        );
    }
    text
}

struct Site {
    directory: tempfile::TempDir,
    archive: Archive,
    config: Arc<Config>,
    stop: Shutdown,
}

impl Site {
    fn new(rows: &[Row], settings: &str) -> Site {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("sacct"), SACCT).unwrap();
        fs::write(path("window"), text(rows)).unwrap();
        let shelf = Arc::new(Directory::new(&path("archive")));
        let archive = Archive::new(shelf, path("lock"));
        // By the shell: a file just written may be open for writing in a child of another test.
        let argv = ["sh".to_owned(), path("sacct").display().to_string()];
        let hour = Duration::from_secs(3600);
        let terms = Terms {
            now: Timestamp::new(NOW),
            since: Timestamp::new(NOW - 20 * DAY),
            overlap: hour,
            grace: hour,
        };
        let request = Request {
            cluster: "c1".to_owned(),
            sacct: Sacct::new(&argv, None, 10 * hour, Arc::new(|| false)),
            terms,
            parallel: 1,
            retries: 0,
            raw: true,
            agents: None,
            retention: Retention::default(),
            sacctmgr: None,
            stop: Arc::new(|| false),
        };
        let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
        collect::run(&archive, lock, &request, &Quiet).unwrap();
        for (name, script) in [("scontrol", SCONTROL), ("squeue", SQUEUE)] {
            fs::write(path(name), script).unwrap();
        }
        let slurm = ["scontrol", "squeue"]
            .map(|name| format!("{name} = [\"sh\", \"{}\"]\n", path(name).display()));
        let settings = format!("[slurm]\n{}{settings}", slurm.concat());
        let config = Arc::new(toml::from_str(&settings).unwrap());
        let (_, stop) = crate::shutdown::channel();
        Site { directory, archive, config, stop }
    }

    fn question(name: &str) -> Question {
        Question {
            name: name.to_owned(),
            window: Window::new(Timestamp::new(23 * DAY), Timestamp::new(NOW)).unwrap(),
            now: Timestamp::new(NOW),
            clusters: Vec::new(),
            partitions: Vec::new(),
            waited: Duration::from_secs(3 * 86_400),
            jobs: false,
            live: false,
        }
    }

    fn ask(&self, question: &Question) -> anyhow::Result<Document> {
        let desk = Desk {
            config: &self.config,
            archive: &self.archive,
            zone: TimeZone::UTC,
            shutdown: &self.stop,
        };
        let mut troubles = Vec::new();
        let document = desk.document(question, &mut troubles);
        // A scontrol without partitions is none of these tests' business.
        troubles.retain(|trouble| !trouble.what.contains("partitions"));
        assert!(document.is_err() || troubles.is_empty(), "{troubles:?}");
        document
    }

    fn json(&self, question: &Question) -> Value {
        let document = self.ask(question).unwrap();
        serde_json::from_str(&format::write(&document, Format::Json, Screen::file(), None)).unwrap()
    }

    fn shown(&self, name: &str) -> String {
        let document = self.ask(&Site::question(name)).unwrap();
        format::write(&document, Format::Table, Screen::file(), None)
    }
}

fn near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or(f64::NAN);
    assert!((found - expected).abs() < 1e-6 * expected.max(1.0), "{value} instead of {expected}");
}

/// A week with jobs over its borders, one that runs, and names that are up to no good.
fn week() -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, user) in ["ann", "bob", "cy"].into_iter().cycle().take(30).enumerate() {
        let n = i64::try_from(n).unwrap();
        let place = if n % 2 == 0 { ("main", "x") } else { ("gpu", "y") };
        let gpus = u32::from(n % 2 == 1) * 2;
        rows.push(Row { place, gpus, ..row(user, 22 * DAY + n * 5 * HOUR, 11.5, 4) });
    }
    rows.push(row("long", 15 * DAY, 15.0 * 24.0, 2));
    rows.push(Row { state: "RUNNING", used: 0.0, ..row("now", NOW - 6 * HOUR, 6.0, 8) });
    rows.push(Row { state: "FAILED", name: "=cmd|'x'", ..row("\u{1b}[2Jeve", 29 * DAY, 1.0, 1) });
    rows
}

/// The same jobs, window and sums: hours of jobs over the border are divided, and a job that runs
/// counts up to its collection.
#[test]
fn the_sums_are_those_of_analyze() {
    let site = Site::new(&week(), "");
    let setting = Setting {
        zone: TimeZone::UTC,
        now: jiff::Timestamp::from_second(NOW).unwrap(),
        groups: GroupSource::Accounts,
        nodes: HashMap::new(),
        screen: Screen::file(),
    };
    let mut analysis = Analysis::new(Options::of_days(7, None), setting).unwrap();
    let (window, mut names) = (analysis.window(), Names::default());
    let manifest = site.archive.manifest().unwrap();
    let detail = analysis.detail();
    let mut add = |rows: &[_], names: &Names| analysis.add(rows, names);
    assert!(site.archive.rows(&manifest, window, None, detail, &mut names, &mut add).unwrap());
    let report = analysis.report(&names).unwrap();
    let question = |name| Question { window, ..Site::question(name) };
    let overview = site.json(&question("usage-overview"));
    let total = &overview["clusters"][0];
    near(&total["cpu_hours"], report.total.tally.cpu.reserved);
    near(&total["gpu_hours"], report.total.tally.gpu.reserved);
    near(&total["users"], 6.0);
    near(&total["cpu_hours_percent"], 100.0);
    for line in &report.partitions {
        let rows = overview["partitions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["partition"] == line.name.as_str()).unwrap();
        near(&row["cpu_hours"], line.tally.cpu.reserved);
        near(&row["gpu_hours"], line.tally.gpu.reserved);
        near(&row["jobs"], line.tally.jobs as f64);
    }
    let users = site.json(&question("jobs-overview"));
    assert_eq!(users["users"].as_array().unwrap().len(), report.users.len());
    for line in &report.users {
        let rows = users["users"].as_array().unwrap();
        let row = rows.iter().find(|row| row["user"] == line.name.as_str()).unwrap();
        near(&row["cpu_hours"], line.tally.cpu.reserved);
    }
    // 15 days of which 7 are in it; 6 hours up to now.
    let hours = |user: &str| {
        let rows = users["users"].as_array().unwrap();
        rows.iter().find(|row| row["user"] == user).unwrap()["cpu_hours"].clone()
    };
    near(&hours("long"), 2.0 * 7.0 * 24.0);
    near(&hours("now"), 8.0 * 6.0);
}

#[test]
fn programs_find_the_keys_that_are_documented() {
    let site = Site::new(&week(), "");
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
    };
    let answer = site.json(&Site::question("usage-overview"));
    assert_eq!(answer["report"], "usage-overview");
    near(&answer["from_timestamp_seconds"], (23 * DAY) as f64);
    near(&answer["to_timestamp_seconds"], NOW as f64);
    assert_eq!((&answer["time_zone"], &answer["only"]), (&"UTC".into(), &Value::Null));
    let expected = [
        "cluster",
        "cpu_hours",
        "cpu_hours_percent",
        "gpu_hours",
        "gpu_hours_percent",
        "jobs",
        "partition",
        "users",
    ];
    let mut found = keys(&answer["partitions"][0]);
    found.sort();
    assert_eq!(found, expected);
    let accounts = site.json(&Site::question("usage-by-account"));
    assert_eq!(accounts["accounts"].as_array().unwrap().len(), 2);
    assert!(accounts["users"].as_array().unwrap().iter().all(|row| row["users"] == 1));
    let most = site.json(&Site::question("most-gpus"));
    assert_eq!(most["jobs"][0]["gpus"], 2);
    assert_eq!(most["jobs"][0]["gpu_efficiency_percent"], Value::Null, "nobody measured");
    let most = site.json(&Site::question("most-cores"));
    near(&most["jobs"][1]["cpu_efficiency_percent"], 90.0);
}

#[test]
fn names_do_no_harm_in_any_format() {
    let site = Site::new(&week(), "");
    for (name, _) in REPORTS.iter().filter(|(_, report)| report.needs != Needs::Queue) {
        let document = site.ask(&Site::question(name)).unwrap();
        for format in [Format::Table, Format::Json, Format::Csv, Format::Markdown, Format::Html] {
            let text = format::write(&document, format, Screen::file(), None);
            assert!(!text.contains('\u{1b}'), "{name} {format:?}");
        }
    }
    assert!(site.shown("jobs-overview").contains("\\x1b[2Jeve"));
}

#[test]
fn without_jobs_there_is_no_report_as_there_is_no_analysis() {
    let site = Site::new(&week(), "");
    let window = Window::new(Timestamp::new(DAY), Timestamp::new(2 * DAY)).unwrap();
    for name in ["usage-overview", "waste", "low-cpu-efficiency"] {
        let error = site.ask(&Question { window, ..Site::question(name) }).unwrap_err();
        assert_eq!(command::code(&error), 1);
        assert_eq!(
            error.to_string(),
            "No jobs from 1970-01-02 00:00 to 1970-01-03 00:00; `steward collect` brings jobs into \
             the archive"
        );
    }
    let partitions = vec!["none".to_owned()];
    let error = site.ask(&Question { partitions, ..Site::question("waste") }).unwrap_err();
    assert!(error.to_string().contains("(partition none)"), "{error}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_what_to_do() {
    let settings = "[rules.low-cpu]\nenabled = false\n[rules.low-memory]\npartitions = [\"gpu\"]";
    let site = Site::new(&week(), settings);
    for (name, partition, said) in [
        ("usage-overwiev", None, "`steward report` lists them"),
        ("low-cpu", None, "low-cpu is switched off: set rules.low-cpu.enabled to true"),
        ("longest-queued", None, "leave out --no-live"),
        ("low-memory", Some("main"), "not about jobs in these partitions (rules.low-memory)"),
    ] {
        let partitions = partition.into_iter().map(str::to_owned).collect();
        let error = site.ask(&Question { partitions, ..Site::question(name) }).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(command::code(&error), 2, "{error}");
    }
}

/// Users who use a tenth of what they hold, and one who uses nearly all.
fn wasters() -> Vec<Row> {
    let used = |row: Row, used| Row { used, ..row };
    vec![
        used(row("ann", 28 * DAY, 10.0, 16), 0.1),
        used(row("ann", 29 * DAY, 10.0, 16), 0.5),
        used(row("bob", 28 * DAY, 20.0, 32), 0.95),
        Row { billing: None, ..used(row("cy", 28 * DAY, 20.0, 10), 0.2) },
    ]
}

#[test]
fn a_rule_is_a_report_with_a_line_for_each_user_or_job() {
    let settings = "[rules.own]\nrule = \"low-cpu-efficiency\"\nproportion = 0.0\n\
                    partitions = [\"main\"]";
    let site = Site::new(&wasters(), settings);
    let answer = site.json(&Site::question("own"));
    let rows = answer["findings"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let ann = &rows[0];
    assert_eq!((&ann["user"], &ann["job_ids"]), (&"ann".into(), &"1,2".into()));
    near(&ann["cpu_hours"], 320.0);
    near(&ann["cpu_efficiency_percent"], 30.0);
    near(&ann["billing_hours_wasted"], 224.0);
    let cy = &rows[1];
    assert_eq!((&cy["user"], &cy["billing_hours_wasted"]), (&"cy".into(), &Value::Null));
    let said = answer["headline"][0].as_str().unwrap();
    assert!(
        said.ends_with("2 findings (fine: 1, too little known: 0, not applicable: 0)."),
        "{said}"
    );
    let jobs = site.json(&Question { jobs: true, ..Site::question("own") });
    let jobs = jobs["jobs"].as_array().unwrap();
    let ids: Vec<&str> = jobs.iter().filter_map(|job| job["job"].as_str()).collect();
    assert_eq!(ids, ["1", "2", "4"]);
    near(&jobs[0]["wasted_percent"], 90.0);
    near(&jobs[0]["billing_hours_wasted"], 144.0);
    near(&jobs[1]["billing_hours_wasted"], 80.0);
}

/// Several rules find the same jobs: each counts once.
#[test]
fn waste_is_in_billing_hours_money_and_energy() {
    let settings = "[rules.own]\nrule = \"low-cpu-efficiency\"\nproportion = 0.0\n\
                    [rules.again]\nrule = \"low-cpu-efficiency\"\nproportion = 0.0\n\
                    [cost]\nbilling_hour = 0.25\ncurrency = \"EUR\"\ncpu_watts = 5.0";
    let site = Site::new(&wasters(), settings);
    let answer = site.json(&Site::question("waste"));
    let rows = answer["users"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    near(&rows[0]["billing_hours_wasted"], 224.0);
    near(&rows[0]["wasted_percent"], 70.0);
    near(&rows[0]["cost"], 56.0);
    near(&rows[0]["energy_kwh"], 224.0 * 5.0 / 1000.0);
    assert_eq!(rows[1]["billing_hours_wasted"], Value::Null);
    near(&rows[1]["cpu_hours_wasted_unbilled"], 160.0);
    near(&rows[1]["unbilled_jobs"], 1.0);
    assert_eq!(answer["accounts"].as_array().unwrap().len(), 1);
    let plain = Site::new(&wasters(), "").json(&Site::question("waste"));
    assert!(
        plain["users"][0].get("cost").is_none() && plain["users"][0].get("energy_kwh").is_none()
    );
    let shown = site.shown("waste");
    assert!(
        shown.contains("Cost, EUR") && shown.contains("without a billing weight: 1."),
        "{shown}"
    );
}

#[test]
fn the_queue_is_that_of_the_moment_and_one_that_is_not_known_is_not_empty() {
    let site = Site::new(&week(), "");
    let question = Question { live: true, ..Site::question("longest-queued") };
    let error = site.ask(&question).unwrap_err();
    assert!(error.to_string().starts_with("The queue is not known: c1: slurmctld"), "{error}");
    assert_eq!(command::code(&error), 1);
    let job = |id: i64, days: i64| {
        format!(
            r#"{{"job_id": {id}, "user_name": "ann", "partition": "a,b", "job_state": "PENDING",
                "state_reason": "Dependency", "submit_time": {}, "name": "x"}}"#,
            NOW - days * DAY
        )
    };
    let queue = format!(r#"{{"jobs": [{}, {}]}}"#, job(7, 4), job(8, 5));
    fs::write(site.directory.path().join("queue"), queue).unwrap();
    let answer = site.json(&question);
    assert_eq!(answer["headline"][0], "longest-queued, 1970-01-31 12:00.");
    let rows = answer["jobs"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["job"]), (1, &"8".into()));
    assert_eq!((&rows[0]["obstacle"], &rows[0]["partition"]), (&"dependent".into(), &"a,b".into()));
    near(&rows[0]["waited_days"], 5.0);
    let later = Question { waited: Duration::from_secs(6 * 86_400), ..question };
    assert_eq!(site.json(&later)["headline"][1], "No job has waited for 6 days or more.");
}

/// sacct says that a job has ended while squeue shows it completing; one that is gone from the queue
/// since the last collection counts as it was then, one that still runs counts up to now.
#[test]
fn a_job_that_both_know_counts_once() {
    let rows = [
        row("ended", NOW - 3 * HOUR, 2.0, 4),
        Row { state: "RUNNING", ..row("gone", NOW - 5 * HOUR, 4.0, 1) },
        Row { state: "RUNNING", ..row("runs", NOW - 5 * HOUR, 4.0, 2) },
    ];
    let site = Site::new(&rows, "");
    let job = |id: u8, user: &str, state: &str, start: i64, cpus: u8| {
        format!(
            r#"{{"job_id": {id}, "user_name": "{user}", "partition": "main", "job_state": "{state}",
                "submit_time": {start}, "start_time": {start}, "nodes": "n1", "node_count": 1,
                "cpus": {cpus}, "name": "x"}}"#
        )
    };
    let jobs = [
        job(1, "ended", "COMPLETING", NOW - 3 * HOUR, 4),
        job(3, "runs", "RUNNING", NOW - 5 * HOUR, 2),
    ];
    let queue = format!(r#"{{"jobs": [{}]}}"#, jobs.join(","));
    fs::write(site.directory.path().join("queue"), queue).unwrap();
    let hours = |live| -> Vec<(String, f64)> {
        let answer = site.json(&Question { live, ..Site::question("jobs-overview") });
        let rows = answer["users"].as_array().unwrap().iter();
        let row = |row: &Value| (row["user"].to_string(), row["cpu_hours"].as_f64().unwrap());
        let mut rows: Vec<_> = rows.map(row).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows
    };
    let line = |user: &str, hours| (format!("\"{user}\""), hours);
    assert_eq!(hours(true), [line("ended", 8.0), line("gone", 4.0), line("runs", 10.0)]);
    assert_eq!(hours(false), [line("ended", 8.0), line("gone", 4.0), line("runs", 8.0)]);
}

#[test]
fn all_reports_and_rules_are_listed() {
    let config: Config =
        toml::from_str("[rules.low-cpu]\nenabled = false\n[rules.own]\nrule = \"low-cpu\"")
            .unwrap();
    let document = list(&config, Some(100)).unwrap();
    let text = format::write(&document, Format::Table, Screen::file(), None);
    for (name, report) in REPORTS {
        assert!(text.contains(name) && text.contains(report.about), "{name}: {text}");
    }
    let lines = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((lines("low-cpu "), lines("own ")), (0, 1), "{text}");
    assert!(text.contains("Switched off: low-cpu."), "{text}");
    let rules = steward_common::rule::RULES.iter().filter(|(name, _)| *name != "low-cpu");
    assert!(rules.into_iter().all(|(name, _)| lines(&format!("{name} ")) == 1), "whole names");
}
