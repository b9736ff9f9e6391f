//! The ten defects of the system whose metrics we keep: each is absent, and stays so.

use std::process::Command;
use std::time::Duration;

use steward_agent::config::Span;
use steward_tests::agent::{RunningAgent, command, config};
use steward_tests::cgroups::JobGroup;
use steward_tests::shared;
use steward_tests::slurm::submit;
use steward_tests::testbed::Testbed;

const PATIENCE: Duration = Duration::from_secs(120);

/// D1: every second single-threaded process was skipped.
#[test]
fn d1_every_single_threaded_process_is_counted() {
    let agent = RunningAgent::start(config());
    let job =
        submit("stw-alice", &[], "#!/bin/bash\nfor n in 1 2 3 4 5 6; do sleep 600 & done\nwait\n");
    let metrics = agent.wait_for("six sleeps", PATIENCE, |metrics| {
        let sleeps =
            metrics.value("jobs_thread_count", &[("slurm_job", &job.id), ("proc_name", "sleep")]);
        (sleeps == Some(6.0)).then(|| metrics.clone())
    });
    assert_eq!(metrics.job("jobs_spawned_processes", &job.id), Some(7.0), "six and their shell");
}

/// D2: a process or thread that came or went while it was read ended the exporter.
#[test]
fn d2_processes_that_come_and_go_do_not_end_the_agent() {
    let mut settings = config();
    settings.interval = Span(Duration::from_millis(100));
    let agent = RunningAgent::start(settings);
    let job = submit(
        "stw-bob",
        &["-n1"],
        "#!/usr/bin/python3\n\
         import os, threading, time\n\
         end = time.time() + 600\n\
         while time.time() < end:\n\
         \x20 threading.Thread(target=lambda: None).start()\n\
         \x20 pid = os.fork()\n\
         \x20 if pid == 0: os._exit(0)\n\
         \x20 os.waitpid(pid, 0)\n",
    );
    agent.wait_for("the job", PATIENCE, |metrics| metrics.job("jobs_rss", &job.id));
    let scans = |metrics: &steward_tests::exposition::Exposition| {
        metrics.value("steward_agent_scans_total", &[("instance", "n1")]).unwrap()
    };
    let first = scans(&agent.metrics());
    agent.wait_for("a hundred scans more", PATIENCE, |metrics| {
        assert!(metrics.job("jobs_rss", &job.id).is_some(), "the job was lost from a scan");
        (scans(metrics) >= first + 100.0).then_some(())
    });
    agent.stop();
}

/// D3: `jobs_uses_scratch` was 0 for every job.
#[test]
fn d3_an_open_file_on_scratch_is_seen() {
    let dir = shared::directory();
    let mut settings = config();
    settings.scratch.paths = vec![dir.path().to_path_buf()];
    let agent = RunningAgent::start(settings);
    let script = format!("#!/bin/bash\nexec 5>{}/out\nsleep 600\n", dir.path().display());
    let job = submit("stw-alice", &[], &script);
    agent.wait_for("the file on scratch", PATIENCE, |metrics| {
        (metrics.job("jobs_uses_scratch", &job.id)? == 1.0).then_some(())
    });
}

/// D4 and D5: GPU numbers were cut into characters, and their series stayed for ever.
#[test]
fn d4_d5_gpu_numbers_are_whole_and_go_with_the_job() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-bob", &["-p", "gpu", "--gres=gpu:1"], "#!/bin/bash\nsleep 600\n");
    let ids = agent.wait_for("the job's GPU", PATIENCE, |metrics| {
        let found = metrics.all("jobs_gpus_used", &[("slurm_job", job.id.as_str())]);
        let ids: Vec<String> = found.iter().map(|one| one.labels["gpuid"].clone()).collect();
        (!ids.is_empty()).then_some(ids)
    });
    assert!(ids.iter().all(|id| id.parse::<u32>().is_ok()), "{ids:?}");
    assert_eq!(ids.len(), 1);
    job.cancel();
    job.wait_ended(PATIENCE);
    agent.wait_for("nothing of the job is left", PATIENCE, |metrics| {
        metrics.of_job(&job.id).is_empty().then_some(())
    });
}

/// D6: two processes of one name overwrote one another, and ended the exporter when they went.
#[test]
fn d6_processes_of_one_name_are_summed_and_may_end() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let script = format!(
        "#!/bin/bash\n\
         sleep 600 & sleep 600 & last=$!\n\
         until [ -e {}/go ]; do read -t 0.2 <> <(:); done\n\
         kill $last\nwait\n",
        dir.path().display()
    );
    let job = submit("stw-carol", &[], &script);
    let sleeps = |expected: f64| {
        agent.wait_for(&format!("{expected} sleeps"), PATIENCE, |metrics| {
            let found = metrics
                .value("jobs_thread_count", &[("slurm_job", &job.id), ("proc_name", "sleep")])?;
            (found == expected).then_some(())
        });
    };
    sleeps(2.0);
    std::fs::write(dir.path().join("go"), "").unwrap();
    sleeps(1.0);
    agent.stop();
}

