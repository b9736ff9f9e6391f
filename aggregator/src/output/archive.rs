//! `steward status`, for people and programs.

use jiff::tz::TimeZone;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;

use super::number::counted;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, program};
use crate::serve::handler::status::Status;
use crate::status::{Changing, Held, Holding, Why};

/// What is shown beside the archive itself.
#[derive(Debug)]
pub struct Around<'a> {
    /// Where the archive is.
    pub place: String,
    /// What is free there, in bytes.
    pub free: Option<u64>,
    /// The service, if it answered.
    pub service: Option<&'a Status>,
    /// What somebody should do something about.
    pub warnings: Vec<String>,
    /// How times are written.
    pub clock: Clock,
}

/// How times are written.
#[derive(Clone, Debug)]
pub struct Clock {
    /// On whose clocks.
    pub zone: TimeZone,
    /// For programs, with seconds and the distance from UTC.
    pub whole: bool,
}

impl Clock {
    fn write(&self, moment: Timestamp) -> String {
        let pattern = if self.whole { "%Y-%m-%dT%H:%M:%S%:z" } else { "%Y-%m-%d %H:%M" };
        match jiff::Timestamp::from_second(moment.get()) {
            Ok(time) => time.to_zoned(self.zone.clone()).strftime(pattern).to_string(),
            Err(_) => moment.to_string(),
        }
    }
}

/// A row of the tables below the first.
struct Line {
    cluster: String,
    from: String,
    to: String,
    runs: u64,
    why: String,
}

