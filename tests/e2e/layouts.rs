//! Directory layouts: recorded ones against the truth of their jobs, and real ones made beside
//! Slurm's.

use std::fs;
use std::process::Command;
use std::time::Duration;

use steward_agent::config::Config;
use steward_agent::once;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::cgroups::{JobGroup, UnifiedJob, unified_root};
use steward_tests::exposition::Exposition;
use steward_tests::fixture::{self, Fixture, Truth};
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(60);

fn scan(config: &Config) -> Exposition {
    Exposition::parse(&once::run(config, Duration::from_millis(10)).unwrap())
}

/// Every figure of `job` against what it said of itself when it was recorded.
fn agrees(name: &str, metrics: &Exposition, job: &Truth) {
    let id = job.id.to_string();
    let value = |metric: &str| {
        metrics.job(metric, &id).unwrap_or_else(|| panic!("{name}: no {metric} of job {id}"))
    };
    let exact = |metric: &str, expected: u32| {
        assert_eq!(value(metric), f64::from(expected), "{name}: {metric} of job {id}");
    };
    exact("jobs_spawned_processes", job.processes);
    exact("jobs_threads", job.threads);
    exact("jobs_cpus", job.cpus);
    exact("jobs_opened_files", u32::try_from(job.files.len()).unwrap());
    exact("jobs_scratch_open_files", job.scratch_files);
    exact("jobs_uses_scratch", u32::from(job.scratch_files > 0));
    exact("jobs_memory_limit_bytes", u32::try_from(job.memory_limit_bytes).unwrap());
    for (command, threads) in &job.threads_by_name {
        let labels = [("slurm_job", id.as_str()), ("proc_name", command.as_str())];
        assert_eq!(
            metrics.value("jobs_thread_count", &labels),
            Some(f64::from(*threads)),
            "{name}"
        );
    }

    let info = metrics.all("jobs_info", &[("slurm_job", id.as_str())]);
    let labels = &info.first().unwrap_or_else(|| panic!("{name}: no jobs_info")).labels;
    let uid = job.uid.to_string();
    for (label, expected) in [
        ("cluster", "recorded"),
        ("uid", uid.as_str()),
        ("account", &job.account),
        ("partition", &job.partition),
        ("sluid", job.sluid.as_deref().unwrap_or("")),
    ] {
        assert_eq!(labels[label], expected, "{name}: {label} of job {id}");
    }

    if let (Some(parts), Some(stepd)) = (&job.cpu_seconds, &job.slurmstepd_cpu_seconds) {
        // v2 counts the slurmstepds in the job's own group; v1 does not.
        let expected = parts.values().sum::<f64>() + stepd["in_cgroup_of_job"];
        let found = value("jobs_cpu_time_total");
        assert!((found - expected).abs() < 0.5, "{name}: CPU {found}, job {expected}");
    }
    if let Some(held) = job.anon_bytes {
        let held = f64::from(u32::try_from(held).unwrap());
        let anon = value("jobs_memory_anon_bytes");
        assert!((held..held * 1.5).contains(&anon), "{name}: anonymous {anon}, job {held}");
    }
    if let Some(written) = job.written_bytes {
        let written = f64::from(u32::try_from(written).unwrap());
        let labels = [("slurm_job", id.as_str()), ("direction", "write")];
        let found = metrics.value("jobs_io_requested_bytes_total", &labels).unwrap();
        assert!((written..written + 8192.0).contains(&found), "{name}: {found}, job {written}");
    }
}

#[test]
fn every_recording_agrees_with_what_its_jobs_said() {
    for name in fixture::ALL {
        let recorded = Fixture::open(name);
        let metrics = scan(&recorded.config());
        assert_eq!(metrics.all("jobs_info", &[]).len(), recorded.jobs.len(), "{name}");
        for job in &recorded.jobs {
            agrees(name, &metrics, job);
            let sample = metrics.all("jobs_rss", &[("slurm_job", &job.id.to_string())])[0];
            assert_eq!(sample.labels["instance"], job.node, "{name}");
        }
    }
}

/// The same recording under the other names that Slurm and containers give to its directories.
#[test]
fn a_scope_is_found_under_every_name_and_prefix() {
    let v2 = "system.slice/n1_slurmstepd.scope";
    for (name, moves, node) in [
        ("v2-slurm-22.05", vec![(v2, "system.slice/slurmstepd.scope")], "host9"),
        ("v2-slurm-22.05", vec![(v2, "hpc.slice/slurmstepd.scope")], "host9"),
        ("v2-slurm-26.05", vec![(v2, "hpc.slice/slurmstepd.scope")], "host9"),
        (
            "v2-slurm-22.05",
            vec![(v2, "kubepods.slice/pod7.slice/cri-1.scope/system.slice/n1_slurmstepd.scope")],
            "n1",
        ),
        (
            "v1-slurm-22.05",
            vec![
                ("cpuacct/slurm_n1", "cpuacct/slurm"),
                ("memory/slurm_n1", "memory/slurm"),
                ("freezer/slurm_n1", "freezer/slurm"),
            ],
            "host9",
        ),
        (
            "v1-slurm-22.05",
            vec![
                ("cpuacct", "cpu,cpuacct"),
                ("memory/slurm_n1", "memory/docker/c1/slurm_n1"),
                ("freezer/slurm_n1", "freezer/docker/c1/slurm_n1"),
            ],
            "n1",
        ),
    ] {
        let recorded = Fixture::open(name);
        for (from, to) in &moves {
            recorded.move_dir(from, to);
        }
        let mut settings = recorded.config();
        // A scope without a name is the node's that the configuration names.
        settings.node = (node == "host9").then(|| node.parse().unwrap());
        let metrics = scan(&settings);
        for job in &recorded.jobs {
            agrees(&format!("{name} {moves:?}"), &metrics, job);
        }
        assert!(
            metrics.of_job("1").iter().all(|sample| sample.labels["instance"] == node),
            "{name} {moves:?}"
        );
    }
}

