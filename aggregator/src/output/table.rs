//! Tables for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use steward_common::id::NodeName;
use steward_common::slurm::hostlist;
use steward_common::unit::Bytes;

use crate::now::Row;

/// What stands where nothing was measured.
const UNKNOWN: &str = "-";

/// The jobs of `steward now`, one a line.
#[must_use]
pub fn now(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No job is seen by any agent at the moment.\n".to_owned();
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "JOB",
            "USER",
            "ACCOUNT",
            "PARTITION",
            "NODES",
            "CPU",
            "MEMORY",
            "PROCESSES",
            "FILES",
            "GPUS",
        ]);
    for row in rows {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let count = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |v| format!("{v:.0}"));
        table.add_row([
            row.job.to_string(),
            text(&row.user),
            text(&row.account),
            text(&row.partition),
            nodes(&row.nodes),
            cpu(row.cores_busy, row.cpus),
            memory(row.memory_bytes, row.memory_limit_bytes),
            count(row.processes),
            count(row.open_files),
            // No GPU series means that the job holds none.
            row.gpus.map_or_else(String::new, |gpus| format!("{gpus:.0}")),
        ]);
    }
    for column in [0, 7, 8, 9] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn nodes(names: &[String]) -> String {
    let parsed: Result<Vec<NodeName>, _> = names.iter().map(|name| name.parse()).collect();
    parsed.map_or_else(|_| names.join(","), |names| hostlist::fold(&names))
}

/// `1.0 of 2 cores, 50 %`.
fn cpu(busy: Option<f64>, held: Option<f64>) -> String {
    match (busy, held) {
        (Some(busy), Some(held)) if held > 0.0 => {
            format!("{busy:.1} of {held:.0} ({:.0} %)", busy / held * 100.0)
        }
        (Some(busy), _) => format!("{busy:.1}"),
        (None, Some(held)) => format!("{UNKNOWN} of {held:.0}"),
        (None, None) => UNKNOWN.to_owned(),
    }
}

fn memory(used: Option<f64>, limit: Option<f64>) -> String {
    match (used, limit) {
        (Some(used), Some(limit)) if limit > 0.0 => {
            format!("{} of {} ({:.0} %)", bytes(used), bytes(limit), used / limit * 100.0)
        }
        (Some(used), _) => bytes(used),
        (None, _) => UNKNOWN.to_owned(),
    }
}

/// Prometheus has only floating point; a size is whole and not negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn bytes(value: f64) -> String {
    Bytes::new(value.clamp(0.0, 9e18) as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_as_a_sentence_and_the_unmeasured_is_a_dash() {
        let row = Row {
            cluster: "c1".to_owned(),
            job: 7,
            user: Some("alice".to_owned()),
            nodes: vec!["n2".to_owned(), "n1".to_owned()],
            cores_busy: Some(1.0),
            cpus: Some(4.0),
            memory_bytes: Some(512.0 * 1024.0 * 1024.0),
            memory_limit_bytes: Some(2.0 * 1024.0 * 1024.0 * 1024.0),
            ..Row::default()
        };
        let text = now(&[row]);
        let line = text.lines().nth(1).unwrap();
        for part in ["7", "alice", "n[1-2]", "1.0 of 4 (25 %)", "(25 %)", " - "] {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn no_jobs_is_a_sentence() {
        assert_eq!(now(&[]).lines().count(), 1);
    }

    #[test]
    fn absent_and_zero_look_different() {
        assert_eq!(cpu(Some(0.0), Some(2.0)), "0.0 of 2 (0 %)");
        assert_eq!(cpu(None, Some(2.0)), "- of 2");
        assert_eq!(memory(None, Some(1.0)), "-");
    }
}
