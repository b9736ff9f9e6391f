//! The dashboard of a cluster, alive on a real Prometheus.

use steward_tests::dashboard::{dashboards, fill, must_answer};
use steward_tests::prometheus::Prometheus;
use steward_tests::slurm::{self, submit};
use steward_tests::testbed::USERS;

use super::stage::{node, take};

#[test]
fn every_query_of_the_dashboard_finds_series() {
    let constant = "[[exporter.constants]]\nname = \"allocated_gpu_years\"\nvalue = 12.5\n\
                    labels = { cluster = \"steward\", year = \"2026\" }\n";
    let stage = take(constant);
    let prometheus = Prometheus::start(stage.service.url());
    let sleep = "#!/bin/sh\nsleep 600\n";
    let _running = submit(USERS[0], &["-p", "gpu", "-w", &node(3), "-c", "8", "--mem=100"], sleep);
    let _waiting = submit(USERS[1], &["--hold"], sleep);
    let out = format!("nodename={}", node(1));
    slurm::run("scontrol", &["update", &out, "state=drain", "reason=a test"]);
    let reservation = ["reservationname=stw-board", "users=root", "starttime=now", "duration=60"];
    let nodes = format!("nodes={}", node(2));
    slurm::run("scontrol", &[&["create", "reservation", &nodes], &reservation[..]].concat());
    struct Restore(String);
    impl Drop for Restore {
        fn drop(&mut self) {
            slurm::run("scontrol", &["update", &self.0, "state=resume"]);
            slurm::run("scontrol", &["delete", "reservation=stw-board"]);
        }
    }
    let _restore = Restore(out);
    let board = dashboards().into_iter().find(|one| one.file == "cluster.json").unwrap();
    let pending: Vec<(String, String)> = board
        .queries()
        .into_iter()
        .map(|query| {
            let value = |name: &str| (name == "cluster").then(|| "steward".to_owned());
            let text = fill(&query.text, value).unwrap_or_else(|e| panic!("{}: {e}", query.place));
            (query.place, text)
        })
        // Nothing was collected, so no GPU-years are known.
        .filter(|(_, text)| !text.contains("steward_gpu_years_used"))
        .collect();
    must_answer(prometheus.url(), pending);
}
