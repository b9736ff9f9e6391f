//! What each way to hold an account does to jobs, with and without `safe` in AccountingStorageEnforce. The testbed's
//! slurmctld is started anew for that.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use steward_tests::bank::{Account, Bank};
use steward_tests::slurm;
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::wait;

use super::control;
use super::stage::{CLUSTERS, take};

/// Ways to hold, with what becomes of a running job without and with `safe`, and of a new one.
const WAYS: [(&str, &str, &str); 4] = [
    ("GrpTRESMins", "TIMEOUT", "AssocGrpCPUMinutesLimit"),
    ("GrpTRESRunMins", "RUNNING", "AssocGrpCPURunMinutesLimit"),
    ("MaxSubmitJobs", "RUNNING", "refused"),
    ("billing", "TIMEOUT", "AssocGrpBillingMinutes"),
];

/// How long a running job is watched. slurmctld looks at limits of running jobs every half minute.
const WATCH: Duration = Duration::from_secs(75);

const SLEEP: &str = "#!/bin/sh\nsleep 900\n";

/// Starts slurmctld anew with this AccountingStorageEnforce.
fn enforce(words: &str) -> Result<(), String> {
    control::end("slurmctld");
    control::up(&[("STEWARD_TESTBED_ENFORCE", words)])?;
    let config = slurm::run("scontrol", &["show", "config"]);
    let mut lines = config.lines();
    let told = lines.any(|line| {
        line.starts_with("AccountingStorageEnforce") && line.ends_with(&format!(" {words}"))
    });
    if told { Ok(()) } else { Err(format!("slurmctld does not enforce {words}: {config}")) }
}

/// The usual settings come back, whatever happens.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        control::must(enforce("associations,limits,qos,safe"));
    }
}

/// What README.md says of a way: of a running job with `safe` and without, and of a new one.
fn manual(way: &str) -> [String; 3] {
    let path = steward_tests::directory().join("../README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("| `{way}`"))).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    [cells[3], cells[4], cells[5]].map(str::to_owned)
}

/// The fate of a running job and of a new one, under each way.
fn fates() -> Vec<(String, String)> {
    let accounts =
        WAYS.map(|(way, ..)| Account::new(&format!("hold-{}", way.to_lowercase()), USERS[0]));
    let banks = WAYS.map(|(way, ..)| {
        // A limit of nothing is reached by whoever used nothing.
        let more = "default_allocation = 0\nat_limit = \"inclusive\"\nclusters = [\"steward\"]";
        Bank::new(&format!("hold = {way:?}\n{more}"))
    });
    let running: Vec<_> =
        accounts.iter().map(|account| account.submit(&["-t", "60"], SLEEP)).collect();
    for job in &running {
        job.wait_running();
    }
    for (bank, account) in banks.iter().zip(&accounts) {
        bank.done(&["insert", &account.name, "0"]);
        let held = bank.done(&["check", &account.name]);
        assert!(held.contains("held on steward"), "{held}");
    }
    let fresh: Vec<Option<slurm::Job>> = (WAYS.iter().zip(&accounts))
        .map(|((way, ..), account)| {
            (*way != "MaxSubmitJobs").then(|| account.submit(&["-t", "60"], SLEEP))
        })
        .collect();
    let refused = Command::new("runuser")
        .args(["-u", USERS[0], "--", "sbatch", "-A", &accounts[2].name, "--wrap=true"])
        .current_dir("/tmp")
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .output()
        .unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).contains("AssocMaxSubmitJobLimit");
    std::thread::sleep(WATCH);
    let reason = |job: &slurm::Job| slurm::run("squeue", &["-h", "-j", &job.id, "-o", "%r"]);
    let fates = (running.iter().zip(&fresh)).map(|(job, fresh)| {
        let new = match fresh {
            Some(fresh) => reason(fresh),
            None => if refused { "refused" } else { "taken" }.to_owned(),
        };
        (job.state(), new)
    });
    let fates: Vec<_> = fates.collect();
    // Released, a new job runs.
    for ((bank, account), fresh) in banks.iter().zip(&accounts).zip(&fresh) {
        bank.done(&["add", &account.name, "1000"]);
        match fresh {
            Some(fresh) => fresh.wait_running(),
            None => account.submit(&["-t", "60"], SLEEP).wait_running(),
        }
    }
    fates
}

#[test]
fn every_way_to_hold_does_what_the_manual_says() {
    // Nobody else is on the stage meanwhile.
    let stage = take("");
    assert_eq!(CLUSTERS[0], "steward");
    let _restore = Restore;
    for safe in [true, false] {
        let words = "associations,limits,qos";
        enforce(&if safe { format!("{words},safe") } else { words.to_owned() }).unwrap();
        for ((way, unsafe_fate, new), (running, fresh)) in WAYS.iter().zip(fates()) {
            let with = if safe { "with safe" } else { "without safe" };
            println!("{way:<16} {with:<13} running job: {running:<8} new job: {fresh}");
            let expected = if safe { "RUNNING" } else { unsafe_fate };
            assert_eq!((running.as_str(), fresh.as_str()), (expected, *new), "{way} {with}");
            let [with_safe, without, waits] = manual(way);
            let said = if safe { with_safe } else { without };
            let word = if running == "RUNNING" { "goes on" } else { running.as_str() };
            assert!(said.contains(word) && waits.contains(&fresh), "README: {said}, {waits}");
        }
    }
    drop(stage);
}

#[test]
fn a_cluster_that_is_down_is_neither_without_use_nor_a_reason_to_release() {
    let stage = take("");
    let account = Account::new("bank-down", USERS[1]);
    let name = account.name.as_str();
    let settings = |at_limit: &str| {
        format!("default_allocation = 0\nat_limit = {at_limit:?}\nclusters = {CLUSTERS:?}")
    };
    let bank = Bank::new(&settings("inclusive"));
    bank.done(&["insert", name, "0"]);
    assert!(bank.done(&["check", name]).contains("Held"));
    for cluster in CLUSTERS {
        assert_eq!(account.limit(cluster, "GrpTRESRunMins"), "cpu=0");
    }
    control::signal("slurmctld2", Signal::SIGKILL);
    let repair = control::Repair;
    // Units for years, and still nothing is released: who knows what was used there.
    for args in [&["add", name, "100000"][..], &["check", name], &["check", "--all"]] {
        let said = bank.run(args);
        assert_eq!(said.code, 3, "{args:?}: {said:?}");
        assert!(said.complaint.contains("steward2 does not say what was used"), "{said:?}");
        for cluster in CLUSTERS {
            assert_eq!(account.limit(cluster, "GrpTRESRunMins"), "cpu=0", "{args:?}");
        }
    }
    assert!(bank.refused(1, &["release_hold", name]).contains("stays held"));
    assert!(bank.refused(1, &["reset_usage", name]).contains("nothing was changed"));
    let info = bank.run(&["info", name, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&info.text).unwrap();
    assert_eq!((info.code, &told["used"], &told["left"]), (3, &().into(), &().into()), "{told}");
    assert_eq!(told["used_by_cluster"]["steward2"], serde_json::Value::Null);
    assert_eq!(told["used_by_cluster"]["steward"], 0);
    drop(repair);
    wait::until_true("slurmctld answers and it is released", Duration::from_secs(120), || {
        bank.run(&["check", name]).code == 0
    });
    for cluster in CLUSTERS {
        assert_eq!(account.limit(cluster, "GrpTRESRunMins"), "", "{cluster}");
    }
    drop(stage);
}
