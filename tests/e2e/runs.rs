//! Runs of jobs: over restarts of the agent, over requeues.

use std::time::Duration;

use steward_tests::agent::{RunningAgent, config};
use steward_tests::shared;
use steward_tests::slurm::{run, submit};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_restarted_agent_goes_on_from_its_base() {
    let dir = shared::directory();
    let path = dir.path().display();
    let mut settings = config();
    settings.paths.state = dir.path().join("state.json");
    let agent = RunningAgent::start(settings.clone());
    // What the step's task wrote is in no live process once the step is over.
    let job = submit(
        "stw-alice",
        &["-n1"],
        &format!(
            "#!/bin/bash\n\
             srun -n1 /usr/bin/python3 -c 'import time; open(\"{path}/f\", \"wb\").write(b\"x\" * (8 << 20)); time.sleep(4)'\n\
             touch {path}/over; sleep 600\n"
        ),
    );
    const EIGHT_MIB: f64 = 8.0 * 1024.0 * 1024.0;
    let (before, cpu_before) = agent.wait_for("the step is over", PATIENCE, |metrics| {
        let over = dir.path().join("over").exists();
        let bytes = metrics.written(&job.id).filter(|bytes| over && *bytes >= EIGHT_MIB)?;
        Some((bytes, metrics.job("jobs_cpu_time_total", &job.id)?))
    });
    agent.wait_scans(2);
    agent.stop();

    let agent = RunningAgent::start(settings);
    let (after, cpu_after) = agent.wait_for("the job again", PATIENCE, |metrics| {
        Some((metrics.written(&job.id)?, metrics.job("jobs_cpu_time_total", &job.id)?))
    });
    assert!(after >= before, "bytes written went back from {before} to {after}");
    assert!(after < before + 1_000_000.0, "and nothing counted twice: {before}, {after}");
    assert!(cpu_after >= cpu_before && cpu_after < cpu_before + 1.0, "{cpu_before}, {cpu_after}");
}

#[test]
fn a_requeued_job_starts_afresh() {
    let mut settings = config();
    // The old values are still there when the job comes back.
    settings.linger = 120;
    let agent = RunningAgent::start(settings);
    let job = submit(
        "stw-bob",
        &["-n1", "-w", "n1", "--requeue"],
        "#!/usr/bin/python3\n\
         import os, time\n\
         while 'SLURM_RESTART_COUNT' not in os.environ and time.process_time() < 3: pass\n\
         time.sleep(600)\n",
    );
    agent.wait_for("three seconds of CPU", PATIENCE, |metrics| {
        (metrics.job("jobs_cpu_time_total", &job.id)? >= 2.5).then_some(())
    });
    run("scontrol", &["requeue", &job.id]);
    let mut told = String::new();
    let total = agent.wait_for("the second run", Duration::from_secs(240), |metrics| {
        // What the agent makes of it, should the wait be in vain.
        let of_job = |name| metrics.job(name, &job.id);
        let seen = ["jobs_spawned_processes", "jobs_covered_from_timestamp_seconds"].map(of_job);
        let errors: f64 = ["steward_agent_errors_total", "steward_agent_stuck_readers"]
            .iter()
            .flat_map(|name| metrics.samples.iter().filter(move |sample| sample.name == **name))
            .map(|sample| sample.value)
            .sum();
        let now = format!("{:?} {seen:?} {errors}", of_job("jobs_cpu_time_total"));
        if now != told {
            println!("{now}");
            told = now;
        }
        let total = metrics.job("jobs_cpu_time_total", &job.id)?;
        (total < 2.0).then_some(total)
    });
    assert!(total < 1.0, "{total} s in a run that has only slept");
}
