//! `steward-agent metrics`: the catalogue for people and scripts.

use std::fmt::Write;

use serde::Serialize;
use steward_common::metric::{CATALOGUE, Kind};

/// One line of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    labels: Vec<&'static str>,
    since: &'static str,
    replaced_by: Option<&'static str>,
    help: &'static str,
}

/// Every metric, in order of its name.
///
/// # Errors
/// If JSON cannot be written.
pub fn list(json: bool) -> anyhow::Result<String> {
    let mut rows: Vec<Row> = CATALOGUE
        .iter()
        .map(|def| Row {
            name: def.name,
            kind: match def.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            },
            unit: def.unit.word(),
            labels: def.all_labels().collect(),
            since: def.since,
            replaced_by: def.replaced_by,
            help: def.help,
        })
        .collect();
    rows.sort_by_key(|row| row.name);
    if json {
        return Ok(serde_json::to_string_pretty(&rows)? + "\n");
    }
    let mut out = String::new();
    for row in rows {
        writeln!(out, "{} ({}, {})", row.name, row.kind, row.unit)?;
        writeln!(out, "    {}.", row.help)?;
        writeln!(out, "    Labels: {}.", row.labels.join(", "))?;
    }
    Ok(out)
}
