//! A file system that never answers: the jobs on it may hang, the agent may not.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use steward_tests::agent::Served;
use steward_tests::cgroups::{UnifiedJob, unified_root};
use steward_tests::exposition::Exposition;
use steward_tests::hung::Hung;
use steward_tests::shared;
use steward_tests::slurm::submit;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(60);
/// How much longer than without the hung file the longest scan and the longest pause may be, and
/// the mean scan: other tests run on the same cores.
const ALLOWED: (f64, f64) = (2.0, 0.3);

/// Some scans: the longest one, the mean one, and the longest time between two.
#[derive(Clone, Copy, Debug)]
struct Scans {
    longest: f64,
    mean: f64,
    apart: f64,
}

/// Watches the next ten scans.
fn scans(agent: &Served) -> Scans {
    let own = |metrics: &Exposition, name: &str| metrics.all(name, &[])[0].value;
    let mut seen: Vec<(f64, f64)> = Vec::new();
    wait::until_true("ten scans", Duration::from_secs(20), || {
        if let Some(metrics) = agent.metrics() {
            let at = own(&metrics, "steward_agent_last_scan_timestamp_seconds");
            if seen.last().is_none_or(|(last, _)| *last < at) {
                seen.push((at, own(&metrics, "steward_agent_last_scan_duration_seconds")));
            }
        }
        seen.len() > 10
    });
    Scans {
        longest: seen.iter().map(|(_, took)| *took).fold(0.0, f64::max),
        mean: seen.iter().map(|(_, took)| *took).sum::<f64>() / seen.len() as f64,
        apart: seen.windows(2).map(|two| two[1].0 - two[0].0).fold(0.0, f64::max),
    }
}

/// The scans of `agent` are as good as those of `before`.
fn no_delay(what: &str, agent: &Served, before: Scans) {
    let after = scans(agent);
    println!("{what}: {after:.3?}, before {before:.3?}");
    assert!(after.longest < before.longest + ALLOWED.0, "{what}: {after:?}, before {before:?}");
    assert!(after.mean < before.mean + ALLOWED.1, "{what}: {after:?}, before {before:?}");
    assert!(after.apart < before.apart + ALLOWED.0, "{what}: {after:?}, before {before:?}");
}

fn value(agent: &Served, metric: &str, job: &str) -> Option<f64> {
    agent.metrics()?.job(metric, job)
}

#[test]
fn a_file_that_never_answers_delays_no_scan() {
    let dir = shared::directory();
    let point = dir.path().join("hung");
    fs::create_dir(&point).unwrap();
    // Declared in this order: the file system goes first at the end, so that neither the job nor an
    // agent that fails the test sleeps in it when it is killed.
    let (job, first, second);
    let other = submit("stw-bob", &["-n1", "-w", "n2"], "#!/bin/bash\nsleep 600\n");
    let hung = Hung::mount(&point, 1, 0);
    let agent = || Served::start(&["--node", "n2", "--interval", "500ms"]);
    first = agent();
    let seen = |agent: &Served, job: &str| {
        wait::until("the job's processes", PATIENCE, || value(agent, "jobs_processes", job));
    };
    seen(&first, &other.id);
    let before = scans(&first);

    job = submit(
        "stw-alice",
        &["-n1", "-w", "n2"],
        &format!(
            "#!/usr/bin/python3\nimport os\nos.read(os.open('{}', os.O_RDONLY), 1)\n",
            hung.file().display()
        ),
    );
    wait::until_true("the job hangs", PATIENCE, || hung.unanswered() > 0);
    // One that knows the job from before, and one that has to learn everything about it now.
    second = agent();
    for (what, agent) in [("known", &first), ("new", &second)] {
        seen(agent, &other.id);
        seen(agent, &job.id);
        let asked = hung.unanswered();
        no_delay(what, agent, before);
        let files = wait::until("the open file", PATIENCE, || {
            value(agent, "jobs_opened_files", &job.id).filter(|files| *files >= 1.0)
        });
        assert_eq!(files, 1.0, "{what}");
        assert_eq!(value(agent, "jobs_processes", &job.id), Some(1.0), "{what}");
        assert!(value(agent, "jobs_processes", &other.id).is_some(), "{what}: the other job");
        assert_eq!(hung.unanswered(), asked, "{what}: the agent asked the file system");
    }
}