/// D7: the path behind a descriptor was asked for its status, which hangs with its file system.
#[test]
fn d7_the_path_of_an_open_file_is_never_touched() {
    let dir = shared::directory();
    let file = dir.path().join("perhaps-on-a-hung-server");
    let script = format!("#!/bin/bash\nexec 5>{}\nsleep 600\n", file.display());
    let job = submit("stw-alice", &[], &script);
    let agent = RunningAgent::start(config());
    agent.wait_for("the open file", PATIENCE, |metrics| {
        (metrics.job("jobs_opened_files", &job.id)? >= 2.0).then_some(())
    });
    let trace = dir.path().join("trace");
    let program = command(&["once", "--window", "100ms"]);
    let status = Command::new("strace")
        .args(["-f", "-s", "4096", "-o"])
        .arg(&trace)
        .arg(program.get_program())
        .args(program.get_args())
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let trace = std::fs::read_to_string(trace).unwrap();
    let name = "perhaps-on-a-hung-server";
    let mentions: Vec<&str> = trace.lines().filter(|line| line.contains(name)).collect();
    assert!(!mentions.is_empty(), "the trace shows no read of the link");
    for line in mentions {
        // `pid readlinkat(…`, or `pid <... readlinkat resumed>…` where two threads took turns.
        let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
        let call = call.trim_start_matches("<... ");
        assert!(
            call.starts_with("readlink") || call.starts_with("write"),
            "a call touched the path: {line}"
        );
    }
}

/// D8: I/O was the sum over live processes, so that it fell when one ended.
#[test]
fn d8_io_of_an_ended_process_stays() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let path = dir.path().display();
    // srun's task has slurmstepd as its parent: no process of the job takes its I/O over.
    let job = submit(
        "stw-bob",
        &["-n1"],
        &format!(
            "#!/bin/bash\n\
             srun -n1 /usr/bin/python3 -c 'import time; open(\"{path}/f\", \"wb\").write(b\"x\" * (8 << 20)); time.sleep(6)'\n\
             touch {path}/over; sleep 600\n"
        ),
    );
    const EIGHT_MIB: f64 = 8.0 * 1024.0 * 1024.0;
    agent.wait_for("8 MiB written", PATIENCE, |metrics| {
        (metrics.written(&job.id)? >= EIGHT_MIB).then_some(())
    });
    agent.wait_for("the writer has ended", PATIENCE, |metrics| {
        let gone = dir.path().join("over").exists()
            && metrics.job("jobs_spawned_processes", &job.id)? <= 2.0;
        gone.then_some(())
    });
    let after = agent.metrics().written(&job.id).unwrap();
    assert!((EIGHT_MIB..EIGHT_MIB + 1_000_000.0).contains(&after), "{after} bytes");
}

/// D9: user and system time were in clock ticks, a hundred times too large.
#[test]
fn d9_user_and_system_time_are_seconds() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-carol", &["-n1"], "#!/usr/bin/python3\nwhile True: pass\n");
    let (user, total) = agent.wait_for("two seconds of CPU", PATIENCE, |metrics| {
        let user = metrics.job("jobs_user_time", &job.id)?;
        let total = metrics.job("jobs_cpu_time_total", &job.id)?;
        (total > 2.0).then_some((user, total))
    });
    assert!((user - total).abs() < 0.5, "user {user}, total {total}");
}

/// D10: a job that ended before it ever had a task ended the exporter.
#[test]
fn d10_a_job_directory_without_a_task_is_a_leftover_and_may_go() {
    let mut settings = config();
    settings.interval = Span(Duration::from_millis(200));
    let agent = RunningAgent::start(settings);
    let group = JobGroup::make("stw10", 0, 900_010);
    agent.wait_for("the leftover is counted", PATIENCE, |metrics| {
        let count = metrics.value("steward_agent_leftover_directories", &[("instance", "stw10")]);
        (count == Some(1.0)).then_some(())
    });
    assert!(agent.metrics().of_job("900010").is_empty(), "a leftover is not a job");
    drop(group);
    let again = agent.metrics().value("steward_agent_scans_total", &[("instance", "n1")]).unwrap();
    agent.wait_for("more scans", PATIENCE, |metrics| {
        let scans = metrics.value("steward_agent_scans_total", &[("instance", "n1")])?;
        (scans > again + 3.0).then_some(())
    });
    agent.stop();
}
