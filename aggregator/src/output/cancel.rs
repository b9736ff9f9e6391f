//! `steward cancel`, for people and programs.

use jiff::tz::TimeZone;
use steward_common::time::Timestamp;

use super::exemptions::moment;
use super::number::counted;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide};
use crate::cancel::engine::{Came, Line};
use crate::cancel::run::Report;
use crate::evaluate::Trouble;
use crate::store::cancels::{Decision, Kept};

const LINES: &[Field<Line>] = &[
    (always("job", "Job"), |line| Cell::text(&line.job)),
    (hide(1, "cluster", "Cluster"), |line| Cell::text(&line.key.cluster)),
    (always("user", "User"), |line| Cell::text(&line.user)),
    (hide(5, "instance", "Rule"), |line| Cell::text(&line.key.instance)),
    (hide(3, "gpus", "GPUs"), |line| {
        line.figures.map_or(Cell::Missing, |(gpus, _, _)| Cell::Count(u64::from(gpus)))
    }),
    (hide(3, "gpus_idle", "idle"), |line| {
        line.figures.map_or(Cell::Missing, |(_, idle, _)| Cell::Count(u64::from(idle)))
    }),
    (hide(4, "hours", "Hours"), |line| Cell::number(line.figures.map(|(_, _, hours)| hours))),
    (always("result", "Result"), |line| {
        Cell::text(match &line.came {
            Came::Nothing(_) => "nothing",
            Came::Would(_) => "would",
            Came::Done(_) => "done",
            Came::Failed(_) => "failed",
        })
    }),
    (always("what", "What"), |line| match &line.came {
        Came::Nothing(why) | Came::Failed(why) => Cell::text(why),
        Came::Would(what) | Came::Done(what) => Cell::text(*what),
    }),
];

const TROUBLES: &[Field<Trouble>] = &[
    (always("what", "What"), |trouble| Cell::text(&trouble.what)),
    (hide(1, "cluster", "Cluster"), |trouble| {
        trouble.cluster.as_ref().map_or(Cell::Missing, |cluster| Cell::text(cluster.to_string()))
    }),
    (always("why", "Why"), |trouble| Cell::text(&trouble.why)),
];

/// What came of a run.
#[must_use]
pub fn run(report: &Report) -> Document {
    let of =
        |is: fn(&Came) -> bool| report.lines.iter().filter(|line| is(&line.came)).count() as u64;
    let mode = report.mode.name();
    let mut headline = vec![format!(
        "Mode {mode}: {}, {} done, {} that would be, {} failed.",
        counted(report.lines.len() as u64, "job"),
        of(|came| matches!(came, Came::Done(_))),
        of(|came| matches!(came, Came::Would(_))),
        of(|came| matches!(came, Came::Failed(_))),
    )];
    if report.unknown > 0 {
        let jobs = counted(report.unknown as u64, "other job");
        headline.push(format!("{jobs} with GPUs: measured too little to be judged, and so left."));
    }
    if !report.troubles.is_empty() {
        let troubles = counted(report.troubles.len() as u64, "source");
        headline.push(format!("{troubles} could not be asked; nothing is done on a guess."));
    }
    let mut jobs = Sheet::new("jobs", "Idle jobs", LINES, &report.lines);
    jobs.top = 0;
    let troubles = Sheet::new("troubles", "Could not be asked", TROUBLES, &report.troubles);
    Document {
        title: "Cancelling of idle jobs".to_owned(),
        headline,
        facts: vec![
            ("mode", Cell::text(mode)),
            ("unknown_jobs", Cell::Count(report.unknown as u64)),
        ],
        sheets: vec![troubles, jobs],
    }
}

struct Row {
    kept: Kept,
    state: String,
    since: String,
}

const KEPT: &[Field<Row>] = &[
    (always("id", "ID"), |row| Cell::text(&row.kept.id)),
    (always("job", "Job"), |row| Cell::Text(row.kept.key.job.to_string())),
    (hide(2, "cluster", "Cluster"), |row| Cell::text(&row.kept.key.cluster)),
    (always("user", "User"), |row| Cell::text(&row.kept.user)),
    (drop(3, "instance", "Rule"), |row| Cell::text(&row.kept.key.instance)),
    (always("state", "State"), |row| Cell::text(&row.state)),
    (drop(1, "since", "Since"), |row| Cell::text(&row.since)),
];

fn state(kept: &Kept) -> (String, Option<Timestamp>) {
    let rejected = match &kept.decision {
        Some((Decision::Rejected(why), by)) => Some((by, why)),
        _ => None,
    };
    let word = |word: &str, at| (word.to_owned(), at);
    match kept {
        Kept { cancelled: Some(at), .. } => word("cancelled", Some(*at)),
        Kept { killed: Some(at), .. } => word("is being ended", Some(*at)),
        Kept { signalled: Some(at), .. } => word("has the signal", Some(*at)),
        Kept { proposed, .. } if rejected.is_some() => {
            let (by, why) = rejected.unwrap_or((&kept.id, &kept.id));
            (format!("rejected by {by}: {why}"), *proposed)
        }
        Kept { proposed: Some(at), decision: Some(_), .. } => word("approved", Some(*at)),
        Kept { proposed: Some(at), .. } => word("waits for approval", Some(*at)),
        _ => {
            let last = kept.first.max(kept.second).max(kept.sliding);
            word(if last.is_some() { "warned" } else { "seen" }, last)
        }
    }
}

/// What is remembered of jobs.
#[must_use]
pub fn list(list: Vec<Kept>, zone: &TimeZone) -> Document {
    let rows: Vec<Row> = list
        .into_iter()
        .map(|kept| {
            let (state, since) = state(&kept);
            let since = since.map(|at| moment(at.get().saturating_mul(1000), zone));
            Row { kept, state, since: since.unwrap_or_default() }
        })
        .collect();
    let mut sheet = Sheet::new("jobs", "Jobs", KEPT, &rows);
    sheet.top = 0;
    Document {
        title: "Idle jobs and what was done about them".to_owned(),
        headline: vec![format!("{}.", counted(rows.len() as u64, "job"))],
        facts: Vec::new(),
        sheets: vec![sheet],
    }
}
