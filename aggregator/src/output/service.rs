//! The service, for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::serve::handler::status::Status;

/// What stands where nothing has happened.
const NONE: &str = "-";

/// What the service said about itself, with times on the clocks of `zone`.
#[must_use]
pub fn status(status: &Status, zone: &TimeZone) -> String {
    let time =
        |moment: Timestamp| moment.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let or_none = |moment: Option<Timestamp>| moment.map_or_else(|| NONE.to_owned(), time);
    let mut out = format!(
        "steward {}, {}, process {}, since {}\n",
        status.version,
        status.role,
        status.pid,
        time(status.started)
    );
    if !status.tasks.is_empty() {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header([
                "TASK",
                "NOW",
                "LAST SUCCESS",
                "LAST FAILURE",
                "NEXT",
                "OK",
                "FAILED",
                "SKIPPED",
            ]);
        for task in &status.tasks {
            let now = match (task.running_since, task.is_failing()) {
                (Some(_), _) => "running",
                (None, true) => "failing",
                (None, false) => "waiting",
            };
            table.add_row([
                task.name.clone(),
                now.to_owned(),
                or_none(task.last_success),
                or_none(task.last_failure),
                // Only a leader's tasks run.
                or_none(task.next.filter(|_| status.role == "leader")),
                task.ok.to_string(),
                task.failed.to_string(),
                task.skipped.to_string(),
            ]);
        }
        for column in [5, 6, 7] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        out.push('\n');
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    for task in &status.tasks {
        if let Some(error) = &task.error {
            out.push_str(&format!("\n{}: {error}\n", task.name));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::serve::handler::status::{TaskStatus, You};

    use super::*;

    #[test]
    fn a_failing_task_stands_out_and_times_are_those_of_the_site() {
        let task = TaskStatus {
            name: "pushgateway".to_owned(),
            ok: 7,
            failed: 1,
            skipped: 0,
            running_since: None,
            last_success: Some("2026-07-01T10:00:00Z".parse().unwrap()),
            last_failure: Some("2026-07-01T10:01:00Z".parse().unwrap()),
            next: Some("2026-07-01T10:02:00Z".parse().unwrap()),
            error: Some("no answer".to_owned()),
        };
        let told = Status {
            version: "0.1.0".to_owned(),
            role: "leader".to_owned(),
            started: "2026-07-01T00:00:00Z".parse().unwrap(),
            pid: 7,
            tasks: vec![task],
            you: You { uid: 0, user: None, is_admin: true },
        };
        let text = status(&told, &TimeZone::get("Europe/Berlin").unwrap());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "steward 0.1.0, leader, process 7, since 2026-07-01 02:00:00");
        for part in ["failing", "2026-07-01 12:00:00", "2026-07-01 12:02:00"] {
            assert!(lines[3].contains(part), "{part}: {}", lines[3]);
        }
        assert_eq!(lines[5], "pushgateway: no answer");
    }
}
