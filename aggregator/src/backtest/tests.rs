use std::path::Path;

use steward_common::rule::{Audience, Setting, find};
use steward_common::slurm::sacct::{Field, Layout};

use super::*;
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::shelf::Directory;
use crate::archive::{Archive, Day};
use crate::keep::rebuild;
use crate::keep::retention::Retention;
use crate::output::backtest as shown;
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::shutdown;

/// Noon, so that a window of seven days is seven and a half.
pub(crate) const NOW: i64 = 1_794_830_400;
pub(crate) const HOUR: i64 = 3600;
pub(crate) const DAY: i64 = 24 * HOUR;

pub(crate) struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

/// A job on ten CPUs that are billed as ten.
pub(crate) struct Run {
    id: u32,
    user: &'static str,
    /// When it ended, in hours before now.
    ended: i64,
    hours: i64,
    /// The share of the CPU time that it used, if that is known.
    used: Option<f64>,
}

pub(crate) const fn job(
    id: u32,
    user: &'static str,
    ended: i64,
    hours: i64,
    used: Option<f64>,
) -> Run {
    Run { id, user, ended, hours, used }
}

fn layout() -> Layout {
    use Field::*;
    let fields = [
        JobIdRaw, JobId, User, Partition, State, Submit, Start, End, Elapsed, AllocCpus,
        AllocNodes, NodeList, AllocTres, TotalCpu,
    ];
    Layout::new(move |field| fields.contains(&field))
}

impl Run {
    fn end(&self) -> i64 {
        NOW - self.ended * HOUR
    }

    fn row(&self) -> String {
        let start = self.end() - self.hours * HOUR;
        let seconds = self.hours * HOUR;
        let cpu = self.used.map(|used| (used * 10.0 * seconds as f64).round() as i64);
        let cpu = cpu.map_or(String::new(), clock);
        let (id, user, end) = (self.id, self.user, self.end());
        [
            id.to_string(),
            id.to_string(),
            user.to_owned(),
            "main".to_owned(),
            "COMPLETED".to_owned(),
            (start - 60).to_string(),
            start.to_string(),
            end.to_string(),
            seconds.to_string(),
            "10".to_owned(),
            "1".to_owned(),
            "n1".to_owned(),
            "cpu=10,billing=10".to_owned(),
            cpu,
            id.to_string(),
        ]
        .join("\x1f")
    }
}

/// Seconds as sacct writes CPU time.
fn clock(seconds: i64) -> String {
    let (days, rest) = (seconds / DAY, seconds % DAY);
    format!("{days}-{:02}:{:02}:{:02}", rest / HOUR, rest % HOUR / 60, rest % 60)
}

pub(crate) struct Site {
    _directory: tempfile::TempDir,
    pub(crate) archive: Archive,
    pub(crate) config: Arc<Config>,
}

pub(crate) fn site(runs: &[Run], covered_days: i64) -> Site {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Directory::new(directory.path()));
    let archive = Archive::new(shelf, directory.path().join(".lock"));
    let mut change = archive.change(archive.lock(Duration::from_secs(30), || {}).unwrap()).unwrap();
    change.manifest.clusters.entry("c1".to_owned()).or_default();
    let file = archive.shelf().scratch().unwrap();
    let now = Timestamp::new(NOW);
    let mut writer = RawWriter::new(file, change.generation(), &layout().names(), now).unwrap();
    for run in runs {
        let submit = Some(Timestamp::new(run.end() - run.hours * HOUR - 60));
        let end = Some(Timestamp::new(run.end()));
        let key = Key { job: Some(run.id), submit, end, step: None };
        writer.push(key, Form::Plain, run.row().as_bytes()).unwrap();
    }
    let name = change.raw_name("c1", Day::of(now), "0000");
    archive.shelf().put(writer.finish().unwrap(), &name).unwrap();
    let lock = change.commit().unwrap();
    let order =
        rebuild::Order { cluster: None, now, retention: Retention::default(), stop: &|| false };
    let (done, lock) = rebuild::run(&archive, lock, &order, &Unwatched).unwrap();
    assert_eq!(done[0].runs, runs.len() as u64);
    let mut change = archive.change(lock).unwrap();
    // The last collection was an hour ago.
    let (from, to) = (NOW - covered_days * DAY, NOW - HOUR);
    let covered = Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap();
    change.manifest.clusters.get_mut("c1").unwrap().covered.add(covered);
    change.commit().unwrap();
    let config = Config::parse(Path::new("a.toml"), "time_zone = \"UTC\"").unwrap();
    Site { _directory: directory, archive, config: Arc::new(config) }
}

