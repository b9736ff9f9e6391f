//! A real Pushgateway, stopped and started.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use steward_tests::agent::{Process, RunningAgent, config};
use steward_tests::gateway::Gateway;
use steward_tests::slurm::submit;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(120);
const SLEEP: &str = "#!/bin/bash\nsleep 600\n";

/// The real program for one node, at a short interval.
fn agent(gateway: &Gateway, node: &str) -> Process {
    let url = gateway.url();
    Process::start(&[
        "--node",
        node,
        "--interval",
        "500ms",
        "--linger",
        "0",
        "--no-listen",
        "--push",
        &url,
    ])
}

fn has(gateway: &Gateway, job: &str, node: &str) -> bool {
    gateway.groups().contains(&(job.to_owned(), node.to_owned()))
}

#[test]
fn types_and_help_survive_and_the_group_goes_with_the_last_job() {
    let gateway = Gateway::start();
    let mut settings = config();
    settings.node = Some("n2".parse().unwrap());
    settings.push.gateway = Some(gateway.url());
    let agent = RunningAgent::start(settings);
    wait::until_true("the heartbeat", PATIENCE, || has(&gateway, "steward_agent", "n2"));
    let job = submit("stw-alice", &["-w", "n2"], SLEEP);
    wait::until_true("the job's group", PATIENCE, || {
        gateway.metrics().job("jobs_rss", &job.id).is_some()
    });
    let text = gateway.text();
    for line in [
        "# TYPE jobs_cpu_seconds_total counter",
        "# TYPE jobs_rss gauge",
        "# HELP jobs_rss Sum of the resident sets",
        "# TYPE steward_agent_scans_total counter",
    ] {
        assert!(text.contains(line), "{line} is not on the gateway");
    }
    let sample = gateway.metrics().all("jobs_rss", &[("slurm_job", job.id.as_str())])[0].clone();
    assert_eq!(sample.labels["instance"], "n2");
    assert_eq!(sample.labels["cluster"], "steward");
    assert_eq!(sample.labels["job"], "jobs_exporter");
    job.cancel();
    job.wait_ended(PATIENCE);
    wait::until_true("nothing of the job is left", PATIENCE, || {
        gateway.metrics().of_job(&job.id).is_empty()
    });
    assert!(has(&gateway, "steward_agent", "n2"), "the heartbeat goes on");
    agent.stop();
    wait::until_true("nothing is left", PATIENCE, || gateway.groups().is_empty());
}

#[test]
fn a_replaced_group_is_never_missing() {
    let gateway = Gateway::start();
    let job = submit("stw-bob", &["-w", "n1"], SLEEP);
    let _agent = agent(&gateway, "n1");
    wait::until_true("the job", PATIENCE, || gateway.metrics().job("jobs_rss", &job.id).is_some());
    let pushes = || {
        let labels = [("instance", "n1"), ("outcome", "ok")];
        gateway.metrics().value("steward_agent_pushes_total", &labels).unwrap()
    };
    let enough = pushes() + 20.0;
    let mut looks = 0;
    while pushes() < enough {
        assert!(gateway.metrics().job("jobs_rss", &job.id).is_some(), "a gap at look {looks}");
        looks += 1;
    }
    println!("{looks} looks during 20 pushes, no gap");
}

#[test]
fn many_nodes_share_one_gateway_and_each_signal_removes_its_own() {
    let gateway = Gateway::start();
    let job =
        submit("stw-carol", &["-N2", "-n2", "-p", "gpu"], "#!/bin/bash\nsrun -N2 -n2 sleep 600\n");
    let mut agents: Vec<Process> =
        ["n1", "n2", "n3", "n4"].iter().map(|node| agent(&gateway, node)).collect();
    wait::until_true("four heartbeats", PATIENCE, || {
        ["n1", "n2", "n3", "n4"].iter().all(|node| has(&gateway, "steward_agent", node))
    });
    wait::until_true("the job on two nodes", PATIENCE, || {
        let metrics = gateway.metrics();
        let mut nodes: Vec<_> = metrics
            .all("jobs_rss", &[("slurm_job", job.id.as_str())])
            .iter()
            .map(|sample| sample.labels["instance"].clone())
            .collect();
        nodes.sort();
        nodes == ["n3", "n4"]
    });
    let mut fourth = agents.pop().unwrap();
    let mut third = agents.pop().unwrap();
    assert_eq!(third.signal(Signal::SIGTERM), Some(0));
    assert_eq!(fourth.signal(Signal::SIGINT), Some(0));
    wait::until_true("nothing of n3 and n4 is left", PATIENCE, || {
        let left = gateway.groups();
        !left.iter().any(|(_, instance)| instance == "n3" || instance == "n4")
    });
    assert!(has(&gateway, "steward_agent", "n1") && has(&gateway, "steward_agent", "n2"));
    assert!(gateway.metrics().of_job(&job.id).is_empty());
}

