//! The queue: many, and of two clusters.

use steward_tests::slurm::{self, submit};
use steward_tests::testbed::USERS;

use super::stage::{node, take};
use super::truth;

#[test]
fn a_thousand_tasks_that_wait_count_a_thousand_and_the_two_clusters_apart() {
    let stage = take("");
    let options = ["--array=0-999%7", "--hold", "-c", "2", "--mem=10"];
    let array = submit(USERS[2], &options, "#!/bin/sh\nsleep 600\n");
    let options = ["-M", "steward2", "-w", &node(12), "--gres=gpu:1", "-c", "5", "--mem=1000"];
    let elsewhere = submit(USERS[0], &options, "#!/bin/sh\nsleep 600\n");
    stage.agrees("a thousand tasks wait");
    let (states, reasons) = truth::queue("steward");
    assert!(states["pending"] >= 1000 && reasons["JobHeldUser"] >= 1000);
    let page = stage.service.metrics();
    let labels = [("cluster", "steward"), ("user", USERS[2]), ("state", "pending")];
    assert_eq!(page.value("steward_user_jobs", &labels), Some(1000.0));
    assert_eq!(page.value("steward_user_cpus", &labels), Some(2000.0));
    let labels = [("cluster", "steward"), ("partition", "cpu"), ("state", "pending")];
    assert_eq!(page.value("steward_partition_jobs", &labels), Some(1000.0));
    let (_, told) = stage.api(&format!("/steward/jobs/{}", array.id));
    assert_eq!(told["job"]["tasks"], 1000, "{told}");
    // Some of them run: the record is divided.
    slurm::run("scontrol", &["release", &array.id]);
    stage.agrees("some tasks run");
    let held = [("cluster", "steward2"), ("type", "other"), ("class", "allocated"), ("cause", "")];
    assert_eq!(stage.service.metrics().value("steward_cluster_gpus", &held), Some(1.0));
    array.cancel();
    slurm::run("scancel", &["-M", "steward2", &elsewhere.id]);
    stage.agrees("all are cancelled");
}
