use std::collections::BTreeSet;

use steward_common::slurm::sacct::{DELIMITER, Row, row};
use steward_common::slurm::tres::Tres;
use steward_common::slurm::{duration, memory};

use super::*;

const NOW: u64 = 1_794_787_200;
const RECIPE: Recipe = Recipe { jobs: 3000, days: 3, seed: 1, now: NOW, comments: false };

/// All text of a recipe, and where it lies.
fn written(recipe: Recipe) -> (tempfile::TempDir, Store, Written) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    let written = recipe.write(&path).unwrap();
    let store = Store::new(&path);
    (directory, store, written)
}

fn served(store: &Store, from: u64, until: u64) -> String {
    let mut text = Vec::new();
    let sent = store.serve(from, until, &mut text).unwrap();
    assert_eq!(sent, text.len() as u64);
    String::from_utf8(text).unwrap()
}

/// The rows that are whole lines.
fn each(text: &str, mut see: impl FnMut(&Row<'_>)) -> usize {
    let layout = layout();
    let mut whole = 0;
    for line in text.lines() {
        let ends = row::ends(line);
        if let Some(row) = Row::new(&layout, line, 0, &ends) {
            whole += 1;
            see(&row);
        }
    }
    whole
}

#[test]
fn the_same_recipe_gives_the_same_text() {
    let (_one, store, first) = written(RECIPE);
    let (_two, other, second) = written(RECIPE);
    assert_eq!(first, second);
    assert_eq!(store.layout(), Some(layout()));
    assert!(served(&store, 0, NOW) == served(&other, 0, NOW));
    let (_three, other, _) = written(Recipe { seed: 2, ..RECIPE });
    assert!(served(&store, 0, NOW) != served(&other, 0, NOW));
}

#[test]
fn all_that_was_written_is_served_once_when_all_is_asked_for() {
    let (_directory, store, written) = written(RECIPE);
    let text = served(&store, 0, NOW);
    assert_eq!(text.len() as u64, written.bytes);
    let mut runs = 0;
    let rows = each(&text, |row| runs += u64::from(row.id().1.is_none()));
    assert!(written.rows - rows as u64 <= 3, "{rows} whole rows of {}", written.rows);
    assert!(written.runs - runs <= 3);
    let each_job = written.rows as f64 / written.runs as f64;
    assert!((3.5..3.8).contains(&each_job), "{each_job} rows for a job");
}

#[test]
fn every_figure_can_be_read() {
    let (_directory, store, _) = written(RECIPE);
    let mut states = BTreeSet::new();
    let text = served(&store, 0, NOW);
    each(&text, |row| {
        for field in [Field::TotalCpu, Field::UserCpu, Field::SystemCpu, Field::Suspended] {
            assert!(duration::elapsed(row.get(field)).unwrap().is_some(), "{}", row.id().0);
        }
        for field in
            [Field::ReqTres, Field::AllocTres, Field::TresUsageInTot, Field::TresUsageInMax]
        {
            row.get(field).parse::<Tres>().unwrap();
        }
        memory::request(row.get(Field::ReqMem)).unwrap();
        if row.id().1.is_none() {
            states.extend(row.get(Field::State).split(' ').next().map(str::to_owned));
            assert_eq!(row.get(Field::AllocTres).is_empty(), row.get(Field::AllocNodes) == "0");
        }
        let (submit, end) = (row.get(Field::Submit), row.get(Field::End));
        let (submit, end) = (submit.parse::<u64>().unwrap(), end.parse::<u64>().unwrap_or(NOW));
        assert!(submit <= end && end <= NOW, "{}", row.id().0);
    });
    for state in ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "RUNNING", "PENDING", "REQUEUED"] {
        assert!(states.contains(state), "{state} is not among {states:?}");
    }
}

#[test]
fn a_window_holds_what_was_eligible_before_its_end_and_not_over_before_its_beginning() {
    let (_directory, store, _) = written(RECIPE);
    let whole = served(&store, 0, NOW);
    let (from, until) = (NOW - 2 * DAY, NOW - DAY);
    let key =
        |row: &Row<'_>| (row.get(Field::JobIdRaw).to_owned(), row.get(Field::Submit).to_owned());
    let mut expected = BTreeSet::new();
    each(&whole, |row| {
        let number = |field| row.get(field).parse::<u64>().ok();
        let inside = number(Field::Eligible).unwrap() < until
            && number(Field::End).is_none_or(|end| end >= from);
        if row.id().1.is_none() && inside {
            expected.insert(key(row));
        }
    });
    let mut found = BTreeSet::new();
    let mut last = String::new();
    each(&served(&store, from, until), |row| {
        if row.id().1.is_none() {
            assert!(found.insert(key(row)), "{} comes twice", row.id().0);
            let submit = row.get(Field::JobIdRaw).to_owned();
            assert!(last <= submit, "{last} comes before {submit}");
            last = submit;
        }
    });
    assert!(found == expected && found.len() > 1000);
    // And nothing is in no day.
    let days =
        (0..=3).map(|day| served(&store, NOW - (3 - day) * DAY, NOW - (3 - day) * DAY + DAY));
    let mut runs = BTreeSet::new();
    for text in days {
        each(&text, |row| {
            runs.insert(key(row));
        });
    }
    let mut every = BTreeSet::new();
    each(&whole, |row| {
        every.insert(key(row));
    });
    assert!(runs == every);
}