/// All of it.
#[must_use]
pub fn document(holding: &Holding, around: &Around<'_>) -> Document {
    let time = |moment: Timestamp| around.clock.write(moment);
    let of = |files: fn(&Held) -> (u64, u64)| {
        let all = holding.clusters.iter().map(files);
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let (raw, processed) = (of(|held| held.raw), of(|held| held.processed));
    let mut headline = vec![format!(
        "Archive {}: {} in {} (raw {}, jobs {}); {}schema {}, changed {}.",
        around.place,
        Bytes::new(raw.1 + processed.1),
        counted(raw.0 + processed.0, "file"),
        Bytes::new(raw.1),
        Bytes::new(processed.1),
        around.free.map_or(String::new(), |free| format!("{} free; ", Bytes::new(free))),
        holding.schema,
        counted(holding.generation, "time"),
    )];
    headline.push(service(around.service));
    headline.extend(around.warnings.iter().map(|warning| format!("! {warning}")));
    let facts = vec![
        ("place", Cell::text(&around.place)),
        ("schema", Cell::Count(holding.schema.into())),
        ("generation", Cell::Count(holding.generation)),
        ("free_bytes", around.free.map_or(Cell::Missing, Cell::Count)),
        ("service", around.service.map_or(Cell::Missing, |status| Cell::text(&status.role))),
    ];
    let lines = |make: &dyn Fn(&Held) -> Vec<Line>| -> Vec<Line> {
        holding.clusters.iter().flat_map(make).collect()
    };
    let recent = lines(&|held| {
        let line = |(day, runs): &(crate::archive::Day, u64)| Line {
            from: day.to_string(),
            ..Line::of(held, *runs)
        };
        held.recent.iter().map(line).collect()
    });
    let gaps = lines(&|held| {
        let line = |gap: &steward_common::window::Window| Line {
            from: time(gap.from()),
            to: time(gap.to()),
            ..Line::of(held, 0)
        };
        held.gaps.iter().map(line).collect()
    });
    let changing = lines(&|held| {
        let line = |one: &Changing| Line {
            from: one.from.to_string(),
            to: one.to.to_string(),
            why: why(one.why, &time),
            ..Line::of(held, 0)
        };
        held.changing.iter().map(line).collect()
    });
    let rows: Vec<Row> =
        holding.clusters.iter().map(|held| (held.clone(), around.clock.clone())).collect();
    let mut sheets = vec![
        Sheet::new("clusters", "", CLUSTERS, &rows),
        Sheet::new("recent", "Last days with jobs that ended (UTC)", RECENT, &recent),
        Sheet::new("gaps", "Never collected", GAPS, &gaps),
        Sheet::new("not_final", "Days that can still change (UTC)", CHANGING, &changing),
    ];
    for sheet in &mut sheets {
        sheet.top = 0;
    }
    // People have read them in the headline.
    let mut warnings = Sheet::new("warnings", "", WARNINGS, &around.warnings);
    warnings.people = false;
    if let Some(gaps) = sheets.get_mut(2) {
        gaps.notes.push("The next `steward collect` fills them.".to_owned());
    }
    sheets.push(warnings);
    Document { title: format!("Archive {}", around.place), headline, facts, sheets }
}

type Row = (Held, Clock);

const CLUSTERS: &[Field<Row>] = &[
    (always("cluster", "Cluster"), |(held, _)| Cell::text(&held.cluster)),
    (always("from", "From"), |(held, clock)| moment(held.from, clock)),
    (always("until", "Until"), |(held, clock)| moment(held.until, clock)),
    (always("runs", "Runs"), |(held, _)| Cell::Count(held.runs)),
    (always("open", "Open"), |(held, _)| Cell::Count(held.open)),
    (drop(3, "last_collection", "Last collection"), |(held, clock)| {
        moment(held.last.map(|last| Timestamp::new(last.at)), clock)
    }),
    (drop(2, "last_runs", "New"), |(held, _)| {
        held.last.map_or(Cell::Missing, |last| Cell::Count(last.runs))
    }),
    (drop(1, "malformed", "Malformed"), |(held, _)| Cell::Count(held.malformed)),
    (program("last_malformed"), |(held, _)| {
        held.last.map_or(Cell::Missing, |last| Cell::Count(last.malformed))
    }),
    (program("open_since"), |(held, clock)| moment(held.open_since, clock)),
    (program("latest_day"), |(held, _)| {
        held.recent.first().map_or(Cell::Missing, |(day, _)| Cell::text(day.to_string()))
    }),
    (program("processed_files"), |(held, _)| Cell::Count(held.processed.0)),
    (program("processed_bytes"), |(held, _)| Cell::Count(held.processed.1)),
    (program("raw_files"), |(held, _)| Cell::Count(held.raw.0)),
    (program("raw_bytes"), |(held, _)| Cell::Count(held.raw.1)),
];

const WARNINGS: &[Field<String>] = &[(always("warning", "Warning"), |text| Cell::text(text))];

const RECENT: &[Field<Line>] = &[
    (always("day", "Day"), |line| Cell::text(&line.from)),
    (always("cluster", "Cluster"), |line| Cell::text(&line.cluster)),
    (always("runs", "Runs"), |line| Cell::Count(line.runs)),
];

const GAPS: &[Field<Line>] = &[
    (always("cluster", "Cluster"), |line| Cell::text(&line.cluster)),
    (always("from", "From"), |line| Cell::text(&line.from)),
    (always("to", "To"), |line| Cell::text(&line.to)),
];

const CHANGING: &[Field<Line>] = &[
    (always("cluster", "Cluster"), |line| Cell::text(&line.cluster)),
    (always("from", "From"), |line| Cell::text(&line.from)),
    (always("to", "To"), |line| Cell::text(&line.to)),
    (always("why", "Why"), |line| Cell::text(&line.why)),
];

impl Line {
    fn of(held: &Held, runs: u64) -> Line {
        let (from, to, why) = (String::new(), String::new(), String::new());
        Line { cluster: held.cluster.clone(), from, to, runs, why }
    }
}

fn moment(moment: Option<Timestamp>, clock: &Clock) -> Cell {
    moment.map_or(Cell::Missing, |moment| Cell::text(clock.write(moment)))
}

fn why(why: Why, time: &dyn Fn(Timestamp) -> String) -> String {
    match why {
        Why::Today => "today".to_owned(),
        Why::Grace(until) => format!("news of it may come until {} (collect.grace)", time(until)),
        Why::Gap => "a part of it was never collected".to_owned(),
        Why::AskedAgain => "the next collection asks for it once more".to_owned(),
        Why::Open(since) => format!("a job that runs since {} may still belong to it", time(since)),
    }
}

fn service(status: Option<&Status>) -> String {
    let Some(status) = status else {
        return "No service answers on this machine.".to_owned();
    };
    let tasks: Vec<String> = status
        .tasks
        .iter()
        .map(|task| {
            let is = match (task.running_since, task.is_failing()) {
                (Some(_), _) => "running",
                (None, true) => "failing",
                (None, false) => "waiting",
            };
            format!("{} {is}", task.name)
        })
        .collect();
    let tasks = if tasks.is_empty() { "no tasks".to_owned() } else { tasks.join(", ") };
    format!("Service {}, {}: {tasks}.", status.version, status.role)
}
