//! A slurmctld that is dead, and one that hangs.

use std::time::Instant;

use nix::sys::signal::Signal;
use steward_tests::exposition::Exposition;
use steward_tests::wait;

use super::control;
use super::stage::{CLUSTERS, PATIENCE, Stage, exported, take};

fn age(page: &Exposition, cluster: &str) -> f64 {
    let labels = [("cluster", cluster), ("question", "nodes")];
    page.value("steward_snapshot_age_seconds", &labels).unwrap()
}

/// While slurmctld of `down` does not answer: its counts stay, their age grows, the other cluster
/// goes on, and a page comes at once.
fn what_is_known_stays(stage: &Stage, down: &str, up: &str) {
    let before = stage.service.metrics();
    stage.answered(down, false);
    let first = age(&stage.service.metrics(), down);
    wait::until_true("its age grows", PATIENCE, || {
        let begun = Instant::now();
        let page = stage.service.metrics();
        assert!(begun.elapsed().as_secs_f64() < 2.0, "a page waits for slurmctld");
        assert_eq!(exported(&page, down), exported(&before, down), "its counts stay");
        assert!(!page.all("steward_jobs", &[("cluster", down)]).is_empty());
        age(&page, down) >= first + 3.0 && age(&page, up) < age(&page, down)
    });
    stage.answered(up, true);
    let (code, told) = stage.api(&format!("/{down}/nodes"));
    assert_eq!(code, 200, "{told}");
    assert!(told["error"].is_string() && told["age_seconds"].as_i64().unwrap() >= 3, "{told}");
    assert!(stage.service.health().is_some(), "the service itself is well");
}

#[test]
fn a_slurmctld_that_was_killed_makes_nothing_vanish() {
    let stage = take("");
    stage.agrees("before");
    let repair = control::Repair;
    control::signal("slurmctld2", Signal::SIGKILL);
    what_is_known_stays(&stage, CLUSTERS[1], CLUSTERS[0]);
    drop(repair);
    stage.answered(CLUSTERS[1], true);
    stage.agrees("it is back");
}

#[test]
fn a_slurmctld_that_hangs_makes_nothing_vanish() {
    let stage = take("");
    stage.agrees("before");
    control::signal("slurmctld", Signal::SIGSTOP);
    // It must go on, whatever happens here.
    struct Continue;
    impl Drop for Continue {
        fn drop(&mut self) {
            control::signal("slurmctld", Signal::SIGCONT);
        }
    }
    let go_on = Continue;
    what_is_known_stays(&stage, CLUSTERS[0], CLUSTERS[1]);
    drop(go_on);
    stage.answered(CLUSTERS[0], true);
    stage.agrees("it goes on");
}
