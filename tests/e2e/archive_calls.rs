//! How sacct is asked: not too often at a time, again when it fails, not for ever, and for what is
//! missing.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steward_tests::archive::records;
use steward_tests::scripted::{Scripted, now};
use steward_tests::wait;

const DAY: i64 = 86_400;

/// The part of a script that answers what sacct is, and knows where to take notes.
const BEGIN: &str = "case \"$*\" in *helpformat*|*version*) exec $SACCT \"$@\";; esac\n\
                     notes=$(dirname \"$0\")/notes\n";

fn notes(site: &Scripted) -> PathBuf {
    site.data().with_file_name("notes")
}

/// What the script wrote since the last time it was read.
fn taken(site: &Scripted) -> String {
    let text = fs::read_to_string(notes(site)).unwrap();
    fs::remove_file(notes(site)).unwrap();
    text
}

/// The first moment of the day so many days ago.
fn midnight(days: i64) -> i64 {
    now() / DAY * DAY - days * DAY
}

/// A job of ten minutes that ended at noon so many days ago.
fn job(days: i64) -> Value {
    let end = midnight(days) + DAY / 2;
    json!({
        "JobIDRaw": days, "JobID": days, "Cluster": "c1", "User": "ann", "State": "COMPLETED",
        "Submit": end - 700, "Start": end - 600, "End": end, "ElapsedRaw": 600, "AllocCPUS": 1,
        "AllocNodes": 1,
    })
}

fn jobs(days: impl Iterator<Item = i64>) -> Value {
    days.map(job).collect()
}

#[test]
fn no_more_calls_at_a_time_than_asked_for() {
    let site = Scripted::new("");
    let script = "echo + >>\"$notes\"\nsleep 0.3\n$SACCT \"$@\"\necho - >>\"$notes\"\n";
    site.wrap(&format!("{BEGIN}{script}"), "clusters = [\"c1\", \"c2\"]\n", "parallel = 3\n");
    site.answer(&jobs(1..=4));
    for (options, limit) in [(&["-n", "1"][..], 1), (&["-n", "4"], 4), (&[], 3)] {
        site.steward(&[&["collect", "--days", "5", "--no-summary"], options].concat());
        let (mut running, mut most, mut calls) = (0, 0, 0);
        for line in taken(&site).lines() {
            running += if line == "+" { 1 } else { -1 };
            most = most.max(running);
            calls += i32::from(line == "+");
        }
        assert!(most <= limit, "{most} at a time with {options:?}");
        assert!(most > 1 || limit == 1, "only one at a time with {options:?}");
        assert!(calls >= 2 * 7, "{calls} calls, for two clusters with five days and today each");
        let mut found: Vec<(String, String)> = records(&site.data())
            .into_iter()
            .map(|run| (run["cluster"].clone(), run["job_id"].clone()))
            .collect();
        found.sort();
        let expected = ["c1", "c2"].map(|cluster| ["1", "2", "3", "4"].map(|id| (cluster, id)));
        let expected = expected.as_flattened().iter();
        let expected: Vec<(String, String)> =
            expected.map(|(cluster, id)| ((*cluster).to_owned(), (*id).to_owned())).collect();
        assert_eq!(found, expected, "with {options:?}");
        fs::remove_dir_all(site.data()).unwrap();
    }
}

#[test]
fn a_call_that_fails_is_made_again_after_longer_and_longer_pauses() {
    let site = Scripted::new("");
    // It fails when it has told half of it, or all.
    let script = |fails: u32| {
        format!(
            "{BEGIN}echo begin $(date +%s.%N) >>\"$notes\"\n\
             if [ $(grep -c begin \"$notes\") -gt {fails} ]; then exec $SACCT \"$@\"; fi\n\
             $SACCT \"$@\" | head -n $(grep -c begin \"$notes\")\n\
             echo 'sacct: error: slurm_persist_conn_open: busy' >&2\n\
             echo end $(date +%s.%N) >>\"$notes\"\nexit 1\n"
        )
    };
    site.answer(&json!([job(1), job(2), job(3)]));
    // The oldest day first, which has a job.
    let collect = ["collect", "--days", "3", "-n", "1", "--no-summary"];
    site.wrap(&script(3), "clusters = [\"c1\"]\n", "retries = 3\n");
    site.steward(&collect);
    let found: Vec<String> = site.runs().into_keys().collect();
    assert_eq!(found, ["1", "2", "3"], "nothing is lost, nothing is there twice");
    let text = taken(&site);
    let times: Vec<f64> =
        text.lines().take(7).map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    let pauses = [times[2] - times[1], times[4] - times[3], times[6] - times[5]];
    for (pause, least) in pauses.iter().zip([0.9, 1.9, 3.9]) {
        assert!(*pause >= least, "{pauses:?}: {text}");
    }
    assert!(pauses[2] > pauses[0] + 1.0, "{pauses:?}");
    // One that never answers is given up, and nothing counts.
    site.wrap(&script(99), "clusters = [\"c1\"]\n", "retries = 1\n");
    let before = fs::read(site.data().join("manifest.json")).unwrap();
    let output = site.run(&collect);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("slurm_persist_conn_open: busy"), "{told}");
    assert_eq!(taken(&site).matches("begin").count(), 2);
    assert_eq!(fs::read(site.data().join("manifest.json")).unwrap(), before);
}

