//! An archive whose sacct, clusters or files are not what they should be: it says so, says what to do,
//! and takes nothing for collected that was not.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use serde_json::{Value, json};
use steward_tests::archive::files;
use steward_tests::scripted::{Scripted, now};

const COLLECT: [&str; 4] = ["collect", "--days", "1", "--no-summary"];

fn jobs(count: i64) -> Value {
    let job = |id: i64| {
        let end = now() - 60 * id;
        json!({
            "JobIDRaw": id, "JobID": id, "Cluster": "c1", "User": "ann", "State": "COMPLETED",
            "Submit": end - 30, "Start": end - 20, "End": end, "ElapsedRaw": 20, "AllocCPUS": 1,
        })
    };
    (1..=count).map(job).collect()
}

/// Runs a command that must fail; what it complains about.
fn fails(site: &Scripted, arguments: &[&str], code: i32) -> String {
    let output = site.run(arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
    told
}

#[test]
fn what_is_no_sacct_has_not_told_that_there_are_no_jobs() {
    let site = Scripted::new("sacct = [\"true\"]\n");
    let told = fails(&site, &COLLECT, 1);
    assert!(told.contains("slurm.sacct must be a sacct"), "{told}");
    assert_eq!(fails(&site, &["status"], 1).matches("no archive here yet").count(), 1);
}

#[test]
fn an_answer_that_ends_within_a_row_is_not_all_of_it() {
    let cut = "case \\\"$*\\\" in *helpformat*) exec $SACCT \\\"$@\\\";; esac; \
               $SACCT \\\"$@\\\" | head -c 1000";
    let site = Scripted::new(&format!("sacct = [\"sh\", \"-c\", \"{cut}\", \"sacct\"]\n"));
    site.answer(&jobs(30));
    let told = fails(&site, &COLLECT, 1);
    assert!(told.contains("ends within a row"), "{told}");
    assert!(files(&site.data().join("processed")).is_empty(), "nothing is kept");
}

#[test]
fn a_cluster_that_nobody_knows_is_not_an_empty_one() {
    let site = Scripted::new("sacctmgr = [\"sh\", \"-c\", \"echo tuxedo; echo tux\"]\n");
    let told = fails(&site, &COLLECT, 1);
    assert!(told.contains("knows no cluster c1, only tuxedo, tux"), "{told}");
    assert!(told.contains("slurm.clusters"), "{told}");
    let doctor = site.run(&["doctor", "--json"]);
    let findings: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let found = findings.as_array().unwrap().iter().find(|finding| {
        finding["mark"] == "trouble" && finding["text"].as_str().unwrap().contains("cluster c1")
    });
    assert!(found.is_some(), "{findings}");
    // One that is known may well be idle.
    let idle = Scripted::new("sacctmgr = [\"sh\", \"-c\", \"echo c1\"]\n");
    assert!(idle.steward(&COLLECT).contains("0 runs new"));
}

#[test]
fn days_that_cannot_be_are_the_askers_mistake() {
    let site = Scripted::new("");
    site.answer(&jobs(1));
    site.steward(&COLLECT);
    for days in [["--from", "2030-01-01"], ["--to", "2090-01-01"]] {
        fails(&site, &[&["analyze"], &days[..]].concat(), 2);
        fails(&site, &[&["jobs", "--all-users"], &days[..]].concat(), 2);
    }
    let told = fails(&site, &["analyze", "--user", "nobody"], 1);
    assert!(told.contains("No data found"), "{told}");
}

/// Cuts a file off.
fn damage(path: &PathBuf) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(50).unwrap();
}

#[test]
fn whoever_finds_a_damaged_file_says_what_to_do_and_that_helps() {
    let site = Scripted::new("");
    site.answer(&jobs(30));
    site.steward(&COLLECT);
    let before = site.runs();
    let days = files(&site.data().join("processed"));
    damage(days.iter().find(|path| !path.ends_with("open.parquet")).unwrap());
    for command in [&["analyze"][..], &["jobs", "--all-users"], &COLLECT] {
        let told = fails(&site, command, 1);
        assert!(told.contains("`steward archive rebuild` makes it anew"), "{told}");
    }
    site.steward(&["archive", "rebuild"]);
    assert_eq!(site.runs(), before);
    for raw in files(&site.data().join("raw")) {
        damage(&raw);
        for command in [&["archive", "rebuild"][..], &["archive", "forget-user", "x", "--yes"]] {
            let told = fails(&site, command, 1);
            assert!(told.contains("put it back from a backup, or take it away"), "{told}");
        }
        fs::remove_file(raw).unwrap();
    }
    site.steward(&["archive", "rebuild"]);
    assert_eq!(site.runs(), before);
    let manifest = site.data().join("manifest.json");
    damage(&manifest);
    for command in [&["status"][..], &["analyze"], &["archive", "rebuild"], &COLLECT] {
        let told = fails(&site, command, 1);
        assert!(told.contains("or delete it: then `steward archive rebuild`"), "{told}");
    }
    fs::remove_file(manifest).unwrap();
    site.steward(&["archive", "rebuild"]);
    assert_eq!(site.runs(), before);
}
