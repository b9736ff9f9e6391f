//! `steward exempt list` and `steward audit`, for people and programs.

use jiff::tz::TimeZone;
use steward_common::time::Timestamp;

use super::number::counted;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide};
use crate::store::audit::Made;
use crate::store::exemptions::Exemption;

/// A moment on the site's clocks.
#[must_use]
pub fn moment(milliseconds: i64, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        Err(_) => milliseconds.to_string(),
    }
}

struct Row {
    one: Exemption,
    state: &'static str,
    ends: String,
    added: String,
}

fn word(text: Option<&String>) -> Cell {
    text.map_or(Cell::Missing, Cell::text)
}

const EXEMPTIONS: &[Field<Row>] = &[
    (always("id", "ID"), |row| Cell::text(&row.one.id)),
    (always("user", "User"), |row| Cell::text(&row.one.user)),
    (always("rule", "Rule"), |row| word(row.one.rule.as_ref())),
    (hide(2, "cluster", "Cluster"), |row| word(row.one.cluster.as_ref())),
    (always("state", "State"), |row| Cell::text(row.state)),
    (always("ends", "Ends"), |row| Cell::text(&row.ends)),
    (drop(1, "reason", "Reason"), |row| Cell::text(&row.one.reason)),
    (drop(4, "added", "Added"), |row| Cell::text(&row.added)),
    (drop(3, "by", "By"), |row| Cell::text(&row.one.by)),
    (hide(5, "removed_by", "Removed by"), |row| {
        row.one.removed.as_ref().map_or(Cell::Missing, |(_, by)| Cell::text(by))
    }),
];

/// Exemptions with their states at a moment. A rule that is missing stands for all rules.
#[must_use]
pub fn exemptions(list: Vec<Exemption>, now: Timestamp, zone: &TimeZone) -> Document {
    let time = |at: Timestamp| moment(at.get().saturating_mul(1000), zone);
    let rows: Vec<Row> = list
        .into_iter()
        .map(|one| Row {
            state: match &one.removed {
                Some(_) => "removed",
                None if one.holds(now) => "holds",
                None => "ended",
            },
            ends: time(one.ends),
            added: time(one.added),
            one,
        })
        .collect();
    let holding = rows.iter().filter(|row| row.state == "holds").count();
    let headline = format!("{} of users who are left alone.", counted(holding as u64, "exemption"));
    let mut sheet = Sheet::new("exemptions", "Exemptions", EXEMPTIONS, &rows);
    sheet.top = 0;
    Document {
        title: "Exemptions".to_owned(),
        headline: vec![headline],
        facts: Vec::new(),
        sheets: vec![sheet],
    }
}

struct Line {
    at: String,
    made: Made,
}

const ENTRIES: &[Field<Line>] = &[
    (always("at", "When"), |line| Cell::text(&line.at)),
    (always("actor", "Who"), |line| Cell::text(&line.made.entry.actor)),
    (always("action", "Did"), |line| Cell::text(&line.made.entry.action)),
    (always("subject", "To"), |line| Cell::text(&line.made.entry.subject)),
    (always("detail", "Detail"), |line| Cell::text(&line.made.entry.detail)),
];

/// The audit log.
#[must_use]
pub fn audit(list: Vec<Made>, zone: &TimeZone) -> Document {
    let line = |made: Made| Line { at: moment(made.at_ms, zone), made };
    let lines: Vec<Line> = list.into_iter().map(line).collect();
    let noun = if lines.len() == 1 { "entry" } else { "entries" };
    let mut sheet = Sheet::new("entries", "Audit log", ENTRIES, &lines);
    sheet.top = 0;
    Document {
        title: "Audit log".to_owned(),
        headline: vec![format!("{} {noun}.", lines.len())],
        facts: Vec::new(),
        sheets: vec![sheet],
    }
}
