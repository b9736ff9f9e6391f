//! A job from its first moment to its last: short ones, suspended ones, idle ones, killed ones.

use std::fs;
use std::time::Duration;

use steward_tests::agent::{Config, RunningAgent, Span, command, config};
use steward_tests::shared;
use steward_tests::slurm::{allocate, run, submit};
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(120);

/// Scans so seldom that only looks at new jobs can see what happens.
fn seldom() -> Config {
    Config { interval: Span(Duration::from_secs(600)), linger: 2, ..config() }
}

/// Two seconds between two scans: what is there of it was seen by looks.
#[test]
fn a_job_of_two_seconds_leaves_a_record() {
    let agent = RunningAgent::start(seldom());
    let dir = shared::directory();
    let path = dir.path().display();
    let job = submit(
        "stw-alice",
        &["-n1"],
        &format!(
            "#!/usr/bin/python3\n\
             import time\n\
             while time.process_time() < 1: pass\n\
             time.sleep(1)\n\
             open('{path}/end', 'w').write(f'{{time.process_time()}} {{time.time()}}')\n"
        ),
    );
    let own = wait::until("the job's own account", PATIENCE, || {
        let text = fs::read_to_string(dir.path().join("end")).ok()?;
        let (cpu, end) = text.split_once(' ')?;
        Some((cpu.parse::<f64>().ok()?, end.parse::<f64>().ok()?))
    });
    job.wait_ended(PATIENCE);
    let metrics = agent.metrics();
    let until = metrics.job("jobs_covered_until_timestamp_seconds", &job.id).expect("a record");
    let from = metrics.job("jobs_covered_from_timestamp_seconds", &job.id).unwrap();
    let cpu = metrics.job("jobs_cpu_usage_seconds_total", &job.id).unwrap();
    println!(
        "job {}: seen for {:.1} s, until {:.2} s before its end, {cpu:.2} of {:.2} s of CPU",
        job.id,
        until - from,
        own.1 - until,
        own.0
    );
    // The last look is at most half a second old, and as much again on a busy machine.
    assert!(own.1 - until < 1.5 && until - from > 0.5, "{from} to {until}, end {}", own.1);
    assert!((0.9..1.5).contains(&cpu), "{cpu} s");
}

#[test]
fn the_end_of_a_job_is_one_line_in_the_log() {
    let settings = "interval = \"300ms\"\nlinger = 0\n[scrape]\nlisten = \"127.0.0.1:0\"\n";
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("agent.toml"), settings).unwrap();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let path = dir.path().join("agent.toml");
    let mut agent =
        command(&["run", "--config", path.to_str().unwrap()]).stderr(log).spawn().unwrap();
    let text = || fs::read_to_string(dir.path().join("log")).unwrap();
    wait::until_true("the agent starts", PATIENCE, || text().contains("started"));
    let job = submit("stw-bob", &["-n1", "--mem=100M"], "#!/bin/bash\nsleep 3\n");
    let begun = format!(" job={} ", job.id);
    wait::until_true("the line", PATIENCE, || text().contains(&begun));
    // Some time later there is no second one.
    std::thread::sleep(Duration::from_secs(2));
    agent.kill().unwrap();
    agent.wait().unwrap();
    let all = text();
    let lines: Vec<&str> = all.lines().filter(|line| line.contains(&begun)).collect();
    assert_eq!(lines.len(), 1, "{all}");
    for field in [
        "job ended",
        "node=",
        "cpu_seconds=0.",
        "memory_limit_bytes=104857600",
        "oom_kills=0",
        "processes_peak=",
        "covered_until=",
    ] {
        assert!(lines[0].contains(field), "{field} in {}", lines[0]);
    }
    assert!(!lines[0].contains("stw-bob"), "no names in logs: {}", lines[0]);
}