#[test]
fn a_process_that_is_gone_and_a_file_that_is_odd_break_nothing_else() {
    let recorded = Fixture::open("v2-slurm-22.05");
    let job = recorded.cgroup().join("system.slice/n1_slurmstepd.scope/job_1");
    // It ended between the list and the read.
    let sleeper = fs::read_dir(recorded.proc())
        .unwrap()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "srun"))
        .unwrap();
    fs::remove_dir_all(&sleeper).unwrap();
    // One file holds nonsense, one cannot be read at all.
    fs::write(job.join("memory.current"), "plenty\n").unwrap();
    fs::remove_file(job.join("memory.stat")).unwrap();
    fs::create_dir(job.join("memory.stat")).unwrap();

    let metrics = scan(&recorded.config());
    let truth = &recorded.jobs[0];
    assert_eq!(metrics.job("jobs_processes", "1"), Some(f64::from(truth.processes) - 1.0));
    for absent in ["jobs_memory_usage_bytes", "jobs_memory_anon_bytes", "jobs_memory_slurm_bytes"] {
        assert_eq!(metrics.job(absent, "1"), None, "{absent} must be absent, not 0");
    }
    assert!(metrics.job("jobs_memory_peak_bytes", "1").is_some());
    assert!(metrics.job("jobs_cpu_time_total", "1").is_some());
    agrees("the other job", &metrics, &recorded.jobs[1]);
    for (reason, least) in [("vanished", 1.0), ("malformed", 1.0), ("io", 1.0)] {
        let count = metrics.value("steward_agent_errors_total", &[("reason", reason)]).unwrap();
        assert!(count >= least, "{reason}: {count}");
    }
}

#[test]
fn two_slurmds_on_one_host_are_two_instances() {
    let agent = RunningAgent::start(config());
    let mut first = JobGroup::make("stwone", 0, 900_030);
    first.add(Command::new("sleep").arg("600"));
    let mut second = JobGroup::make("stwtwo", 0, 900_030);
    second.add(Command::new("sleep").arg("600"));
    second.add(Command::new("sleep").arg("600"));
    agent.wait_for("both nodes", PATIENCE, |metrics| {
        let count = |node: &str| {
            metrics.value("jobs_processes", &[("slurm_job", "900030"), ("instance", node)])
        };
        (count("stwone") == Some(1.0) && count("stwtwo") == Some(2.0)).then_some(())
    });
}

/// On a hybrid host the v2 tree stands beside v1, with CPU accounting and without controllers: real
/// CPU seconds, and memory that is absent rather than 0.
#[test]
fn a_real_v2_directory_gives_real_cpu_seconds() {
    let root = unified_root();
    let burn = "import time\nwhile time.process_time() < 1.5: pass\ntime.sleep(600)\n";
    let mut job = UnifiedJob::make(&[
        "steward.slice",
        "stwv2_slurmstepd.scope",
        "job_900040",
        "step_batch",
        "user",
        "task_0",
    ]);
    let pid = job.add(Command::new("/usr/bin/python3").args(["-c", burn]));
    let mut settings = config();
    settings.paths.cgroup = root.clone();
    settings.node = Some("stwv2".parse().unwrap());
    let agent = RunningAgent::start(settings);
    let own = wait::until("the process has burnt its CPU", PATIENCE, || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid)).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
        let seconds = f64::from(ticks) / 100.0;
        (fields[0] == "S" && seconds >= 1.4).then_some(seconds)
    });
    let (total, metrics) = agent.wait_for("its CPU time", PATIENCE, |metrics| {
        let total = metrics.job("jobs_cpu_time_total", "900040")?;
        (total > 1.4).then(|| (total, metrics.clone()))
    });
    // It was moved into the directory a moment after it began.
    assert!((total - own).abs() < 0.3, "agent {total}, process {own}");
    assert!(metrics.all("jobs_cpu_time_core", &[("slurm_job", "900040")]).is_empty());
    if root.ends_with("unified") {
        assert_eq!(metrics.job("jobs_memory_usage_bytes", "900040"), None);
    }
}

/// A user may make directories of any name in a part of the tree that is given to them, and an
/// earlier run may leave one behind: one job is one job, and no forged scope is Slurm's.
#[test]
fn a_second_directory_of_a_job_is_not_a_second_job() {
    let scope = "system.slice/n1_slurmstepd.scope";
    for (second, leftovers) in [
        ("hpc.slice/n1_slurmstepd.scope", 2.0),
        ("user.slice/user-1001.slice/user@1001.service/n1_slurmstepd.scope", 0.0),
        ("system.slice/slurm_n1/uid_1001", 0.0),
    ] {
        let recorded = Fixture::open("v2-slurm-22.05");
        let copied = Command::new("cp")
            .args(["-r", "--parents", scope, "copy"])
            .current_dir({
                fs::create_dir(recorded.cgroup().join("copy")).unwrap();
                recorded.cgroup()
            })
            .status()
            .unwrap();
        assert!(copied.success());
        recorded.move_dir(&format!("copy/{scope}"), second);
        let metrics = scan(&recorded.config());
        for job in &recorded.jobs {
            agrees(second, &metrics, job);
        }
        let count = metrics.value("steward_agent_leftover_directories", &[("instance", "n1")]);
        assert_eq!(count, Some(leftovers), "{second}");
    }
}
