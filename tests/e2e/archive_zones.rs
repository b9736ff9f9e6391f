//! Clocks: wherever the program runs and whatever zone the site is in, a moment is a moment, and a day
//! is one of the site's.

use std::process::Command;

use serde_json::{Value, json};
use steward_tests::accounted::{self, PATIENCE, assert_accounted, near, number, runs, wait_known};
use steward_tests::archive::{done, records};
use steward_tests::scripted::now;
use steward_tests::shared;
use steward_tests::slurm::{run, submit};

/// Half an hour off, and with clocks that change.
const ODD: &str = "America/St_Johns";

/// A zone in which it is another day than in UTC, for an hour at least or until UTC's next day.
fn elsewhere() -> &'static str {
    let hour = now() % 86_400 / 3600;
    if hour < 10 { "Pacific/Pago_Pago" } else { "Pacific/Kiritimati" }
}

/// The day of a moment in a zone, by the system.
fn day(at: i64, zone: &str) -> String {
    let date = Command::new("date").args(["-d", &format!("@{at}"), "+%F"]).env("TZ", zone).output();
    done(&date.unwrap()).trim().to_owned()
}

/// Collects a job with a clock of one zone for a site of another, if it says so, and holds it against
/// sacct and the job's own clock. `zone` is the one that people see.
fn held(job: &str, own: (i64, i64), clock: &str, site: Option<&str>, zone: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (data, config) = (dir.path().join("archive"), dir.path().join("steward.toml"));
    let line = site.map(|zone| format!("time_zone = {zone:?}\n"));
    std::fs::write(&config, line.unwrap_or_default()).unwrap();
    let steward = |arguments: &[&str]| {
        let mut command = accounted::command(&data, arguments);
        command.env("TZ", clock).env("STEWARD_CONFIG", &config);
        command.output().unwrap()
    };
    done(&steward(&accounted::COLLECT));
    let found = runs(&records(&data), job).pop().unwrap_or_else(|| panic!("no {job}"));
    assert_accounted(&found);
    let (start, end) = (number(&found, "start_time") as i64, number(&found, "end_time") as i64);
    let inside = start <= own.0 && own.1 <= end && own.0 - start < 60 && end - own.1 < 60;
    assert!(inside, "{clock}: {start} to {end}, the job's own clock said {own:?}");
    for at in [start - 86_400, start, start + 86_400] {
        let day = day(at, zone);
        let ask = ["analyze", "--from", &day, "--to", &day, "--json", "--user", "stw-bob"];
        let output = steward(&[&ask[..], &["--account", "physics"]].concat());
        let hours = by_sacct(&day, zone);
        assert_eq!(hours > 0.0, output.status.success(), "{hours} on {day} in {zone}: {output:?}");
        if hours > 0.0 {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let days = report["days"].as_array().unwrap();
            assert_eq!((days.len(), &days[0]["day"]), (1, &json!(day)), "{report}");
            let found = days[0]["cpu_hours"].as_f64().unwrap();
            assert!(near(found, hours), "{found} hours on {day} in {zone}, not {hours}");
        }
    }
}

/// The CPU-hours of that user and account on a day of a zone, by sacct and the system's calendar.
fn by_sacct(day: &str, zone: &str) -> f64 {
    let begin = |word: &str| {
        let begin = Command::new("date").args(["+%s", "-d", word]).env("TZ", zone).output();
        done(&begin.unwrap()).trim().parse::<f64>().unwrap()
    };
    let (from, to) = (begin(day), begin(&format!("{day} + 1 day")));
    let args = ["SLURM_TIME_FORMAT=%s", "sacct", "-nPDX", "-S", "now-4days", "-u", "stw-bob"];
    let fields = ["-A", "physics", "-o", "Start,End,AllocCPUS"];
    let text = run("env", &[&args[..], &fields].concat());
    let hours = |line: &str| {
        let row: Vec<f64> = line.split('|').filter_map(|part| part.parse().ok()).collect();
        let [start, end, cpus] = row[..] else { return 0.0 };
        cpus * (end.min(to) - start.max(from)).max(0.0) / 3600.0
    };
    text.lines().map(hours).sum()
}

#[test]
fn a_real_job_has_its_times_and_its_day_in_any_zone() {
    let notes = shared::directory();
    let note = notes.path().join("clock");
    let script = format!("#!/bin/sh\ndate +%s >{0}\nsleep 4\ndate +%s >>{0}\n", note.display());
    let job = submit("stw-bob", &["-n1", "-A", "physics", "--mem=50M"], &script);
    job.wait_ended(PATIENCE);
    wait_known(&job);
    let text = std::fs::read_to_string(&note).unwrap();
    let clock: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let own = (clock[0], clock[1]);
    let other = elsewhere();
    assert_ne!(day(own.0, other), day(own.0, "UTC"));
    held(&job.id, own, ODD, None, ODD);
    held(&job.id, own, other, None, other);
    held(&job.id, own, ODD, Some(other), other);
    held(&job.id, own, other, Some("UTC"), "UTC");
}
