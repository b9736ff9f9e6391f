//! What the agent says against what the job did, by an independent source.

use std::fs;
use std::time::Duration;

use steward_common::slurm::duration;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::exposition::Exposition;
use steward_tests::shared;
use steward_tests::slurm::{Job, submit};
use steward_tests::testbed::Testbed;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the agent shows `metric` of the job at a value that satisfies `good`.
fn job_value(
    agent: &RunningAgent,
    job: &Job,
    metric: &str,
    good: impl Fn(f64) -> bool,
) -> (f64, Exposition) {
    agent.wait_for(&format!("{metric} of job {}", job.id), PATIENCE, |metrics| {
        let value = metrics.job(metric, &job.id)?;
        good(value).then(|| (value, metrics.clone()))
    })
}

#[test]
fn cpu_seconds_agree_with_sacct_within_two_percent() {
    let agent = RunningAgent::start(config());
    // 30 s of CPU in a child, then some intervals of idling, so that the last scan has seen all.
    let job = submit(
        "stw-alice",
        &["-n1"],
        "#!/bin/bash\n\
         /usr/bin/python3 -c 'import time\nwhile time.process_time() < 30: pass'\n\
         sleep 10\n",
    );
    let mut last = 0.0;
    let mut split = (0.0, 0.0);
    wait::until_true("the job has burnt its CPU and ended", Duration::from_secs(240), || {
        let metrics = agent.metrics();
        if let Some(total) = metrics.job("jobs_cpu_time_total", &job.id) {
            assert!(total >= last, "CPU time went back from {last} to {total}");
            last = total;
            split = (
                metrics.job("jobs_user_time", &job.id).unwrap(),
                metrics.job("jobs_system_time", &job.id).unwrap(),
            );
        }
        last > 29.0 && metrics.job("jobs_cpu_time_total", &job.id).is_none()
    });
    job.wait_ended(PATIENCE);
    // sacct writes a moment after the end; the job itself burnt 30 s by its own clock.
    let accounted = wait::until("sacct's TotalCPU of the job", Duration::from_secs(60), || {
        let total = job.sacct("TotalCPU").first().and_then(|text| duration::elapsed(text).ok()?);
        total.map(|total| total.as_secs_f64()).filter(|total| *total > 29.0)
    });
    println!("job {}: agent {last:.3} s, sacct {accounted:.3} s, job itself 30 s", job.id);
    assert!((last / accounted - 1.0).abs() < 0.02, "agent {last}, sacct {accounted}");
    assert!((last / 30.0 - 1.0).abs() < 0.05, "agent {last}, job 30");
    let (user, system) = split;
    assert!((user + system - last).abs() < 0.6, "user {user} + system {system}, total {last}");
}

#[test]
fn processes_threads_and_memory_are_those_of_the_program() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let truth = dir.path().join("truth");
    let job = submit(
        "stw-bob",
        &["-n1", "-c3", "--mem=300M", "--export=ALL"],
        &format!(
            "#!/usr/bin/python3\n\
             import threading, time\n\
             block = bytearray(64 << 20)\n\
             block[::4096] = b'x' * len(block[::4096])\n\
             for _ in range(4): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n\
             rss = next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmRSS'))\n\
             open({truth:?}, 'w').write(rss)\n\
             time.sleep(600)\n"
        ),
    );
    let (threads, metrics) = job_value(&agent, &job, "jobs_threads", |threads| threads >= 5.0);
    assert!((threads - 5.0).abs() < f64::EPSILON, "main and four: {threads}");
    let value = |name: &str| metrics.job(name, &job.id).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(value("jobs_spawned_processes"), 1.0);
    assert_eq!(value("jobs_processes"), 1.0);
    assert_eq!(value("jobs_thread_count"), 5.0);
    assert_eq!(value("jobs_cpus"), 3.0);
    assert_eq!(value("jobs_memory_limit_bytes"), f64::from(300 << 20));

    // What the program says of itself, in KiB; it may have grown by a few pages since.
    let own: f64 = wait::until("the job's own figure", PATIENCE, || {
        fs::read_to_string(&truth).ok()?.parse().ok()
    });
    let (rss, metrics) = job_value(&agent, &job, "jobs_rss", |rss| rss > 64.0);
    assert!((rss - own / 1024.0).abs() < 1.0, "agent {rss} MiB, job {} MiB", own / 1024.0);
    let bytes = metrics.job("jobs_memory_rss_bytes", &job.id).unwrap();
    assert!((bytes / f64::from(1 << 20) - rss).abs() < f64::EPSILON * rss);
    // The kernel adds it up in batches, a second or two behind.
    let block = f64::from(64 << 20);
    let (anon, metrics) = job_value(&agent, &job, "jobs_memory_anon_bytes", |anon| anon >= block);
    assert!((64.0..96.0).contains(&(anon / f64::from(1 << 20))), "anonymous memory {anon}");
    let peak = metrics.job("jobs_memory_peak_bytes", &job.id).unwrap();
    assert!(peak >= anon, "peak {peak} under {anon}");

    let (percent, metrics) = job_value(&agent, &job, "jobs_cpu_percent", |_| true);
    let per_core = metrics.job("jobs_cpu_percent_per_core", &job.id).unwrap();
    assert!((percent / 3.0 - per_core).abs() < 1e-9, "{percent} / 3 is not {per_core}");
}