pub(crate) fn rule(set: &[(&str, f64)]) -> Instance {
    let mut rule = find("low-cpu-efficiency").unwrap();
    rule.set("proportion", Setting::Number(0.0)).unwrap();
    for (option, value) in set {
        rule.set(option, Setting::Number(*value)).unwrap();
    }
    Instance::of(rule)
}

impl Site {
    fn backtest(&self, instance: Instance, user: Option<&str>) -> Backtest {
        let steps = steps(
            Timestamp::new(NOW),
            Duration::from_secs(28 * 86_400),
            Duration::from_secs(7 * 86_400),
            7,
            &TimeZone::UTC,
        );
        let question = Question {
            instances: vec![instance],
            steps: steps.unwrap(),
            clusters: Vec::new(),
            user: user.map(str::to_owned),
        };
        let (_stopper, shutdown) = shutdown::channel();
        run(&self.config, &self.archive, &question, &shutdown, &Unwatched).unwrap()
    }
}

/// Steps end 21, 14 and 7 days ago, and now.
fn usual() -> Site {
    site(
        &[
            job(1, "alice", 3 * 24, 10, Some(0.1)),
            // It still ran 21 days ago.
            job(2, "alice", 20 * 24, 29, Some(0.1)),
            job(3, "bob", 3 * 24, 10, None),
            job(4, "bob", 10 * 24, 10, Some(0.1)),
            job(5, "carol", 3 * 24, 100, Some(1.0)),
            // Seven days and six hours ago: in the last two windows.
            job(6, "dave", 7 * 24 + 6, 10, Some(0.1)),
        ],
        60,
    )
}

/// User, steps, steps of which too little is known, jobs, billing hours.
type Summary = (String, Vec<usize>, Vec<usize>, u64, Option<f64>);

fn summary(backtest: &Backtest) -> Vec<Summary> {
    let rounded = |hours: f64| (hours * 1e6).round() / 1e6;
    let told = backtest.told().into_iter();
    told.map(|one| {
        assert_eq!(one.audience, Audience::User);
        (one.user, one.steps, one.unknown, one.jobs, one.billing_hours.map(rounded))
    })
    .collect()
}

#[test]
fn a_user_counts_once_a_step_and_a_job_once_at_all() {
    let backtest = usual().backtest(rule(&[]), None);
    assert!(backtest.troubles.is_empty(), "{:?}", backtest.troubles);
    assert_eq!(
        summary(&backtest),
        [
            // Nine tenths of 100 and of 290 billing hours.
            ("alice".to_owned(), vec![1, 3], vec![], 2, Some(351.0)),
            ("dave".to_owned(), vec![2, 3], vec![], 1, Some(90.0)),
            ("bob".to_owned(), vec![2], vec![3], 1, Some(90.0)),
        ]
    );
    let steps = &backtest.steps;
    let figures: Vec<_> = steps.iter().map(|step| (step.jobs, step.users, step.unknown)).collect();
    // What still ran at the first step is not known there.
    assert_eq!(figures, [(0, 0, 0), (1, 1, 0), (2, 2, 0), (4, 2, 1)]);
    assert!(steps.iter().all(|step| step.covered && step.admins == 0 && step.advice == 0));
    let [unknown] = backtest.unknown().try_into().unwrap();
    assert_eq!((unknown.why, unknown.times), ("nobody measured it", 1));
    assert_eq!(unknown.users, ["bob"]);
}

