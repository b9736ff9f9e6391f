//! `steward serve`: real processes, a real Pushgateway, real users.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use steward_tests::gateway::Gateway;
use steward_tests::service::{Service, steward, steward_as};
use steward_tests::{http, shared, wait};

const PATIENCE: Duration = Duration::from_secs(120);

fn push(gateway: &Gateway, path: &str) {
    let url = format!("{}/metrics/{path}", gateway.url());
    let answer = http::client().put(&url).body("something 1\n").send().unwrap();
    assert!(answer.status().is_success(), "{url}: {answer:?}");
}

fn has(gateway: &Gateway, job: &str, instance: &str) -> bool {
    gateway.groups().contains(&(job.to_owned(), instance.to_owned()))
}

fn sweeping(gateway: &Gateway, stale_after: &str) -> String {
    format!(
        "[pushgateway]\nurl = \"{}\"\nstale_after = \"{stale_after}\"\nschedule = \"* * * * * *\"\n",
        gateway.url()
    )
}

#[test]
fn stale_groups_of_agents_are_deleted_and_all_others_are_kept() {
    let gateway = Gateway::start();
    push(&gateway, "job/jobs_exporter/cluster/c1/instance/silent");
    push(&gateway, "job/steward_agent/cluster/c1/instance/silent");
    // 'a/b', as base64.
    push(&gateway, "job/steward_agent/cluster/c1/instance@base64/YS9i");
    push(&gateway, "job/backup/instance/silent");
    push(&gateway, "job/backup");
    let dir = shared::directory();
    let service = Service::start(dir.path(), "one", &sweeping(&gateway, "8s"));
    let silent = |job: &str| has(&gateway, job, "silent");
    wait::until_true("the silent agent's groups are gone", PATIENCE, || {
        // A living agent pushes all the while.
        push(&gateway, "job/steward_agent/cluster/c1/instance/alive");
        !silent("jobs_exporter")
            && !silent("steward_agent")
            && !has(&gateway, "steward_agent", "a/b")
    });
    wait::until_true("three more looks", PATIENCE, || {
        push(&gateway, "job/steward_agent/cluster/c1/instance/alive");
        assert!(has(&gateway, "steward_agent", "alive"), "a living agent's group was deleted");
        let labels = [("task", "pushgateway"), ("result", "ok")];
        service.metrics().value("steward_task_runs_total", &labels).unwrap() >= 12.0
    });
    assert!(silent("backup") && has(&gateway, "backup", ""), "not ours to delete");
    let metrics = service.metrics();
    assert_eq!(metrics.value("steward_pushgateway_groups_deleted_total", &[]), Some(3.0));
    let failed = [("task", "pushgateway"), ("result", "failed")];
    assert_eq!(metrics.value("steward_task_runs_total", &failed), Some(0.0));
}

#[test]
fn one_of_two_leads_and_the_other_takes_over_when_it_is_killed() {
    let gateway = Gateway::start();
    let dir = shared::directory();
    let mut first = Service::start(dir.path(), "first", &sweeping(&gateway, "1s"));
    first.wait_for("leader");
    let mut second = Service::start(dir.path(), "second", &sweeping(&gateway, "1s"));
    second.wait_for("standby");
    let runs = |service: &Service| {
        let labels = [("task", "pushgateway"), ("result", "ok")];
        service.metrics().value("steward_task_runs_total", &labels).unwrap()
    };
    wait::until_true("the leader works", PATIENCE, || runs(&first) >= 3.0);
    assert_eq!(second.metrics().value("steward_leader", &[]), Some(0.0));
    assert!(runs(&second).abs() < 0.5, "the one that waits does nothing");
    assert_eq!(first.signal(Signal::SIGKILL), None);
    second.wait_for("leader");
    wait::until_true("the new leader works", PATIENCE, || runs(&second) >= 1.0);
    // The killed one left its socket: the next service in its place is not held up.
    assert!(dir.path().join("first.sock").exists());
    let third = Service::start(dir.path(), "first", "");
    third.wait_for("standby");
    assert_eq!(second.signal(Signal::SIGTERM), Some(0));
    third.wait_for("leader");
}

