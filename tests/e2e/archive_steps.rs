//! Steps of real jobs that ended before the stretch of time that sacct was asked for.

use std::fs;
use std::path::Path;

use steward_tests::accounted::{
    COLLECT, PATIENCE, assert_accounted, command, number, runs, wait_known,
};
use steward_tests::archive::{done, records};
use steward_tests::scripted::now;
use steward_tests::shared;
use steward_tests::slurm::{Job, run, submit};
use steward_tests::wait;

/// Two seconds of work in a step and, when the test says so, two in another.
const SCRIPT: &str = "#!/bin/bash
srun bash -c 'while ((SECONDS < 2)); do :; done'
while [ ! -e GO ]; do sleep 0.2; done
srun bash -c 'while ((SECONDS < 2)); do :; done'
";

/// Brings what is new into the archive, beginning where the last collection ended.
fn collect(data: &Path, config: &Path) {
    done(&command(data, &COLLECT).env("STEWARD_CONFIG", config).output().unwrap());
}

/// What sacct says of a job if asked for the time since a moment: its steps.
fn steps_since(job: &Job, moment: i64) -> Vec<String> {
    let from = run("date", &["-d", &format!("@{moment}"), "+%FT%T"]);
    let rows = run("sacct", &["-nPaD", "-S", from.trim(), "-E", "now", "-o", "JobIDRaw"]);
    let step = format!("{}.", job.id);
    rows.lines().filter_map(|row| row.strip_prefix(&step).map(str::to_owned)).collect()
}

#[test]
fn steps_that_ended_before_the_last_collection_count() {
    let (data, notes) = (tempfile::tempdir().unwrap(), shared::directory());
    let config = notes.path().join("steward.toml");
    fs::write(&config, "[collect]\noverlap = \"0s\"\n").unwrap();
    let go = notes.path().join("go");
    let job = submit("stw-alice", &["-n1"], &SCRIPT.replace("GO", &go.display().to_string()));
    let first = format!("{}.0", job.id);
    let ended: i64 = wait::until("the first step ends", PATIENCE, || {
        let end = ["SLURM_TIME_FORMAT=%s", "sacct", "-nP", "-j", &first, "-o", "End"];
        run("env", &end).trim().parse().ok()
    });
    wait::until_true("the step is over before the next collection", PATIENCE, || now() > ended + 1);
    // For some seconds after it began, sacct may tell of a job in no window.
    let (collected, before) = wait::until("the job in the archive", PATIENCE, || {
        let moment = now();
        collect(data.path(), &config);
        Some((moment, runs(&records(data.path()), &job.id).pop()?))
    });
    assert_eq!(before["is_complete"], "false", "{before:?}");
    fs::write(&go, "").unwrap();
    job.wait_ended(PATIENCE);
    wait_known(&job);
    let told = steps_since(&job, collected);
    assert!(told.contains(&"1".to_owned()) && !told.contains(&"0".to_owned()), "{told:?}");
    collect(data.path(), &config);
    let found = runs(&records(data.path()), &job.id).pop().unwrap();
    assert_eq!(found["is_complete"], "true", "{found:?}");
    assert!(number(&found, "total_cpu_seconds") > 2.0, "{found:?}");
    assert_accounted(&found);
    // As it was collected, it is rebuilt.
    let rebuild = ["archive", "rebuild"];
    done(&command(data.path(), &rebuild).env("STEWARD_CONFIG", &config).output().unwrap());
    assert_eq!(runs(&records(data.path()), &job.id), [found]);
}
