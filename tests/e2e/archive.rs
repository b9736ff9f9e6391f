//! Real jobs of a real Slurm, from sbatch to the archive: every number agrees with what the job did.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use steward_common::slurm::sacct::{Field, Layout};
use steward_tests::accounted::{
    PATIENCE, Record, archived, assert_accounted, ended, near, number, runs, settled,
};
use steward_tests::archive::records;
use steward_tests::service;
use steward_tests::slurm::{Job, run, submit};

#[test]
fn what_a_job_did_is_what_the_archive_says() {
    let data = tempfile::tempdir().unwrap();
    let job = submit(
        "stw-alice",
        &["-n1", "-c2", "--mem=400M", "-t", "10", "-J", "three seconds"],
        "#!/usr/bin/python3\n\
         import time\n\
         block = bytearray(100 << 20)\n\
         while time.process_time() < 3: pass\n\
         time.sleep(12)\n",
    );
    job.wait_ended(PATIENCE);
    let run = archived(data.path(), "memory of the job", |all| {
        let run = runs(all, &job.id).pop()?;
        (run["is_complete"] == "true" && run["max_rss_mb"] != "null").then_some(run)
    });
    assert_eq!(run["state"], "COMPLETED");
    assert_eq!(run["user"], "stw-alice");
    assert_eq!(run["job_name"], "three seconds");
    assert_eq!(run["alloc_cpus"], "2");
    assert_eq!(run["alloc_gpus"], "0");
    assert_eq!(number(&run, "req_mem_mb"), 400.0);
    assert_eq!((&*run["cpu_source"], &*run["memory_source"]), ("steps", "steps"));
    let cpu = number(&run, "total_cpu_seconds");
    assert!((3.0..4.5).contains(&cpu), "{cpu} s of CPU for 3");
    let peak = number(&run, "max_rss_mb");
    assert!((100.0..160.0).contains(&peak), "{peak} MiB for 100 and Python");
    let elapsed = number(&run, "elapsed_seconds");
    assert!((14.0..120.0).contains(&elapsed), "{elapsed} s for 15");
    let seconds = number(&run, "end_time") - number(&run, "start_time");
    assert_eq!(seconds, elapsed);
    // From first principles, not by the program's own functions.
    assert!(near(number(&run, "cpu_efficiency"), 100.0 * cpu / (2.0 * elapsed)));
    assert!(near(number(&run, "cpu_hours_wasted"), (2.0 * elapsed - cpu) / 3600.0));
    assert!(near(number(&run, "memory_efficiency"), 100.0 * peak / 400.0));
    assert!(near(number(&run, "memory_gb_hours_reserved"), 400.0 / 1024.0 * elapsed / 3600.0));
    assert!(near(number(&run, "time_limit_use"), 100.0 * elapsed / 600.0));
    let wait = number(&run, "start_time") - number(&run, "submit_time");
    assert_eq!(number(&run, "wait_seconds"), wait);
    // And by another source: what sacct itself says of the job.
    assert_accounted(&run);
}

