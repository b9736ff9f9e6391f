//! Whose jobs, by which names.

use std::time::Duration;

use steward_agent::config::UserRef;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::slurm::submit;

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn the_info_metric_describes_an_array_task_by_its_raw_id() {
    let agent = RunningAgent::start(config());
    let array = submit("stw-bob", &["-A", "biology", "--array=5"], "#!/bin/bash\nsleep 600\n");
    let labels = agent.wait_for("jobs_info of the array's task", PATIENCE, |metrics| {
        let found = metrics.all("jobs_info", &[("array_job", array.id.as_str())]);
        found.first().map(|sample| sample.labels.clone())
    });
    let uid = nix::unistd::User::from_name("stw-bob").unwrap().unwrap().uid.to_string();
    for (label, expected) in [
        ("cluster", "steward"),
        ("user", "stw-bob"),
        ("uid", uid.as_str()),
        ("account", "biology"),
        ("partition", "cpu"),
        ("array_task", "5"),
    ] {
        assert_eq!(labels[label], expected, "{label}");
    }
    assert!(labels["slurm_job"].parse::<u32>().is_ok());
}

#[test]
fn excluded_users_are_not_reported_by_name_or_by_number() {
    let uid = nix::unistd::User::from_name("stw-bob").unwrap().unwrap().uid.as_raw();
    let mut settings = config();
    settings.exclude.users = vec![UserRef::Name("stw-carol".to_owned()), UserRef::Uid(uid)];
    let agent = RunningAgent::start(settings);
    let [carol, bob, alice] = ["stw-carol", "stw-bob", "stw-alice"]
        .map(|user| submit(user, &[], "#!/bin/bash\nsleep 600\n"));
    carol.wait_running();
    bob.wait_running();
    agent.wait_for("alice's job", PATIENCE, |metrics| metrics.job("jobs_rss", &alice.id));
    // Theirs would have been seen.
    agent.wait_scans(2);
    let metrics = agent.metrics();
    assert!(metrics.of_job(&carol.id).is_empty() && metrics.of_job(&bob.id).is_empty());
    assert!(!metrics.of_job(&alice.id).is_empty());
}

#[test]
fn a_configured_node_leaves_the_others_alone() {
    let mut settings = config();
    settings.node = Some("n3".parse().unwrap());
    let agent = RunningAgent::start(settings);
    let here = submit("stw-alice", &["-p", "gpu", "-w", "n3"], "#!/bin/bash\nsleep 600\n");
    let there = submit("stw-alice", &["-p", "gpu", "-w", "n4"], "#!/bin/bash\nsleep 600\n");
    there.wait_running();
    agent.wait_for("the job on n3", PATIENCE, |metrics| metrics.job("jobs_rss", &here.id));
    let metrics = agent.metrics();
    assert!(metrics.of_job(&there.id).is_empty());
    assert!(metrics.samples.iter().all(|sample| sample.labels["instance"] == "n3"));
}