#[test]
fn other_thresholds_find_others() {
    let site = usual();
    assert!(site.backtest(rule(&[("efficiency", 0.09)]), None).told().is_empty());
    let many = site.backtest(rule(&[("cpu_hours", 150.0)]), None);
    let users: Vec<_> = summary(&many).into_iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(users, [("alice".to_owned(), vec![1])], "290 CPU-hours");
}

#[test]
fn one_user_alone_is_shown_with_the_same_verdicts() {
    let backtest = usual().backtest(rule(&[]), Some("bob"));
    assert_eq!(summary(&backtest), [("bob".to_owned(), vec![2], vec![3], 1, Some(90.0))]);
    let users: Vec<u64> = backtest.steps.iter().map(|step| step.users).collect();
    assert_eq!(users, [0, 0, 1, 0]);
    assert!(usual().backtest(rule(&[]), Some("carol")).told().is_empty());
}

#[test]
fn what_is_not_archived_is_not_shown_as_nothing_found() {
    let backtest = site(&[job(1, "alice", 3 * 24, 10, Some(0.1))], 16).backtest(rule(&[]), None);
    let covered: Vec<bool> = backtest.steps.iter().map(|step| step.covered).collect();
    assert_eq!(covered, [false, false, true, true]);
    let document = shown::document(&backtest, &["r".to_owned()], &TimeZone::UTC);
    let json = format::write(&document, Format::Json, Screen::file(), None);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["users"][0]["marks"], "  .X");
    assert_eq!(json["users"][0]["first"], "2026-11-16");
    assert_eq!(json["users"][0]["told"], "user");
    assert_eq!(json["steps"][0]["archived"], "not all");
    assert_eq!(json["steps"].as_array().unwrap().len(), 4);
}

#[test]
fn the_calendar_fits_the_screen() {
    let backtest = usual().backtest(rule(&[]), None);
    for width in [40, 60, 100] {
        let screen = Screen { width, colour: false };
        let text = shown::calendar(&backtest, true, screen, 0);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
    let text = shown::calendar(&backtest, false, Screen::file(), 0);
    assert!(text.contains("alice (user)  |.X.X|\n"), "{text}");
    assert!(text.contains("bob (user)    |..X?|\n"), "{text}");
    let document = shown::document(&backtest, &["r".to_owned()], &TimeZone::UTC);
    let text = format::write(&document, Format::Table, Screen::file(), None);
    assert!(
        text.starts_with("3 users would have been told by r, at 4 steps from 2026-10-26"),
        "{text}"
    );
}

#[test]
fn steps_end_now_and_go_back_no_further_than_asked() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let day = Duration::from_secs(86_400);
    let ends = |days: u32, every: u32, back: u16| {
        let steps = steps(Timestamp::new(NOW), day * days, day * every, back, &zone).unwrap();
        steps.iter().map(|w| (NOW - w.to().get()) / DAY).collect::<Vec<_>>()
    };
    assert_eq!(ends(28, 7, 7), [21, 14, 7, 0]);
    assert_eq!(ends(29, 7, 7), [28, 21, 14, 7, 0]);
    assert_eq!(ends(1, 7, 7), [0]);
    assert_eq!(ends(90, 7, 7).len(), 13);
    // Clocks went back on 25 October: midnight then was 22:00 UTC, now it is 23:00.
    let steps = steps(Timestamp::new(NOW), day * 28, day * 27, 1, &zone).unwrap();
    let hours: Vec<i64> = steps.iter().map(|w| w.from().get() % DAY / HOUR).collect();
    assert_eq!(hours, [22, 23]);
    let many = super::steps(Timestamp::new(NOW), day * 3660, Duration::from_secs(3600), 1, &zone);
    assert!(many.unwrap_err().0.contains("87840 steps"));
}