#[test]
fn a_gateway_that_is_away_for_a_minute_is_found_again() {
    let mut gateway = Gateway::start();
    let mut agent = agent(&gateway, "n1");
    wait::until_true("the heartbeat", PATIENCE, || has(&gateway, "steward_agent", "n1"));
    gateway.stop();
    // A job comes meanwhile and stays.
    let job = submit("stw-alice", &["-w", "n1"], SLEEP);
    let back = Instant::now() + Duration::from_secs(60);
    wait::until_true("a minute has passed", PATIENCE, || {
        assert!(agent.is_running(), "the agent ended while the gateway was away");
        Instant::now() >= back
    });
    gateway.resume();
    wait::until_true("the job after the gateway came back", PATIENCE, || {
        gateway.metrics().job("jobs_rss", &job.id).is_some()
    });
    let metrics = gateway.metrics();
    let failed =
        metrics.value("steward_agent_pushes_total", &[("instance", "n1"), ("outcome", "failed")]);
    // At 500 ms a minute has 120 pushes; waits that double up to 30 s leave about ten tries.
    assert!((2.0..30.0).contains(&failed.unwrap()), "failures are counted and few: {failed:?}");
    assert_eq!(agent.signal(Signal::SIGTERM), Some(0));
    wait::until_true("nothing is left", PATIENCE, || gateway.groups().is_empty());
}

#[test]
fn what_a_killed_agent_left_behind_is_removed_by_the_next() {
    let gateway = Gateway::start();
    let job = submit("stw-bob", &["-w", "n2"], SLEEP);
    let mut first = agent(&gateway, "n2");
    wait::until_true("the job", PATIENCE, || gateway.metrics().job("jobs_rss", &job.id).is_some());
    assert_eq!(first.signal(Signal::SIGKILL), None);
    job.cancel();
    job.wait_ended(PATIENCE);
    assert!(!gateway.metrics().of_job(&job.id).is_empty(), "kill -9 leaves the group");
    let _second = agent(&gateway, "n2");
    wait::until_true("the stale job is gone", PATIENCE, || {
        gateway.metrics().of_job(&job.id).is_empty()
    });
}

#[test]
fn an_ended_job_stays_for_its_intervals_and_no_longer() {
    for linger in [0, 3] {
        let mut settings = config();
        settings.linger = linger;
        settings.node = Some("n4".parse().unwrap());
        let agent = RunningAgent::start(settings);
        let job = submit("stw-alice", &["-p", "gpu", "-w", "n4"], SLEEP);
        agent.wait_for("the job", PATIENCE, |metrics| metrics.job("jobs_rss", &job.id));
        let dir = job.cgroup();
        let look = || {
            let metrics = agent.metrics();
            let scan = metrics.all("steward_agent_scans_total", &[])[0].value;
            (scan, !metrics.of_job(&job.id).is_empty())
        };
        job.cancel();
        let end = wait::until("the job's directory is gone", PATIENCE, || {
            let (scan, _) = look();
            (!dir.exists()).then_some(scan)
        });
        let mut last = end;
        wait::until_true("the job is gone", PATIENCE, || {
            let (scan, shown) = look();
            if shown {
                last = scan;
            }
            !shown
        });
        // The scan under way when the directory went may belong to either side.
        let shown_for = last - end;
        let linger = f64::from(linger);
        assert!(
            (linger - 1.0..=linger + 1.0).contains(&shown_for),
            "linger {linger}: shown in {shown_for} scans after its end"
        );
    }
}