/// A process whose first thread has ended is a zombie by its own files, and lives in its threads'.
#[test]
fn a_process_that_lives_on_in_its_threads_is_measured() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let path = dir.path().display();
    let job = submit(
        "stw-alice",
        &["-n1", "--mem=300M"],
        &format!(
            "#!/usr/bin/python3\n\
             import ctypes, threading, time\n\
             def hold():\n\
             \x20 block = bytearray(64 << 20); block[::4096] = b'x' * len(block[::4096])\n\
             \x20 files = [open(f'{path}/z{{n}}', 'w') for n in range(7)]\n\
             \x20 ready.set(); time.sleep(600)\n\
             ready = threading.Event()\n\
             threading.Thread(target=hold).start(); ready.wait()\n\
             ctypes.CDLL(None).syscall({exit}, 0)\n",
            exit = nix::libc::SYS_exit
        ),
    );
    let (files, metrics) = job_value(&agent, &job, "jobs_opened_files", |files| files >= 7.0);
    assert_eq!(files, 7.0);
    let rss = metrics.job("jobs_rss", &job.id).unwrap();
    assert!((64.0..128.0).contains(&rss), "{rss} MiB");
    assert_eq!(metrics.job("jobs_processes", &job.id), Some(1.0));
}

#[test]
fn opened_files_are_distinct_files_and_descriptors_are_all() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let path = dir.path().display();
    // Ten files, one of them five times; a directory, a pipe, a socket and a device are no files.
    let job = submit(
        "stw-alice",
        &["-n1"],
        &format!(
            "#!/usr/bin/python3\n\
             import os, socket, time\n\
             files = [open(f'{path}/f{{n}}', 'w') for n in range(10)]\n\
             files += [open('{path}/f0') for _ in range(4)]\n\
             os.open('{path}', os.O_RDONLY | os.O_DIRECTORY)\n\
             os.pipe(); keep = socket.socket(); os.open('/dev/zero', os.O_RDONLY)\n\
             os.memfd_create('not-a-file')\n\
             with open('{path}/truth', 'w') as out: count = len(os.listdir('/proc/self/fd')) - 2; out.write(str(count))\n\
             time.sleep(600)\n"
        ),
    );
    let own: f64 = wait::until("the job's own count", PATIENCE, || {
        fs::read_to_string(dir.path().join("truth")).ok()?.parse().ok()
    });
    let (files, metrics) =
        job_value(&agent, &job, "jobs_open_fds", |fds| (fds - own).abs() < f64::EPSILON);
    assert_eq!(files, own);
    assert_eq!(metrics.job("jobs_opened_files", &job.id), Some(10.0));
    assert_eq!(metrics.job("jobs_open_files", &job.id), Some(10.0));
    assert_eq!(metrics.job("jobs_uses_scratch", &job.id), Some(0.0));
}

#[test]
fn scratch_is_told_by_path_and_by_mount_type() {
    let dir = shared::directory();
    let path = dir.path().display();
    let script = |file: &str| {
        format!("#!/usr/bin/python3\nimport time\nkeep = open('{file}', 'w')\ntime.sleep(600)\n")
    };
    let mut by_path = config();
    by_path.scratch.paths = vec![dir.path().join("scratch")];
    fs::create_dir(dir.path().join("scratch")).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    fs::set_permissions(dir.path().join("scratch"), open).unwrap();
    let on_scratch = submit("stw-alice", &["-n1"], &script(&format!("{path}/scratch/x")));
    // A name that only begins like it, and shared memory, which is a tmpfs.
    let beside = submit("stw-alice", &["-n1"], &script(&format!("{path}/scratchy")));
    let shm = format!("/dev/shm/steward-e2e-{}", std::process::id());
    let in_memory = submit("stw-bob", &["-n1"], &script(&shm));
    // An interpreter opens files of its own while it starts; the agent shall see what stays open.
    for file in [dir.path().join("scratch/x"), dir.path().join("scratchy"), shm.clone().into()] {
        wait::until("the job to open its file", PATIENCE, || file.exists().then_some(()));
    }

    let agent = RunningAgent::start(by_path);
    let expect = |agent: &RunningAgent, job: &Job, expected: f64| {
        job_value(agent, job, "jobs_opened_files", |files| files == 1.0);
        let (used, _) = job_value(agent, job, "jobs_uses_scratch", |_| true);
        assert_eq!(used, expected, "job {}", job.id);
    };
    expect(&agent, &on_scratch, 1.0);
    expect(&agent, &beside, 0.0);
    expect(&agent, &in_memory, 0.0);

    let mut by_type = config();
    by_type.scratch.paths = Vec::new();
    by_type.scratch.mount_types = vec!["tmpfs".to_owned()];
    let agent = RunningAgent::start(by_type);
    expect(&agent, &in_memory, 1.0);
    expect(&agent, &on_scratch, 0.0);
    drop(in_memory);
    fs::remove_file(shm).unwrap();
}