#[test]
fn a_process_killed_for_memory_and_the_limit_are_counted() {
    let agent = RunningAgent::start(config());
    let job = submit(
        "stw-carol",
        &["-n1", "--mem=64M"],
        "#!/bin/bash\n/usr/bin/python3 -c 'x = bytearray(b\"x\") * (200 << 20)'\nsleep 600\n",
    );
    let metrics = agent.wait_for("the kill", PATIENCE, |metrics| {
        let kills = metrics.job("jobs_memory_oom_kills_total", &job.id)?;
        (kills > 0.0).then(|| metrics.clone())
    });
    assert_eq!(metrics.job("jobs_memory_oom_kills_total", &job.id), Some(1.0));
    assert!(metrics.job("jobs_memory_limit_hits_total", &job.id).unwrap() >= 1.0);
    let limit = metrics.job("jobs_memory_limit_bytes", &job.id).unwrap();
    assert_eq!(limit, 64.0 * 1024.0 * 1024.0);
    let peak = metrics.job("jobs_memory_peak_bytes", &job.id).unwrap();
    assert!(peak > 0.9 * limit && peak <= limit, "{peak} of {limit}");
}

#[test]
fn a_limit_that_is_changed_is_followed() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-carol", &["-n1", "--mem=100M"], "#!/bin/bash\nsleep 600\n");
    let limit = |mebibytes: f64| {
        agent.wait_for("the limit", PATIENCE, |metrics| {
            let limit = metrics.job("jobs_memory_limit_bytes", &job.id)?;
            (limit == mebibytes * 1024.0 * 1024.0).then_some(())
        });
    };
    limit(100.0);
    let group = job.cgroup();
    let memory =
        group.to_string_lossy().replace("/cpuacct/", "/memory/").replace("/freezer/", "/memory/");
    let file = ["memory.limit_in_bytes", "memory.max"]
        .map(|name| std::path::Path::new(&memory).join(name))
        .into_iter()
        .find(|path| path.exists())
        .unwrap();
    fs::write(file, (80 << 20).to_string()).unwrap();
    limit(80.0);
}

#[test]
fn a_suspended_job_is_frozen_and_goes_on() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-bob", &["-n1"], "#!/bin/bash\nsleep 600\n");
    let frozen = |wanted: f64| {
        agent.wait_for("the job is frozen or not", PATIENCE, |metrics| {
            (metrics.job("jobs_frozen", &job.id)? == wanted).then_some(())
        });
    };
    frozen(0.0);
    run("scontrol", &["suspend", &job.id]);
    frozen(1.0);
    assert!(agent.metrics().job("jobs_processes", &job.id).unwrap() >= 1.0, "not idle");
    assert_eq!(agent.metrics().job("jobs_idle_since_timestamp_seconds", &job.id), None);
    run("scontrol", &["resume", &job.id]);
    frozen(0.0);
}

/// An allocation in which nobody has started anything.
#[test]
fn a_job_without_a_process_is_idle_since_a_moment() {
    let agent = RunningAgent::start(config());
    let job = allocate("stw-alice", &["-n1", "--mem=77M"]);
    let since = |agent: &RunningAgent| {
        agent.wait_for("the idle job", PATIENCE, |metrics| {
            let limit = metrics.job("jobs_memory_limit_bytes", &job.id)?;
            assert_eq!(limit, 77.0 * 1024.0 * 1024.0);
            metrics.job("jobs_processes", &job.id).filter(|processes| *processes == 0.0)?;
            metrics.job("jobs_idle_since_timestamp_seconds", &job.id)
        })
    };
    let first = since(&agent);
    agent.wait_scans(2);
    assert_eq!(since(&agent), first, "it has been idle all the time");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((now - 60.0..now).contains(&first), "{first}, now {now}");
    // A step of a minute later ends that, and when it is over idling begins anew.
    let mut step = std::process::Command::new("runuser")
        .args(["-u", "stw-alice", "--", "srun", &format!("--jobid={}", job.id), "sleep", "3"])
        .env("SLURM_CONF", steward_tests::testbed::Testbed::get().slurm_conf())
        .current_dir("/tmp")
        .spawn()
        .unwrap();
    agent.wait_for("the step", PATIENCE, |metrics| {
        let busy = metrics.job("jobs_processes", &job.id)? > 0.0;
        let idle = metrics.job("jobs_idle_since_timestamp_seconds", &job.id).is_some();
        assert!(!(busy && idle), "busy and idle");
        busy.then_some(())
    });
    step.wait().unwrap();
    assert!(since(&agent) > first + 2.0, "a new idle time");
}
