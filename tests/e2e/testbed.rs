//! The testbed itself: what everything else stands on.

use std::path::Path;
use std::process::{Command, Output};

use steward_tests::slurm;
use steward_tests::testbed::{Testbed, USERS};

fn script(args: &[&str]) -> Output {
    let path = steward_tests::directory().join("../deploy/testbed");
    Command::new(path).args(args).output().unwrap()
}

/// What `status --json` says.
fn status() -> serde_json::Value {
    let output = script(&["status", "--json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn up_twice_is_harmless_and_quick() {
    let before = status();
    let output = script(&["up"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("already up"), "{text}");
    // Nothing was restarted: the same processes answer.
    assert_eq!(before["services"], status()["services"]);
}

#[test]
fn status_names_every_service_and_four_nodes() {
    let text = status()["services"].to_string();
    for name in ["slurmctld", "slurmdbd", "mariadb", "munge", "prometheus", "pushgateway", "smtp"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }
    assert_eq!(slurm::run("sinfo", &["-h", "-N", "-o", "%N"]).lines().count(), 4);
    assert_eq!(slurm::run("sinfo", &["-h", "-p", "gpu", "-o", "%G %D"]), "gpu:fake:2 2");
}

#[test]
fn bad_usage_and_a_missing_right_are_told_apart() {
    assert_eq!(script(&["sideways"]).status.code(), Some(2));
    // A copy, since the clone may be closed to others.
    let dir = steward_tests::shared::directory();
    let deploy = steward_tests::directory().join("../deploy");
    for part in ["testbed", "testbed.d"] {
        let copied =
            Command::new("cp").arg("-r").arg(deploy.join(part)).arg(dir.path()).status().unwrap();
        assert!(copied.success());
    }
    let output = Command::new("runuser")
        .args(["-u", USERS[0], "--"])
        .arg(dir.path().join("testbed"))
        .arg("up")
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("root"), "{output:?}");
    assert!(Path::new(Testbed::get().slurm_conf()).is_file());
}