#[test]
fn every_way_to_end_is_told_apart() {
    let data = tempfile::tempdir().unwrap();
    let sleep = "#!/bin/sh\nsleep 600\n";
    let failed = submit("stw-bob", &["--mem=50M"], "#!/bin/sh\nexit 3\n");
    let late = submit("stw-bob", &["--mem=50M", "-t", "1"], sleep);
    let held = submit("stw-bob", &["--mem=50M", "--hold"], sleep);
    let missed = submit("stw-bob", &["--mem=50M", "--hold", "-t", "1", "--deadline=now+65"], sleep);
    let stopped = submit("stw-bob", &["--mem=50M"], sleep);
    let greedy = submit(
        "stw-bob",
        &["--mem=60M"],
        "#!/usr/bin/python3\nimport time\nx = bytearray(500 << 20)\nx[::4096] = x[::4096]\ntime.sleep(60)\n",
    );
    stopped.wait_running();
    // Before it is cancelled it is open, and what it uses is not known yet.
    let going = archived(data.path(), "the running job", |all| runs(all, &stopped.id).pop());
    assert_eq!((&*going["is_complete"], &*going["end_time"]), ("false", "null"));
    assert_eq!(going["total_cpu_seconds"], "null");
    stopped.cancel();
    held.cancel();
    let run = ended(data.path(), &failed);
    assert_eq!((&*run["state"], &*run["exit_code"]), ("FAILED", "3"));
    assert_accounted(&run);
    let run = ended(data.path(), &stopped);
    assert_eq!(run["state"], "CANCELLED");
    assert_eq!(run["cancelled_by_uid"], "0", "root cancelled it");
    assert_ne!(run["start_time"], "null");
    assert_accounted(&run);
    let run = ended(data.path(), &held);
    assert_eq!(run["state"], "CANCELLED");
    // It never had anything, so it used and wasted nothing.
    assert_eq!((&*run["start_time"], &*run["node_list"]), ("null", "null"));
    assert_eq!((&*run["alloc_cpus"], &*run["cpu_efficiency"]), ("0", "null"));
    assert_eq!((number(&run, "cpu_hours_reserved"), &*run["elapsed_seconds"]), (0.0, "0"));
    let run = ended(data.path(), &greedy);
    assert_eq!(run["state"], "OUT_OF_MEMORY");
    assert_eq!(number(&run, "req_mem_mb"), 60.0);
    assert_accounted(&run);
    let run = ended(data.path(), &late);
    assert_eq!(run["state"], "TIMEOUT");
    assert!(number(&run, "time_limit_use") >= 100.0);
    assert!((60.0..180.0).contains(&number(&run, "elapsed_seconds")), "{run:?}");
    assert_accounted(&run);
    // By now it is too late for it to start.
    steward_tests::slurm::run("scontrol", &["release", &missed.id]);
    let run = ended(data.path(), &missed);
    assert_eq!((&*run["state"], &*run["start_time"]), ("DEADLINE", "null"));
}

#[test]
fn work_in_steps_arrays_and_parts_is_counted_where_it_was_done() {
    let data = tempfile::tempdir().unwrap();
    let burn = "srun --mem=40M python3 -c 'import time\nwhile time.process_time() < 2: pass'\n";
    let steps = submit("stw-carol", &["-n1", "--mem=60M"], &format!("#!/bin/sh\n{burn}{burn}"));
    let array = submit("stw-carol", &["-n1", "--mem=50M", "--array=3,5"], "#!/bin/sh\nsleep 1\n");
    let het =
        submit("stw-carol", &["-n1", "--mem=50M", ":", "-n2", "--mem=60M"], "#!/bin/sh\nsleep 2\n");
    steps.wait_ended(PATIENCE);
    let run = ended(data.path(), &steps);
    let cpu = number(&run, "total_cpu_seconds");
    assert!((4.0..6.5).contains(&cpu), "{cpu} s of CPU for twice 2");
    // batch, extern and two of srun.
    assert_eq!(run["steps"], "4");
    assert_accounted(&run);
    let tasks = settled(data.path(), &array, |all| {
        let of_array = |run: &&Record| run["array_job_id"] == array.id;
        let done: Vec<Record> = all.iter().filter(of_array).cloned().collect();
        let over = done.iter().filter(|run| run["is_complete"] == "true").count();
        (over == 2).then_some(done)
    });
    let mut shown: Vec<&str> = tasks.iter().map(|run| run["job_id"].as_str()).collect();
    shown.sort_unstable();
    assert_eq!(shown, [format!("{}_3", array.id), format!("{}_5", array.id)]);
    assert_ne!(tasks[0]["job_id_raw"], tasks[1]["job_id_raw"]);
    tasks.iter().for_each(assert_accounted);
    let parts = settled(data.path(), &het, |all| {
        let of_het = |run: &&Record| run["het_job_id"] == het.id && run["is_complete"] == "true";
        let parts: Vec<Record> = all.iter().filter(of_het).cloned().collect();
        (parts.len() == 2).then_some(parts)
    });
    let mut given: Vec<(&str, &str)> =
        parts.iter().map(|run| (run["het_offset"].as_str(), run["req_cpus"].as_str())).collect();
    given.sort_unstable();
    assert_eq!(given, [("0", "1"), ("1", "2")]);
    parts.iter().for_each(assert_accounted);
}