/// Whether whoever reads `file` has to wait.
fn hangs(file: &Path) -> bool {
    let mut reader = Command::new("cat").arg(file).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    let waits = reader.try_wait().unwrap().is_none();
    reader.kill().unwrap();
    reader.wait().unwrap();
    waits
}

/// Three jobs: one whose process is locked up, one that has another such in its extern step under
/// the name of Slurm's placeholder, and one that is well. They are in the tree beside v1 where
/// there is one, so that they hang no agent but the one that is tested. Whoever reads `files` of
/// `program` on such a file system has to wait: else nothing is tested here.
fn locked_up(scope: &str, errors: u32, program: impl Fn(&Hung, &str) -> Command, files: &[&str]) {
    let dir = shared::directory();
    let points = [dir.path().join("one"), dir.path().join("two")];
    points.iter().for_each(|point| fs::create_dir(point).unwrap());
    let path = |job, step| ["steward.slice", scope, job, step, "user", "task_0"];
    let mut well = UnifiedJob::make(&path("job_900060", "step_batch"));
    let mut batch = UnifiedJob::make(&path("job_900061", "step_batch"));
    let mut external = UnifiedJob::make(&path("job_900062", "step_extern"));
    let (first, second);
    // These go first at the end, as above.
    let hung = points.each_ref().map(|point| Hung::mount(point, 1, errors));

    let config = dir.path().join("agent.toml");
    fs::write(&config, format!("[paths]\ncgroup = {:?}\n", unified_root())).unwrap();
    let node = scope.trim_end_matches("_slurmstepd.scope");
    let agent = || {
        let config = config.to_str().unwrap();
        Served::start(&["--config", config, "--node", node, "--interval", "500ms"])
    };
    well.add(Command::new("sleep").arg("600"));
    first = agent();
    wait::until("the job that is well", PATIENCE, || value(&first, "jobs_processes", "900060"));
    let before = scans(&first);

    batch.add(&mut program(&hung[0], "holder"));
    external.add(&mut program(&hung[1], "sleep"));
    for (job, hung) in [(&batch, &hung[0]), (&external, &hung[1])] {
        wait::until_true("the file hangs", PATIENCE, || hung.unanswered() > 0);
        for file in files {
            wait::until_true(&format!("{file} of a process hangs"), PATIENCE, || {
                job.pids().iter().any(|pid| hangs(Path::new(&format!("/proc/{pid}/{file}"))))
            });
        }
    }
    second = agent();
    for (what, agent) in [("known", &first), ("new", &second)] {
        no_delay(what, agent, before);
        // What the kernel says of the job as a whole is there, whatever its processes do.
        for job in ["900060", "900061", "900062"] {
            let cpu = value(agent, "jobs_cpu_usage_seconds_total", job);
            assert!(cpu.is_some(), "{what}: job {job} is gone");
        }
        assert_eq!(value(agent, "jobs_processes", "900060"), Some(1.0), "{what}");
    }
}

#[test]
fn a_process_whose_memory_is_locked_delays_no_scan() {
    let holder = |hung: &Hung, name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hung-holder"));
        command.arg(hung.file()).arg(name);
        command
    };
    // The first read is done without the lock; the one after its failure is done with it.
    locked_up("stwmem_slurmstepd.scope", 1, holder, &["environ", "cmdline"]);
}

/// A process within execve, which closes its files there: whoever reads its `io` has to wait, and
/// with newer kernels (seen on 6.18) its `stat` and the link to its namespace.
#[test]
fn a_process_that_never_ends_its_execve_delays_no_scan() {
    let execve = |hung: &Hung, _: &str| {
        let script = "import os, sys\n\
                      os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC)\n\
                      os.execv('/bin/sleep', ['sleep', '600'])\n";
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", script]).arg(hung.file());
        command
    };
    locked_up("stwexec_slurmstepd.scope", 0, execve, &["environ", "io"]);
}
