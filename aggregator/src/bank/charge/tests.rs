use std::sync::Arc;
use std::time::Duration;

use steward_common::slurm::sacct::{Field, Layout};

use super::*;
use crate::archive;
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::shelf::Directory;
use crate::collect::Watch;
use crate::keep::rebuild::{self, Order};
use crate::keep::retention::Retention;

fn window(from: i64, to: i64) -> Window {
    Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap()
}

fn day(number: i64) -> (String, Day) {
    ("c1".to_owned(), Day::new(number).unwrap())
}

#[test]
fn a_run_over_midnight_is_charged_to_both_days() {
    let mut used = Used::default();
    used.add("a", "c1", window(DAY - 100, 2 * DAY + 50), 4);
    used.add("a", "c1", window(DAY, DAY + 10), 1);
    let days = &used.days["a"];
    assert_eq!(days[&day(0)], Units::new(400));
    assert_eq!(days[&day(1)], Units::new(4 * DAY + 10));
    assert_eq!(days[&day(2)], Units::new(200));
}

struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

/// A job: its number, account, state, start, end, and what it was given.
type Job = (u32, &'static str, &'static str, i64, Option<i64>, &'static str);

/// An archive in which these jobs were collected at `at`.
fn archive(directory: &std::path::Path, at: i64, jobs: &[Job]) -> Archive {
    let archive = Archive::new(Arc::new(Directory::new(directory)), directory.join(".lock"));
    let fields = [
        Field::JobIdRaw,
        Field::JobId,
        Field::User,
        Field::Account,
        Field::State,
        Field::Submit,
        Field::Start,
        Field::End,
        Field::AllocTres,
    ];
    let layout = Layout::new(|field| fields.contains(&field));
    let mut change = archive.change(archive.lock(Duration::from_secs(30), || {}).unwrap()).unwrap();
    change.manifest.clusters.entry("c1".to_owned()).or_default();
    let file = archive.shelf().scratch().unwrap();
    let now = Timestamp::new(at);
    let names = layout.names();
    let mut writer = RawWriter::new(file, change.generation(), &names, now).unwrap();
    for (job, account, state, start, end, given) in jobs {
        let value = |name: &str| match name {
            "JobIDRaw" | "JobID" => job.to_string(),
            "User" => "ann".to_owned(),
            "Account" => (*account).to_owned(),
            "State" => (*state).to_owned(),
            "Submit" | "Start" => start.to_string(),
            "End" => end.map_or_else(|| "Unknown".to_owned(), |end| end.to_string()),
            "AllocTRES" => (*given).to_owned(),
            other => panic!("{other}"),
        };
        let mut columns: Vec<String> = names.split(',').map(value).collect();
        columns.push(job.to_string());
        let key = Key {
            job: Some(*job),
            submit: Some(Timestamp::new(*start)),
            end: end.map(Timestamp::new),
            step: None,
        };
        writer.push(key, Form::Plain, columns.join("\x1f").as_bytes()).unwrap();
    }
    let name = change.raw_name("c1", archive::Day::of(now), "0000");
    archive.shelf().put(writer.finish().unwrap(), &name).unwrap();
    change.commit().unwrap();
    let order = Order { cluster: None, now, retention: Retention::default(), stop: &|| false };
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    rebuild::run(&archive, lock, &order, &Unwatched).unwrap();
    archive
}

#[test]
fn jobs_of_the_archive_are_charged_by_their_billing_weight_since_the_proposal_began() {
    let directory = tempfile::tempdir().unwrap();
    let jobs: &[Job] = &[
        (1, "physics", "COMPLETED", 10 * DAY + 100, Some(10 * DAY + 1100), "billing=8,cpu=2"),
        (2, "physics", "FAILED", 11 * DAY - 50, Some(11 * DAY + 50), "billing=3,cpu=3"),
        // It goes on: it is charged as far as it was seen, and not beyond the last midnight.
        (3, "physics", "RUNNING", 11 * DAY + 80_000, None, "billing=1,cpu=1"),
        (4, "physics", "COMPLETED", 9 * DAY, Some(10 * DAY + 60), "billing=1,cpu=1"),
        (5, "physics", "COMPLETED", 10 * DAY + 7, Some(10 * DAY + 9), "cpu=1"),
        (6, "others", "COMPLETED", 10 * DAY, Some(10 * DAY + 999), "billing=7,cpu=1"),
    ];
    let archive = archive(directory.path(), 12 * DAY + 500, jobs);
    let from: BTreeMap<String, Timestamp> =
        [("physics".to_owned(), Timestamp::new(10 * DAY))].into();
    let clusters = ["c1".to_owned(), "c2".to_owned()];
    let used = used(&archive, &clusters, &from, Timestamp::new(12 * DAY)).unwrap();
    assert_eq!(used.days.len(), 1, "others are not in the bank");
    let days = &used.days["physics"];
    assert_eq!(days[&day(10)], Units::new(8 * 1000 + 3 * 50 + 60));
    assert_eq!(days[&day(11)], Units::new(3 * 50 + (DAY - 80_000)));
    assert_eq!((days.len(), used.unbilled), (2, 1));
}