#[test]
fn a_requeued_job_has_two_runs() {
    let data = tempfile::tempdir().unwrap();
    let job = submit(
        "stw-alice",
        &["-n1", "--mem=50M", "--requeue"],
        "#!/bin/sh\n[ -n \"$SLURM_RESTART_COUNT\" ] || exec sleep 600\n",
    );
    job.wait_running();
    // The first run is seen while it goes on: it must not stay open.
    let first = archived(data.path(), "the first run", |all| runs(all, &job.id).pop());
    assert_eq!((&*first["is_complete"], &*first["restart"]), ("false", "0"));
    run("scontrol", &["requeue", &job.id]);
    let both = settled(data.path(), &job, |all| {
        let runs = runs(all, &job.id);
        let over = runs.iter().all(|run| run["is_complete"] == "true");
        (runs.len() == 2 && over).then_some(runs)
    });
    assert_eq!([&*both[0]["restart"], &*both[1]["restart"]], ["0", "1"]);
    assert_eq!([&*both[0]["state"], &*both[1]["state"]], ["REQUEUED", "COMPLETED"]);
    assert!(number(&both[0], "end_time") <= number(&both[1], "start_time"));
    both.iter().for_each(assert_accounted);
}

/// A whole row of a job that never was, as sacct would print it.
fn forged_row(id: &str) -> String {
    let layout = Layout::of_help(&run("sacct", &["--helpformat"]));
    assert!(layout.place(Field::SubmitLine).is_some());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let fields = layout.fields().iter().map(|field| match field {
        Field::JobIdRaw | Field::JobId => id.to_owned(),
        Field::Cluster => "steward".to_owned(),
        Field::User => "stw-alice".to_owned(),
        Field::State => "FAILED".to_owned(),
        Field::Submit | Field::Eligible | Field::Start | Field::End => now.to_string(),
        Field::Elapsed | Field::AllocCpus => "1".to_owned(),
        _ => String::new(),
    });
    fields.chain([id.to_owned()]).collect::<Vec<_>>().join("\u{1f}")
}

#[test]
fn a_text_that_looks_like_rows_of_others_makes_none() {
    let data = tempfile::tempdir().unwrap();
    let text = format!("--comment=x\n{}\n{}\n", forged_row("4000001"), forged_row("4000002"));
    let job = submit("stw-bob", &["--mem=50M", "-J", "liar", &text], "#!/bin/sh\nexit 0\n");
    let run = ended(data.path(), &job);
    assert_eq!((&*run["user"], &*run["state"]), ("stw-bob", "COMPLETED"));
    assert_eq!(run["job_name"], "liar");
    let all = records(data.path());
    assert!(!all.iter().any(|run| run["job_id_raw"].starts_with("400000")));
}

#[test]
fn names_with_anything_in_them_survive() {
    let data = tempfile::tempdir().unwrap();
    // Slurm makes a back quote of a double one, and its database here knows Latin letters only.
    let names =
        ["a|b", "two\nlines", "quote's", "Grüße", "bell\u{7}", "unit\u{1f}separator", "100%"];
    let jobs: Vec<(&str, Job)> = names
        .into_iter()
        .map(|name| (name, submit("stw-bob", &["--mem=50M", "-J", name], "#!/bin/sh\nexit 0\n")))
        .collect();
    for (name, job) in &jobs {
        assert_eq!(ended(data.path(), job)["job_name"], *name);
    }
    // Another collection, and a rebuild from what sacct said then, change nothing.
    let before = records(data.path());
    let output =
        service::steward(&["archive", "rebuild", "--data-dir", data.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, job) in &jobs {
        let rebuilt = runs(&records(data.path()), &job.id);
        assert_eq!(rebuilt, runs(&before, &job.id), "{name:?}");
        as_sacct_told(data.path(), job, name);
    }
}

/// The rows that are kept of a job, although they are kept short, are those of sacct.
fn as_sacct_told(data: &Path, job: &Job, name: &str) {
    let data = data.to_str().unwrap();
    let output = service::steward(&["archive", "rows", &job.id, "--json", "--data-dir", data]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let versions: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = versions.as_array().unwrap().last().unwrap()["rows"].as_array().unwrap().clone();
    assert_eq!(rows[0]["JobName"], name);
    for field in ["JobID", "Account", "ReqTRES", "AllocTRES", "TRESUsageInTot", "TRESUsageInMax"] {
        let kept: Vec<&str> = rows.iter().map(|row| row[field].as_str().unwrap_or("")).collect();
        let told = run("sacct", &["-n", "-P", "--noconvert", "-j", &job.id, "-o", field]);
        assert_eq!(kept.join("\n").trim(), told.trim(), "{field} of {name:?}");
    }
}
