//! Rules while a daemon of Slurm hangs: what it knew is unknown, the rest is judged.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use steward_tests::service::program;
use steward_tests::slurm::submit;
use steward_tests::testbed::Testbed;

use super::control;
use super::stage::{CLUSTERS, Stage, take};

/// A daemon that hangs for as long as this lives.
struct Hung(&'static str);

impl Hung {
    fn new(service: &'static str) -> Hung {
        control::signal(service, Signal::SIGSTOP);
        Hung(service)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        control::signal(self.0, Signal::SIGCONT);
    }
}

/// What `evaluate --json` says, with settings that do not wait for long.
fn evaluate(stage: &Stage, args: &[&str], code: i32) -> Value {
    let settings = std::fs::read_to_string(stage.dir.path().join("one.toml")).unwrap();
    let quick = settings.replace("[slurm]\n", "[slurm]\ntimeout = \"5s\"\nretries = 0\n");
    let config = stage.dir.path().join("quick.toml");
    std::fs::write(&config, quick).unwrap();
    let mut command = Command::new("timeout");
    command.arg("300").arg(program()).arg("--config").arg(config);
    command.args(["evaluate", "--json", "--days", "1"]).args(args);
    let done = command.env("SLURM_CONF", Testbed::get().slurm_conf()).output().unwrap();
    assert_eq!(done.status.code(), Some(code), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// What failed of a cluster.
fn troubles(answer: &Value, cluster: &str) -> Vec<String> {
    let all = answer["troubles"].as_array().unwrap().iter();
    let of = all.filter(|trouble| trouble["cluster"] == cluster);
    of.map(|trouble| format!("{}: {}", trouble["what"], trouble["why"])).collect()
}

/// How many jobs of a cluster were looked at.
fn jobs(answer: &Value, cluster: &str) -> u64 {
    let clusters = answer["clusters"].as_array().unwrap();
    let of = clusters.iter().find(|known| known["cluster"] == cluster);
    of.map_or(0, |known| known["jobs"].as_u64().unwrap())
}

#[test]
fn a_database_or_a_controller_that_hangs_is_named_and_the_rest_is_judged() {
    let stage = take("");
    let job = submit("stw-alice", &["-p", "cpu", "--mem=50M"], "#!/bin/sh\nexec sleep 600\n");
    job.wait_running();
    let [first, second] = CLUSTERS;
    let well = evaluate(&stage, &[], 0);
    assert_eq!(troubles(&well, first), Vec::<String>::new(), "{well:#}");
    assert!(jobs(&well, first) >= 1);

    let hung = Hung::new("slurmdbd");
    let answer = evaluate(&stage, &[], 3);
    for cluster in CLUSTERS {
        let told = troubles(&answer, cluster).join("\n");
        assert!(told.contains("collection") && told.contains("are not judged"), "{told}");
    }
    assert!(jobs(&answer, first) >= 1, "slurmctld knows what runs: {answer:#}");
    drop(hung);

    let hung = Hung::new("slurmctld");
    let answer = evaluate(&stage, &["--no-collect"], 3);
    let told = troubles(&answer, first).join("\n");
    assert!(told.contains("slurmctld (jobs)"), "{told}");
    assert_eq!(troubles(&answer, second), Vec::<String>::new(), "{answer:#}");
    drop(hung);
    stage.answered(first, true);
}
