//! Nodes that are taken out, and what is then left of them.

use steward_tests::slurm::{self, submit};
use steward_tests::testbed::USERS;
use steward_tests::wait;

use super::control;
use super::stage::{PATIENCE, Stage, exported, node, take};

fn scontrol(args: &[&str]) {
    slurm::run("scontrol", args);
}

/// Puts everything back, whether the test passed or not.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        let quietly = |args: &[&str]| {
            let conf = steward_tests::testbed::Testbed::get().slurm_conf();
            let _there_was_none =
                std::process::Command::new("scontrol").args(args).env("SLURM_CONF", conf).output();
        };
        quietly(&["delete", "reservation=stw-maint"]);
        quietly(&["delete", "reservation=stw-plain"]);
        for number in 1..=4 {
            quietly(&["update", &format!("nodename={}", node(number)), "state=resume"]);
        }
    }
}

fn unusable(stage: &Stage, resource: &str, cause: &str) -> u64 {
    let key = (resource.to_owned(), "unusable".to_owned(), cause.to_owned());
    exported(&stage.service.metrics(), "steward").get(&key).copied().unwrap_or(0)
}

#[test]
fn nodes_that_are_drained_down_or_reserved_are_unusable_and_the_rest_adds_up() {
    let stage = take("");
    let _restore = Restore;
    let (first, second) = (node(1), node(2));
    let job = submit(USERS[0], &["-w", &first, "-c", "3", "--mem=600"], "#!/bin/sh\nsleep 600\n");
    job.wait_running();
    stage.agrees("a job runs");

    scontrol(&["update", &format!("nodename={first}"), "state=drain", "reason=new \"disk\", a=b"]);
    stage.agrees("a node with a job is drained");
    // What its job holds stays allocated.
    assert_eq!(unusable(&stage, "cpus", "drain"), 5);
    let page = stage.service.metrics();
    let reasons = page.all("steward_node_reason_info", &[("cluster", "steward"), ("node", &first)]);
    let [reason] = &reasons[..] else { panic!("{reasons:?}") };
    assert_eq!(reason.labels["reason"], "new \"disk\", a=b");
    assert_eq!(reason.labels["author"], "root");
    let flag = [("cluster", "steward"), ("node", &first), ("flag", "drain")];
    assert_eq!(page.value("steward_node_flag", &flag), Some(1.0));
    let (_, told) = stage.api(&format!("/steward/nodes/{first}"));
    assert_eq!(told["node"]["reason"]["text"], "new \"disk\", a=b");
    assert_eq!(told["node"]["cpus"]["unusable"]["drain"], 5);
    assert_eq!(told["jobs"], serde_json::json!([job.id.parse::<u32>().unwrap()]));

    // A slurmd that was started a moment ago may still register: then the node comes back, and goes down again.
    wait::until_true("all of another is down", PATIENCE, || {
        scontrol(&["update", &format!("nodename={second}"), "state=down", "reason=dead"]);
        stage.agrees("another is down");
        unusable(&stage, "cpus", "down") == 8
    });

    for name in [&first, &second] {
        scontrol(&["update", &format!("nodename={name}"), "state=resume"]);
    }
    stage.agrees("both are back");
    assert_eq!(unusable(&stage, "cpus", "drain") + unusable(&stage, "cpus", "down"), 0);
    assert!(stage.service.metrics().all("steward_node_reason_info", &[]).is_empty());

    let reserve = |name: &str, node: &str, more: &[&str]| {
        let (name, nodes) = (format!("reservationname={name}"), format!("nodes={node}"));
        let always =
            ["create", "reservation", &name, &nodes, "users=root", "starttime=now", "duration=60"];
        scontrol(&[&always[..], more].concat());
    };
    reserve("stw-plain", &second, &[]);
    reserve("stw-maint", &node(4), &["flags=maint"]);
    wait::until_true("both are reserved", PATIENCE, || {
        unusable(&stage, "gpus fake", "maint") == 2 && unusable(&stage, "cpus", "reserved") == 8
    });
    stage.agrees("two nodes are reserved");
    let active = [("cluster", "steward"), ("reservation", "stw-plain")];
    assert_eq!(stage.service.metrics().value("steward_reservation_active", &active), Some(1.0));
}

#[test]
fn gpus_and_memory_beside_a_full_cpu_and_cpus_beside_full_memory_are_stranded() {
    let stage = take("");
    let sleep = "#!/bin/sh\nsleep 600\n";
    let third = node(3);
    let full = submit(USERS[1], &["-p", "gpu", "-w", &third, "-c", "8", "--mem=100"], sleep);
    full.wait_running();
    stage.agrees("a node is full but has free GPUs");
    assert_eq!(unusable(&stage, "gpus fake", "no_cpu"), 2);
    assert_eq!(unusable(&stage, "memory", "no_cpu"), 3900 << 20);
    assert_eq!(unusable(&stage, "cpus", "no_cpu"), 0);
    let greedy = submit(
        USERS[1],
        &["-p", "gpu", "-w", &node(4), "-c", "1", "--gres=gpu:1", "--mem=4000"],
        sleep,
    );
    greedy.wait_running();
    stage.agrees("another has no memory left");
    assert_eq!(unusable(&stage, "gpus fake", "no_mem"), 1);
    assert_eq!(unusable(&stage, "cpus", "no_mem"), 7);
}

#[test]
fn a_node_whose_slurmd_died_does_not_respond() {
    let stage = take("");
    let second = node(2);
    let repair = control::Repair;
    control::signal(&format!("slurmd@{second}"), nix::sys::signal::Signal::SIGKILL);
    // slurmctld notices when it has something to say to it.
    let job = submit(USERS[0], &["-w", &second], "#!/bin/sh\nsleep 600\n");
    let flag = [("cluster", "steward"), ("node", &*second), ("flag", "not_responding")];
    wait::until_true("the node does not respond", PATIENCE * 2, || {
        stage.service.metrics().value("steward_node_flag", &flag) == Some(1.0)
    });
    stage.agrees("a slurmd is dead");
    assert!(unusable(&stage, "cpus", "not_responding") > 0);
    job.cancel();
    drop(repair);
    wait::until_true("the node responds", PATIENCE * 2, || {
        stage.service.metrics().value("steward_node_flag", &flag).is_none()
    });
    stage.agrees("it is back");
}