#[test]
fn io_of_a_shell_and_its_children_counts_once_and_never_goes_back() {
    let agent = RunningAgent::start(config());
    let dir = shared::directory();
    let path = dir.path().display();
    // Five times 20 MiB, each child alive for about two scans and then waited for by the shell.
    let job = submit(
        "stw-carol",
        &["-n1"],
        &format!(
            "#!/bin/bash\n\
             for n in 1 2 3 4 5; do\n\
               (dd if=/dev/zero of={path}/f$n bs=1M count=20 conv=fsync status=none; sleep 2)\n\
             done\n\
             touch {path}/done; sleep 600\n"
        ),
    );
    const WRITTEN: f64 = 100.0 * 1024.0 * 1024.0;
    let direction = |metrics: &Exposition, name: &str| {
        metrics.value(name, &[("slurm_job", job.id.as_str()), ("direction", "write")])
    };
    let mut last = 0.0;
    wait::until_true("the job has written everything", PATIENCE, || {
        if let Some(now) = agent.metrics().written(&job.id) {
            assert!(now >= last, "bytes written went back from {last} to {now}");
            last = now;
        }
        dir.path().join("done").exists()
    });
    agent.wait_scans(3);
    let after = agent.metrics().written(&job.id).unwrap();
    assert!(after >= last, "bytes written went back from {last} to {after}");
    last = after;
    let metrics = agent.metrics();
    println!("job {}: agent {last} bytes written, job {WRITTEN}", job.id);
    assert!((0.0..65536.0).contains(&(last - WRITTEN)), "agent {last}, job {WRITTEN}");
    let stored = metrics.job("jobs_write_mb", &job.id).unwrap();
    assert!((100.0..101.0).contains(&stored), "{stored} MiB went to storage");
    assert_eq!(direction(&metrics, "jobs_io_bytes_total").unwrap() / 1024.0 / 1024.0, stored);
    // dd reads and writes 1 MiB at a time: 100 calls each, and a few of the shell's.
    let calls = metrics.job("jobs_write_count", &job.id).unwrap();
    assert!((100.0..200.0).contains(&calls), "{calls} write calls");
}

#[test]
fn a_two_node_job_appears_on_both_nodes() {
    let agent = RunningAgent::start(config());
    let job = submit(
        "stw-bob",
        &["-N2", "-n2", "-p", "cpu"],
        "#!/bin/bash\nsrun -n2 -N2 /usr/bin/python3 -c 'while True: pass'\n",
    );
    let nodes = agent.wait_for("both nodes busy", PATIENCE, |metrics| {
        let mut nodes: Vec<String> = metrics
            .all("jobs_cpu_percent", &[("slurm_job", job.id.as_str())])
            .into_iter()
            .filter(|sample| sample.value > 1.0)
            .map(|sample| sample.labels["instance"].clone())
            .collect();
        nodes.sort();
        (nodes.len() == 2).then_some(nodes)
    });
    assert_eq!(nodes, ["n1", "n2"]);
}

#[test]
fn gpus_are_those_that_slurm_gave() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-carol", &["-p", "gpu", "--gres=gpu:2"], "#!/bin/bash\nsleep 600\n");
    let gpus = agent.wait_for("the job's GPUs", PATIENCE, |metrics| {
        let found = metrics.all("jobs_gpus_used", &[("slurm_job", job.id.as_str())]);
        let mut ids: Vec<String> =
            found.iter().map(|sample| sample.labels["gpuid"].clone()).collect();
        ids.sort();
        (!ids.is_empty()).then_some(ids)
    });
    assert_eq!(gpus, ["0", "1"]);
}

#[test]
fn cores_add_up_to_the_total_on_v1_and_are_absent_on_v2() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-alice", &["-n1"], "#!/usr/bin/python3\nwhile True: pass\n");
    let (total, metrics) = job_value(&agent, &job, "jobs_cpu_time_total", |total| total > 1.0);
    let cores = metrics.all("jobs_cpu_time_core", &[("slurm_job", job.id.as_str())]);
    if Testbed::get().is_v1() {
        let sum: f64 = cores.iter().map(|sample| sample.value).sum();
        assert!((sum - total).abs() < 0.2, "cores {sum}, total {total}");
    } else {
        assert!(cores.is_empty(), "{cores:?}");
    }
}
