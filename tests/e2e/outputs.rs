//! The listener and the commands that print.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use steward_agent::config::Span;
use steward_common::metric::{CATALOGUE, Set};
use steward_tests::agent::{Process, RunningAgent, config, run};
use steward_tests::exposition::{Exposition, Sample};
use steward_tests::http;
use steward_tests::slurm::submit;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(120);

/// promtool wants base units and no `_total` on a gauge; these names are inherited as they are.
const INHERITED: [&str; 16] = [
    "jobs_cpu_percent",
    "jobs_cpu_percent_per_core",
    "jobs_cpu_time_core",
    "jobs_cpu_time_total",
    "jobs_gpus_used",
    "jobs_opened_files",
    "jobs_read_count",
    "jobs_read_mb",
    "jobs_rss",
    "jobs_spawned_processes",
    "jobs_system_time",
    "jobs_thread_count",
    "jobs_user_time",
    "jobs_uses_scratch",
    "jobs_write_count",
    "jobs_write_mb",
];

pub fn promtool(text: &str) -> Vec<String> {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let all = [output.stdout, output.stderr].concat();
    String::from_utf8(all).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn promtool_accepts_what_is_exposed_but_for_the_inherited_names() {
    let agent = RunningAgent::start(config());
    let job = submit("stw-alice", &["-p", "gpu", "--gres=gpu:1"], "#!/bin/bash\nsleep 600\n");
    agent.wait_for("the job with all its metrics", PATIENCE, |metrics| {
        metrics.job("jobs_cpu_percent", &job.id)?;
        metrics.all("jobs_gpus_used", &[("slurm_job", &job.id)]).first().map(|_| ())
    });
    let complaints = promtool(&agent.get("/metrics").unwrap());
    let unexpected: Vec<_> = complaints
        .iter()
        .filter(|line| !INHERITED.iter().any(|name| line.starts_with(&format!("{name} "))))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    // The tool does complain: about a gauge that ends like a counter.
    assert!(complaints.iter().any(|line| line.starts_with("jobs_cpu_time_total ")));
    assert!(!promtool("a{b=\"1\" 2\n").is_empty());
}

const ABSENT: [&str; 4] = [
    "jobs_idle_since_timestamp_seconds",
    "jobs_sluid_cluster_id",
    "jobs_submit_timestamp_seconds",
    "steward_agent_pushes_total",
];

/// Some of them only with controllers that a site switches on.
const ONLY_V2: [&str; 7] = [
    "jobs_block_io_bytes_total",
    "jobs_block_io_requests_total",
    "jobs_cpu_periods_total",
    "jobs_cpu_throttled_periods_total",
    "jobs_cpu_throttled_seconds_total",
    "jobs_stall_seconds_total",
    "jobs_tasks",
];

#[test]
fn every_metric_of_the_catalogue_is_exposed_for_a_busy_job() {
    let mut settings = config();
    settings.threads.interval = Span(Duration::from_secs(1));
    let agent = RunningAgent::start(settings);
    let job = submit(
        "stw-bob",
        &["-p", "gpu", "--gres=gpu:1"],
        "#!/usr/bin/python3\nimport time\nwhile True: time.sleep(0.01)\n",
    );
    let metrics = agent.wait_for("rates", PATIENCE, |metrics| {
        metrics.job("jobs_cpu_percent_per_core", &job.id)?;
        // Threads are read at an interval of their own.
        metrics.job("jobs_cpus_reachable", &job.id)?;
        Some(metrics.clone())
    });
    let v1 = steward_tests::testbed::Testbed::get().is_v1();
    for def in CATALOGUE {
        let found = metrics.all(def.name, &[]);
        // Pushing is off, the job has a process, and this Slurm knows no SLUIDs.
        if ABSENT.contains(&def.name) {
            let own =
                |sample: &&Sample| sample.labels.get("slurm_job").is_none_or(|id| *id == job.id);
            assert!(!found.into_iter().any(|sample| own(&sample)), "{}", def.name);
            continue;
        }
        if (v1 && ONLY_V2.contains(&def.name)) || (!v1 && def.labels == ["core"]) {
            continue;
        }
        assert!(!found.is_empty(), "{} is not exposed", def.name);
        for sample in found {
            let mut labels: Vec<&str> = sample.labels.keys().map(String::as_str).collect();
            let mut expected: Vec<&str> = def.all_labels().collect();
            labels.sort_unstable();
            expected.sort_unstable();
            assert_eq!(labels, expected, "{}", def.name);
        }
    }
    let known: Vec<&str> = CATALOGUE.iter().map(|def| def.name).collect();
    assert!(metrics.samples.iter().all(|sample| known.contains(&sample.name.as_str())));
}

#[test]
fn each_switch_turns_off_its_set() {
    let job = submit("stw-carol", &[], "#!/bin/bash\nsleep 600\n");
    for (original, modern) in [(true, false), (false, true)] {
        let mut settings = config();
        settings.metrics.original = original;
        settings.metrics.modern = modern;
        let agent = RunningAgent::start(settings);
        let shown = agent.wait_for("the job", PATIENCE, |metrics| {
            let samples = metrics.of_job(&job.id);
            (!samples.is_empty())
                .then(|| samples.iter().map(|one| one.name.clone()).collect::<Vec<_>>())
        });
        for name in shown {
            let set = steward_common::metric::find(&name).unwrap().set;
            assert!(
                set == Set::Info || (set == Set::Original) == original,
                "{name} with original = {original}, modern = {modern}"
            );
        }
    }
}

#[test]
fn the_client_chooses_the_format_and_prometheus_text_is_the_default() {
    let agent = RunningAgent::start(config());
    for (accept, content_type, start) in [
        ("", "text/plain; version=0.0.4", "# HELP "),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", "# HELP "),
        ("application/vnd.google.protobuf", "application/vnd.google.protobuf", ""),
    ] {
        let url = format!("{}/metrics", agent.url());
        let answer = http::client().get(url).header("accept", accept).send().unwrap();
        let found = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(found.starts_with(content_type), "{accept}: {found}");
        assert!(answer.bytes().unwrap().starts_with(start.as_bytes()), "{accept}");
    }
}

#[test]
fn idle_connections_cannot_use_up_the_agents_descriptors() {
    let port = steward_tests::gateway::own_port();
    let address = format!("127.0.0.1:{port}");
    let agent = Process::start(&["run", "--listen", &address, "--interval", "200ms"]);
    let url = format!("http://{address}/metrics");
    wait::until_true("the agent answers", PATIENCE, || {
        http::get(&url).is_ok_and(|answer| answer.status().is_success())
    });
    let mut idle = Vec::new();
    for _ in 0..300 {
        // The backlog may be full: that is a limit too.
        let address = address.parse().unwrap();
        idle.extend(TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok());
    }
    assert!(idle.len() > 100, "only {} connections", idle.len());
    let held = || {
        let links = std::fs::read_dir(format!("/proc/{}/fd", agent.0.id())).unwrap();
        let links = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    // Sixty-four connections and a few of its own.
    wait::until_true("the limit is reached", PATIENCE, || held() > 64);
    assert!(held() < 80, "{} sockets", held());
    drop(idle);
    wait::until_true("the agent answers again", PATIENCE, || {
        http::get(&url).is_ok_and(|answer| answer.status().is_success())
    });
}

#[test]
fn health_is_200_while_scans_succeed() {
    let agent = RunningAgent::start(config());
    wait::until_true("health", PATIENCE, || agent.get("/healthz").as_deref() == Some("ok\n"));
    assert!(agent.get("/").unwrap().contains("/metrics"));
    assert_eq!(agent.get("/nothing"), None);
}

#[test]
fn once_prints_a_sample_with_rates_and_check_is_content() {
    let job = submit("stw-alice", &[], "#!/usr/bin/python3\nwhile True: pass\n");
    job.wait_running();
    let metrics = wait::until("the job in 'once'", PATIENCE, || {
        let output = run(&["once"]);
        assert!(output.status.success(), "{output:?}");
        let metrics = Exposition::parse(&String::from_utf8(output.stdout).unwrap());
        metrics.job("jobs_cpu_percent", &job.id).is_some().then_some(metrics)
    });
    assert!(metrics.job("jobs_cpu_percent", &job.id).unwrap() > 1.0);

    // Of Slurm's own node: other tests make directories of jobs beside it, one after the other.
    let output = run(&["check", "--json", "--node", "n1"]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let subjects: Vec<&str> = report["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["subject"].as_str().unwrap())
        .collect();
    for subject in ["settings", "cgroups", "cluster", "scopes", "node", "privileges", "scrape"] {
        assert!(subjects.contains(&subject), "{subject} is not in {subjects:?}");
    }
}