#[test]
fn the_command_line_is_that_of_sacct() {
    let layout = layout();
    let format = format!("--format={}", layout.format());
    let delimiter = format!("--delimiter={}", char::from(DELIMITER));
    let common = ["-a", "-D", "-P", "-n", "--noconvert", &delimiter, &format];
    let ask = |more: &[&str]| {
        let all = common.iter().chain(more).map(|text| (*text).to_owned());
        request(all, &layout, NOW + 5)
    };
    let day = Ok(Request::Rows(NOW - DAY, NOW));
    assert_eq!(ask(&["-S", "2026-11-15T00:00:00", "-E", "2026-11-16T00:00:00"]), day);
    assert_eq!(ask(&["--starttime=2026-11-15", "--endtime", "uts1794787200"]), day);
    assert_eq!(
        ask(&["-S", "2026-11-15T12:30", "-E", "now"]),
        Ok(Request::Rows(NOW - 41_400, NOW + 5))
    );
    assert_eq!(ask(&[]), Ok(Request::Rows(NOW, NOW + 5)));
    for wrong in [
        &["-S", "1794787200"][..],
        &["-S", "2026-13-01"],
        &["-S"],
        &["--json"],
        &["--state=RUNNING"],
        &["--jobs=12_3"],
        &["-S", "now", "-E", "uts7"],
    ] {
        assert!(ask(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(
        ask(&["--state=CANCELLED,DEADLINE", "-S", "2026-11-15", "-E", "2026-11-16"]),
        Ok(Request::Cancelled(NOW - DAY, NOW))
    );
    assert_eq!(ask(&["--jobs=7,9"]), Ok(Request::Jobs(vec![7, 9], layout.clone())));
    assert_eq!(ask(&["--json", "--jobs=7"]), Ok(Request::Json(vec![7])));
    let short = Layout::new(|field| layout.place(field).is_some() && !field.is_free_text());
    let format = format!("--format={}", short.format());
    assert_eq!(ask(&["--jobs=7", &format]), Ok(Request::Jobs(vec![7], short)));
    assert!(ask(&["--jobs=7", "--format=JobIDRaw,Restarts,JobIDRaw"]).is_err());
    assert!(request(["-a".to_owned()], &layout, NOW).is_err());
    assert_eq!(request(["--version".to_owned()], &layout, NOW), Ok(Request::Version));
    assert_eq!(Layout::of_help(&help_format(&layout)), layout);
}

#[test]
fn jobs_can_be_asked_for_by_number() {
    let (_directory, store, _) = written(RECIPE);
    let text = served(&store, NOW - DAY, NOW);
    let id: u64 = text.split('\x1f').next().unwrap().parse().unwrap();
    let layout = layout();
    let runs = store.runs_of(&[id, 1]).unwrap();
    assert_eq!(runs.len(), 1);
    let whole = String::from_utf8(rows(&layout, &layout, &runs)).unwrap();
    assert!(text.starts_with(&whole) && whole.starts_with(&format!("{id}\x1f")));
    // A name with a delimiter and a line end in it.
    let whole = whole.replacen("\x1f/scratch", "\x1fx\ny\x1f/scratch", 1);
    let runs = [whole.clone().into_bytes()];
    let bare = Layout::new(|field| layout.place(field).is_some() && !field.is_free_text());
    let short = String::from_utf8(rows(&layout, &bare, &runs)).unwrap();
    for line in short.lines() {
        let ends = row::ends(line);
        let row = Row::new(&bare, line, 0, &ends).expect(line);
        assert_eq!(row.id().0, id.to_string());
    }
    assert_eq!(short.lines().count(), whole.lines().count() - 1);
    let json = json(&layout, &runs);
    let name = json["jobs"][0]["name"].as_str().unwrap();
    assert!(name.ends_with("\x1fx\ny"), "{name:?}");
    assert_eq!(json["jobs"][0]["steps"].as_array().unwrap().len(), short.lines().count() - 1);
    assert_eq!(json["jobs"][0]["job_id"], id);
}

#[test]
fn the_cancelled_of_a_day_are_those_that_ended_on_it() {
    let (_directory, store, _) = written(RECIPE);
    let mut text = Vec::new();
    store.cancelled(NOW - 2 * DAY, NOW - DAY, &mut text).unwrap();
    let (mut seen, mut never) = (0, 0);
    each(&String::from_utf8(text).unwrap(), |row| {
        if row.id().1.is_none() {
            assert!(row.get(Field::State).starts_with("CANCELLED"), "{:?}", row.id());
            let end = row.get(Field::End).parse::<u64>().unwrap();
            assert!((NOW - 2 * DAY..NOW - DAY).contains(&end));
            seen += 1;
            never += usize::from(row.get(Field::Start) == "None");
        }
    });
    assert!(seen > 20 && never > 0, "{seen} {never}");
}
