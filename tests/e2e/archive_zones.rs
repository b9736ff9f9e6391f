//! Clocks: wherever the program runs and whatever zone the site is in, a moment is a moment, and a day
//! is one of the site's.

use std::process::Command;

use serde_json::{Value, json};
use steward_tests::accounted::{self, PATIENCE, assert_accounted, near, number, runs, wait_known};
use steward_tests::archive::{done, records};
use steward_tests::scripted::{Scripted, now};
use steward_tests::shared;
use steward_tests::slurm::{run, submit};
use steward_tests::wait;

/// Half an hour off, and with clocks that change.
const ODD: &str = "America/St_Johns";

/// Whose jobs are summed up: of this user, in an account and a partition that are not the usual ones of
/// his; no other test has any there that go on.
const WHOSE: [&str; 3] = ["stw-bob", "biology", "gpu"];

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
    // For some seconds slurmdbd may not know since when the job could have run: then it is in no window.
    let found = wait::until(&format!("job {job} in the archive"), PATIENCE, || {
        done(&steward(&accounted::COLLECT));
        runs(&records(&data), job).pop()
    });
    assert_accounted(&found);
    let (start, end) = (number(&found, "start_time") as i64, number(&found, "end_time") as i64);
    let inside = start <= own.0 && own.1 <= end && own.0 - start < 60 && end - own.1 < 60;
    assert!(inside, "{clock}: {start} to {end}, the job's own clock said {own:?}");
    for at in [start - 86_400, start, start + 86_400] {
        let day = day(at, zone);
        let ask = ["analyze", "--from", &day, "--to", &day, "--json", "--user", WHOSE[0]];
        let output =
            steward(&[&ask[..], &["--account", WHOSE[1], "--partition", WHOSE[2]]].concat());
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
    let args = ["SLURM_TIME_FORMAT=%s", "sacct", "-nPDX", "-S", "now-4days", "-u", WHOSE[0]];
    let fields = ["-A", WHOSE[1], "-r", WHOSE[2], "-o", "Start,End,AllocCPUS"];
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
    let job = submit(WHOSE[0], &["-n1", "-A", WHOSE[1], "-p", WHOSE[2], "--mem=50M"], &script);
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

/// The last day of New York on which clocks were changed: its date, its first moment, the first of the
/// next day, and how many days ago; by another program's calendar.
const CHANGED: &str = "
import datetime, sys, zoneinfo
zone = zoneinfo.ZoneInfo('America/New_York')
first = lambda day: datetime.datetime(day.year, day.month, day.day, tzinfo=zone)
today = datetime.datetime.now(zone).date()
for back in range(1, 400):
    day = today - datetime.timedelta(back)
    begin, end = (int(first(day + datetime.timedelta(more)).timestamp()) for more in (0, 1))
    if end - begin != 24 * 3600:
        print(day, begin, end, back)
        break
";

#[test]
fn a_day_on_which_clocks_change_is_as_long_as_it_is() {
    let found = Command::new("python3").args(["-c", CHANGED]).output().unwrap();
    let found = done(&found);
    let [day, begin, end, back] = found.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{found}")
    };
    let (begin, end): (i64, i64) = (begin.parse().unwrap(), end.parse().unwrap());
    let length = (end - begin) / 3600;
    assert!(length == 23 || length == 25, "{found}");
    let site = Scripted::new("");
    let config = site.data().with_file_name("steward.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"UTC\"", "\"America/New_York\"")).unwrap();
    // From noon of the day before to noon of the day after, and one in the last hour of the day.
    let (start, over) = (begin - 12 * 3600, end + 12 * 3600);
    let job = |id: u32, start: i64, end: i64, cpus: u32| {
        json!({
            "JobIDRaw": id, "JobID": id, "User": "ann", "State": "COMPLETED", "Submit": start,
            "Start": start, "End": end, "ElapsedRaw": end - start, "AllocCPUS": cpus,
            "AllocNodes": 1, "NodeList": "n1",
        })
    };
    site.answer(&json!([job(1, start, over, 2), job(2, end - 3600, end, 1)]));
    let days: i64 = back.parse::<i64>().unwrap() + 1;
    site.steward(&["collect", "--days", &days.to_string(), "--no-summary"]);
    let near_it = [begin - 3600, begin, end].map(|at| self::day(at, "America/New_York"));
    let ask = ["analyze", "--from", &near_it[0], "--to", &near_it[2], "--json", "--table", "days"];
    let lines = site.json(&ask);
    let expected = [24.0, 2.0 * length as f64 + 1.0, 24.0];
    assert_eq!((near_it[1].as_str(), lines.as_array().unwrap().len()), (day, 3), "{lines}");
    for ((line, day), hours) in lines.as_array().unwrap().iter().zip(&near_it).zip(expected) {
        assert_eq!(line["day"], json!(day), "{lines}");
        let found = line["cpu_hours"].as_f64().unwrap();
        assert!(near(found, hours), "{found} on {day}, not {hours}: {lines}");
    }
    let only = site.json(&["analyze", "--from", day, "--to", day, "--json"]);
    assert!(near(only["totals"]["cpu_hours"].as_f64().unwrap(), expected[1]), "{only}");
}