#[test]
fn a_sacct_that_hangs_is_ended_and_the_limit_is_named() {
    let site = Scripted::new("");
    // With a child of its own, that holds the answer open.
    let script = "sleep 1000 &\necho $$ $! >>\"$notes\"\nwait\n";
    site.wrap(&format!("{BEGIN}{script}"), "clusters = [\"c1\"]\n", "timeout = \"2s\"\n");
    let begun = Instant::now();
    let output = site.run(&["collect", "--days", "0", "--no-summary"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("slurm.timeout") && told.contains("no end after 2 s"), "{told}");
    let took = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(30)).contains(&took), "{took:?}");
    for process in taken(&site).split_whitespace() {
        wait::until_true("nothing is left running", Duration::from_secs(10), || {
            let status = fs::read_to_string(format!("/proc/{process}/stat"));
            // Nobody waits for the one that has lost its parent, in a container without init.
            status.is_err() || status.is_ok_and(|status| status.contains(") Z "))
        });
    }
    assert_eq!(site.run(&["status"]).status.code(), Some(1), "nothing was collected");
}

#[test]
fn a_gap_is_filled_by_the_next_collection() {
    fills_a_gap("");
}

#[test]
fn a_gap_is_filled_long_before_its_day_is_asked_for_a_last_time() {
    fills_a_gap("[collect]\ngrace = \"30d\"\n");
}

/// Takes a day out of what was collected and collects; `more` are settings.
fn fills_a_gap(more: &str) {
    let site = Scripted::new("");
    let script =
        "echo $(echo \"$*\" | tr ' ' '\\n' | grep time=) >>\"$notes\"\nexec $SACCT \"$@\"\n";
    site.wrap(&format!("{BEGIN}{script}"), "clusters = [\"c1\"]\n", more);
    let known = |site: &Scripted| -> Vec<String> { site.runs().into_keys().collect() };
    let gaps = || site.json(&["status", "--json"])["gaps"].clone();
    // As if nobody had collected on the third day from now.
    site.answer(&jobs([1, 2, 4, 5].into_iter()));
    site.steward(&["collect", "--days", "5", "--no-summary"]);
    assert_eq!((known(&site).len(), gaps()), (4, json!([])));
    let manifest = site.data().join("manifest.json");
    let mut held: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let cluster = &mut held["clusters"]["c1"];
    let from = cluster["covered"][0][0].clone();
    let to = cluster["covered"][0][1].clone();
    let parts = |last: &Value| json!([[from, midnight(3)], [midnight(2), last]]);
    cluster["covered"] = parts(&to);
    if let Some(settled) = cluster["settled"].get(0).map(|window| window[1].clone()) {
        cluster["settled"] = parts(&settled);
    }
    fs::write(&manifest, held.to_string()).unwrap();
    assert_eq!(gaps().as_array().unwrap().len(), 1, "{}", gaps());
    site.answer(&jobs(1..=5));
    taken(&site);
    let said = site.steward(&["collect", "--days", "0", "--no-summary"]);
    assert!(said.contains(" 1 run new or changed"), "{said}");
    assert_eq!(
        (known(&site), gaps()),
        (["1", "2", "3", "4", "5"].map(str::to_owned).into(), json!([]))
    );
    // The day itself was asked for, and none that is settled.
    let text = |at: i64| {
        let time = std::process::Command::new("date")
            .args(["-u", "+%FT%T", "-d", &format!("@{at}")])
            .output()
            .unwrap();
        String::from_utf8(time.stdout).unwrap().trim().to_owned()
    };
    let asked = taken(&site);
    let of = |days: i64| {
        let window =
            format!("--starttime={} --endtime={}", text(midnight(days)), text(midnight(days - 1)));
        asked.lines().filter(|line| **line == window).count()
    };
    assert_eq!((of(5), of(4), of(3), of(2)), (0, 0, 1, 0), "{asked}");
    site.steward(&["collect", "--days", "0", "--no-summary"]);
    let asked_again = taken(&site);
    assert!(!asked_again.contains(&text(midnight(3))), "{asked_again}");
}

#[test]
fn all_since_the_last_collection_is_made_up_for() {
    let site = Scripted::new("");
    site.answer(&jobs(6..=8));
    site.steward(&["collect", "--days", "8", "--no-summary"]);
    // Nobody has collected since five days ago.
    let manifest = site.data().join("manifest.json");
    let mut held: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let cluster = &mut held["clusters"]["c1"];
    for stretch in ["covered", "settled"] {
        cluster[stretch][0][1] = json!(midnight(5));
    }
    fs::write(&manifest, held.to_string()).unwrap();
    site.answer(&jobs(1..=8));
    let said = site.steward(&["collect", "--days", "0", "--no-summary"]);
    assert!(said.contains(" 5 runs new or changed"), "{said}");
    assert_eq!(site.runs().len(), 8);
    assert_eq!(site.json(&["status", "--json"])["gaps"], json!([]));
}
