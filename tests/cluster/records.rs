//! Records of jobs and nodes: over HTTP, at the socket, in the terminal.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use steward_tests::slurm::{self, submit};
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::{service, wait};

use super::control;
use super::stage::{PATIENCE, Stage, node, take};
use super::truth;

fn states(told: &Value) -> Vec<&str> {
    told["states"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect()
}

/// Runs `steward` as a user with the stage's configuration.
fn steward(stage: &Stage, user: Option<&str>, args: &[&str]) -> Value {
    let config = stage.dir.path().join("one.toml");
    let config = config.to_str().unwrap();
    let args = [&["--config", config], args].concat();
    let output = match user {
        Some(user) => service::steward_as(user, &args),
        None => service::steward(&args),
    };
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

#[test]
fn a_job_is_told_from_slurmctld_then_from_the_store_then_from_the_archive() {
    let stage = take("");
    // Held at first, so that each state lasts longer than a snapshot.
    let options = ["-M", "steward2", "--hold", "-w", &node(11), "-c", "2", "-J", "told"];
    let job = submit(USERS[0], &options, "#!/bin/sh\nsleep 4\n");
    let path = format!("/steward2/jobs/{}", job.id);
    let until = |expected: &[&str]| {
        wait::until(&format!("{expected:?}"), PATIENCE, || {
            let (code, told) = stage.api(&path);
            (code == 200 && states(&told) == expected).then_some(told)
        })
    };
    let told = until(&["PENDING"]);
    assert_eq!(told["job"]["reason"], "JobHeldUser", "{told}");
    slurm::run("scontrol", &["-M", "steward2", "release", &job.id]);
    let told = until(&["PENDING", "RUNNING"]);
    assert_eq!(told["source"], "slurmctld");
    assert_eq!(told["job"]["node_list"], node(11), "{told}");
    let ended = wait::until("it has ended", PATIENCE, || {
        let (_, told) = stage.api(&path);
        (states(&told).last() == Some(&"COMPLETED")).then_some(told)
    });
    assert_eq!(ended["job"]["job_name"], "told");

    // slurmctld forgets its jobs with its state.
    let repair = control::Repair;
    control::signal("slurmctld2", Signal::SIGKILL);
    let state = format!("{}/slurmctld2", Testbed::get().value("STEWARD_TESTBED_DIR"));
    for name in ["job_state", "job_state.old"] {
        let path = std::path::Path::new(&state).join(name);
        if path.exists() {
            std::fs::remove_file(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    stage.answered("steward2", false);
    drop(repair);
    stage.answered("steward2", true);
    let told = wait::until("slurmctld has forgotten it", PATIENCE, || {
        let (_, told) = stage.api(&path);
        (told["source"] != "slurmctld").then_some(told)
    });
    assert_eq!(told["source"], "store", "{told}");
    assert_eq!(states(&told), states(&ended));

    let conf = stage.dir.path().join("one.toml");
    let collected = Command::new(service::program())
        .arg("--config")
        .arg(conf)
        .arg("collect")
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .output()
        .unwrap();
    assert!(collected.status.success(), "{collected:?}");
    let (code, told) = stage.api(&path);
    assert_eq!((code, &told["source"]), (200, &"archive".into()), "{told}");
    assert_eq!(told["runs"][0]["job_name"], "told");
    assert_eq!(told["runs"][0]["state"], "COMPLETED");
    assert_eq!(states(&told), states(&ended));
    let (code, told) = stage.api("/steward2/jobs/4000000000");
    assert_eq!(code, 404);
    assert!(told["error"].as_str().unwrap().contains("neither"), "{told}");
}

#[test]
fn users_see_their_own_jobs_at_the_socket_and_slurm_shows_all() {
    let stage = take("");
    let sleep = "#!/bin/sh\nsleep 600\n";
    let first = submit(USERS[0], &["-c", "2", "--mem=100"], sleep);
    let second = submit(USERS[1], &["-p", "gpu", "--gres=gpu:fake:2", "--mem=100"], sleep);
    first.wait_running();
    second.wait_running();
    stage.agrees("two jobs run");
    let ids = |told: &Value| -> Vec<String> {
        let running =
            told["jobs"].as_array().unwrap().iter().filter(|job| job["state"] == "RUNNING");
        running.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
    };
    let both = [first.id.clone(), second.id.clone()];
    let service = ["current", "--service", "--json"];
    assert_eq!(ids(&steward(&stage, None, &service)), both);
    assert_eq!(ids(&steward(&stage, Some(USERS[1]), &service)), both[1..]);
    // Everybody may ask Slurm itself, in whose own words it is the same.
    let own = ids(&steward(&stage, Some(USERS[0]), &["current", "--json", "--cluster", "steward"]));
    assert_eq!(own, both);
    let nodes = steward(&stage, Some(USERS[0]), &["nodes", "--service", "--json"]);
    let nodes = nodes["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 6);
    let sum = |key: &str| -> u64 {
        let own = nodes.iter().filter(|node| node["cluster"] == "steward");
        own.map(|node| node[key].as_u64().unwrap()).sum()
    };
    let [allocated, _, _, total] = truth::cpus("steward");
    assert_eq!((sum("cpus_allocated"), sum("cpus_total")), (allocated, total));
    let lines = steward_tests::http::get(&format!(
        "{}/api/v1/clusters/steward/jobs?format=ndjson&state=running",
        stage.service.url()
    ))
    .and_then(reqwest::blocking::Response::text)
    .unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.lines().all(|line| line.contains("\"cluster\":\"steward\"")));
}