#[test]
fn the_kernel_says_who_asks() {
    let gateway = Gateway::start();
    // Nothing listens at that port any more, so that a task fails.
    let config = sweeping(&gateway, "1s");
    drop(gateway);
    let dir = shared::directory();
    let service = Service::start(dir.path(), "one", &config);
    service.wait_for("leader");
    wait::until_true("the task has failed", PATIENCE, || {
        let failed = [("task", "pushgateway"), ("result", "failed")];
        service.metrics().value("steward_task_runs_total", &failed).unwrap() >= 1.0
    });
    let args = ["service", "status", "--json", "--socket", service.socket()];
    let said = |output: std::process::Output| -> serde_json::Value {
        assert_eq!(output.status.code(), Some(1), "a failing task: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let alice = said(steward_as("stw-alice", &args));
    assert_eq!(alice["you"]["user"], "stw-alice");
    assert_eq!(alice["you"]["is_admin"], false);
    assert_eq!(alice["role"], "leader");
    assert!(
        alice["tasks"][0]["error"].is_null(),
        "why a task failed is the administrator's: {alice}"
    );
    let root = said(steward(&args));
    assert_eq!((&root["you"]["user"], &root["you"]["is_admin"]), (&"root".into(), &true.into()));
    assert!(root["tasks"][0]["error"].as_str().unwrap().contains("Pushgateway"), "{root}");
    let table = steward(&["service", "status", "--socket", service.socket()]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("leader") && table.contains("failing"), "{table}");
    assert!(!table.contains('\x1b'), "no colour on a pipe");
}

#[test]
fn sigterm_and_sigint_end_it_cleanly_within_seconds() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let dir = shared::directory();
        let mut service = Service::start(dir.path(), "one", "");
        // Neither a silent client nor a silent reader holds it up.
        let _silent = std::os::unix::net::UnixStream::connect(service.socket()).unwrap();
        service.wait_for("leader");
        assert_eq!(service.signal(signal), Some(0));
        assert!(!Path::new(service.socket()).exists(), "the socket went with it");
    }
}

#[test]
fn a_living_services_socket_is_not_taken_from_it() {
    let dir = shared::directory();
    let service = Service::start(dir.path(), "one", "");
    let state = dir.path().join("other");
    let output = steward(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--socket",
        service.socket(),
        "--state",
        state.to_str().unwrap(),
    ]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("another service listens"), "{text}");
    let status = steward(&["service", "status", "--socket", service.socket()]);
    assert_eq!(status.status.code(), Some(0), "{status:?}");
}

#[test]
fn a_configuration_that_cannot_be_used_ends_with_2_and_the_place() {
    let dir = shared::directory();
    let path = dir.path().join("steward.toml");
    let config = path.to_str().unwrap();
    for (text, complaint) in [
        ("log = \"info\"\n[serve]\nlisen = \"127.0.0.1:1\"\n", format!("{config}:3:1: ")),
        ("[collect]\nschedule = \"99 * * * *\"\n", format!("{config}:2:12: ")),
        ("[slurm]\nparallel = 0\n", format!("{config}: slurm.parallel: ")),
    ] {
        std::fs::write(&path, text).unwrap();
        for command in [&["serve"][..], &["config", "check"], &["now"]] {
            let output = steward(&[&["--config", config], command].concat());
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command:?}: {error}");
            assert!(error.starts_with(&format!("steward: {complaint}")), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
    std::fs::write(&path, "time_zone = \"Europe/Berlin\"\n").unwrap();
    let output = steward(&["--config", config, "config", "check"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Europe/Berlin"), "{text}");
    for usage in [&["--config", "/nonexistent.toml", "config", "check"][..], &["frobnicate"], &[]] {
        assert_eq!(steward(usage).status.code(), Some(2), "{usage:?}");
    }
    let none = dir.path().join("none.sock");
    let output = steward(&["service", "status", "--socket", none.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("steward serve"), "{output:?}");
}
