//! What people ask: `steward jobs`, `status` and `doctor`, and the service that collects, on a real
//! Slurm with real users.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use steward_tests::centre::{Centre, Text};
use steward_tests::object_storage::{BUCKET, ObjectStorage};
use steward_tests::sacct_text::Recipe;
use steward_tests::service::{Service, program, steward_as};
use steward_tests::testbed::Testbed;
use steward_tests::{directory, shared, slurm, wait};

const PATIENCE: Duration = Duration::from_secs(120);

/// A name that clears the screen of whoever lists it raw.
const HOSTILE: &str = "desk\u{1b}[2J\u{202e}x";

/// Runs the real program against the testbed's Slurm.
fn steward(args: &[&str]) -> Output {
    Command::new("timeout")
        .arg("100")
        .arg(program())
        .args(args)
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("steward: {error}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn parsed(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The jobs of an answer: number and user.
fn listed(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let jobs = answer["jobs"].as_array().unwrap();
    jobs.iter().map(|job| (job["job_raw"].to_string(), text(&job["user"]))).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn the_service_collects_real_jobs_and_tells_everyone_his_own() {
    let options = ["--job-name", HOSTILE, "--time=1"];
    let alice = slurm::submit("stw-alice", &options, "#!/bin/sh\ntrue\n");
    let bob = slurm::submit("stw-bob", &["--time=1"], "#!/bin/sh\ntrue\n");
    let dir = shared::directory();
    // Closed to users, as on a real site.
    let archive = dir.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::fs::set_permissions(&archive, std::fs::Permissions::from_mode(0o700)).unwrap();
    let settings = format!(
        "[archive]\ndirectory = {archive:?}\n[collect]\nschedule = \"*/2 * * * * *\"\ndays = 0\n"
    );
    let mut service = Service::start(dir.path(), "one", &settings);
    let config = dir.path().join("one.toml");
    let config = config.to_str().unwrap();
    for job in [&alice, &bob] {
        job.wait_ended(PATIENCE);
    }
    let everything = ["--config", config, "jobs", "--all-users", "--limit", "0", "--json"];
    let ended = |answer: &Value, id: &str| {
        let jobs = answer["jobs"].as_array().cloned().unwrap_or_default();
        let id = json!(id.parse::<u64>().unwrap());
        jobs.iter().any(|job| job["job_raw"] == id && job["state"] == "COMPLETED")
    };
    wait::until_true("both jobs are in the archive", PATIENCE, || {
        let output = steward(&everything);
        let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        ended(&answer, &alice.id) && ended(&answer, &bob.id)
    });

    // Alice may not read the archive; the service tells her about herself.
    let ask =
        |more: &[&str]| steward_as("stw-alice", &[&["--config", config, "jobs"], more].concat());
    let own = listed(&parsed(&ask(&["--json", "--limit", "0"]), 0));
    assert!(own.contains(&(alice.id.clone(), "stw-alice".to_owned())), "{own:?}");
    assert!(own.iter().all(|(_, user)| user == "stw-alice"), "{own:?}");
    let named = listed(&parsed(&ask(&["--json", "--user", "stw-alice", "--name", "desk*"]), 0));
    assert!(named.iter().any(|(id, _)| *id == alice.id), "{named:?}");
    for others in
        [&["--user", "stw-bob"][..], &["--all-users"], &["--user=stw-alice", "--user=root"]]
    {
        let refused = ask(others);
        assert_eq!(refused.status.code(), Some(1), "{others:?}: {refused:?}");
        assert!(said(&refused).contains("own jobs only"), "{}", said(&refused));
        assert!(refused.stdout.is_empty());
    }
    // What she calls her jobs does nothing to a terminal.
    for format in ["table", "csv", "markdown", "html", "json"] {
        let shown = ask(&["--name", "desk*", "--format", format]);
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(text.contains("desk"), "{format}: {text}");
        let bad = |c: char| (c.is_control() && c != '\n' && c != '\r') || c == '\u{202e}';
        assert!(!text.contains(bad), "{format}: {text:?}");
    }
    let sum = |more: &[&str]| {
        steward_as("stw-alice", &[&["--config", config, "analyze", "--json"], more].concat())
    };
    for own in [&[][..], &["--user", "stw-alice"]] {
        let report = parsed(&sum(own), 0);
        let users = report["users"].as_array().unwrap();
        assert_eq!((users.len(), &users[0]["user"]), (1, &json!("stw-alice")), "{report}");
        assert_eq!(report["totals"]["users"], 1, "{report}");
    }
    let refused = sum(&["--user", "stw-bob"]);
    assert_eq!((refused.status.code(), refused.stdout.is_empty()), (Some(1), true), "{refused:?}");
    assert_eq!(sum(&["--from", "2090-01-01"]).status.code(), Some(2));
    let closed = steward_as("stw-alice", &["--config", config, "status"]);
    assert!(said(&closed).contains("steward service status"), "{}", said(&closed));
    // The administrator asks at the socket for anybody.
    let all = parsed(&steward(&["analyze", "--json", "--socket", service.socket()]), 0);
    assert!(all["totals"]["users"].as_u64().unwrap() >= 2, "{all}");
    let root = steward(&["jobs", "--socket", service.socket(), "--user", "stw-bob", "--json"]);
    assert!(listed(&parsed(&root, 0)).iter().any(|(id, _)| *id == bob.id));

    let metrics = service.metrics();
    let cluster = [("cluster", Testbed::get().value("STEWARD_CLUSTER"))];
    assert!(metrics.value("steward_collect_runs_total", &cluster).unwrap() >= 2.0);
    let age = now() as f64
        - metrics.value("steward_collect_last_success_timestamp_seconds", &cluster).unwrap();
    assert!(age < 60.0, "{age}");
    assert!(metrics.value("steward_archive_bytes", &[("layer", "processed")]).unwrap() > 0.0);
    let covered = metrics.value("steward_archive_covered_until_timestamp_seconds", &cluster);
    assert!(now() as f64 - covered.unwrap() < 60.0);
    let failed = [("task", "collect"), ("result", "failed")];
    assert_eq!(metrics.value("steward_task_runs_total", &failed), Some(0.0));

    let status = parsed(&steward(&["--config", config, "status", "--json"]), 0);
    assert_eq!((&status["service"], &status["schema"]), (&json!("leader"), &json!(1)));
    let held = &status["clusters"][0];
    assert_eq!(held["cluster"], Testbed::get().value("STEWARD_CLUSTER"));
    assert!(held["runs"].as_u64().unwrap() >= 2 && held["raw_files"].as_u64().unwrap() >= 1);
    let today = slurm::run("date", &["-u", "+%F"]);
    assert_eq!(status["recent"][0]["day"], today.as_str(), "{status}");
    let why: Vec<&Value> =
        status["not_final"].as_array().unwrap().iter().map(|day| &day["why"]).collect();
    assert!(why.contains(&&json!("today")), "{status}");

    assert_eq!(service.signal(Signal::SIGTERM), Some(0), "also while it collects");
    let neither = ask(&[]);
    assert_eq!(neither.status.code(), Some(1));
    for part in ["Permission denied", "no service answers", "steward serve"] {
        assert!(said(&neither).contains(part), "{part}: {}", said(&neither));
    }
}

#[test]
fn a_collection_that_fails_is_a_task_that_failed_and_says_of_which_cluster() {
    let dir = shared::directory();
    let archive = dir.path().join("archive");
    let settings = format!(
        "[archive]\ndirectory = {archive:?}\n[collect]\nschedule = \"* * * * * *\"\n\
         [slurm]\nclusters = [\"far\"]\nsacct = [\"/nonexistent/sacct\"]\n"
    );
    let service = Service::start(dir.path(), "one", &settings);
    let failed = [("task", "collect"), ("result", "failed")];
    wait::until_true("the collection has failed", PATIENCE, || {
        service.metrics().value("steward_task_runs_total", &failed).unwrap() >= 1.0
    });
    let status =
        parsed(&steward(&["service", "status", "--socket", service.socket(), "--json"]), 1);
    let task = &status["tasks"][0];
    assert_eq!(task["name"], "collect");
    let why = task["error"].as_str().unwrap();
    assert!(why.contains("far") && why.contains("/nonexistent/sacct"), "{why}");
}

#[test]
fn jobs_are_found_whole_and_the_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = Recipe { jobs: 3000, days: 20, seed: 5, now: now(), comments: false };
    let text = Text::write(&dir.path().join("text"), recipe);
    let root = dir.path().join("archive");
    let centre = Centre::new(dir.path(), "one", root.to_str().unwrap(), &text, "");
    centre.done(&["collect", "--days", "30", "--no-summary"]);
    let ask = |more: &[&str]| -> Value {
        let args = [&["jobs", "--days", "40", "--json"], more].concat();
        serde_json::from_str(&centre.done(&args)).unwrap()
    };
    let all = ask(&["--all-users", "--limit", "0"]);
    assert_eq!(all["cut"], 0);
    let jobs = all["jobs"].as_array().unwrap();
    let status: Value = serde_json::from_str(&centre.done(&["status", "--json"])).unwrap();
    let held = &status["clusters"][0];
    let count = held["runs"].as_u64().unwrap() + held["open"].as_u64().unwrap();
    assert_eq!(jobs.len() as u64, count, "every run of the archive");
    assert!(jobs.len() >= 3000);
    let submits: Vec<&str> = jobs.iter().map(|job| job["submit"].as_str().unwrap()).collect();
    assert!(submits.is_sorted_by(|one, next| one >= next), "newest first");

    let few = ask(&["--all-users", "--limit", "25"]);
    assert_eq!(few["cut"], 1);
    assert_eq!(few["jobs"].as_array().unwrap(), &jobs[..25]);

    let user = jobs[7]["user"].as_str().unwrap();
    let (state, partition) = ("FAILED", jobs[7]["partition"].as_str().unwrap());
    for (options, keep) in [
        (
            vec!["--user", user],
            Box::new(|job: &Value| job["user"] == user) as Box<dyn Fn(&Value) -> bool>,
        ),
        (vec!["--all-users", "--state", "f"], Box::new(|job: &Value| job["state"] == state)),
        (
            vec!["--user", user, "--partition", partition, "--state", "CD"],
            Box::new(|job: &Value| {
                job["user"] == user && job["partition"] == partition && job["state"] == "COMPLETED"
            }),
        ),
        (vec!["--user", "nobody-of-that-name"], Box::new(|_: &Value| false)),
        (vec!["--all-users", "--cluster", "c2"], Box::new(|_: &Value| false)),
    ] {
        let found = ask(&[&options[..], &["--limit", "0"]].concat());
        let expected: Vec<&Value> = jobs.iter().filter(|job| keep(job)).collect();
        let found: Vec<&Value> = found["jobs"].as_array().unwrap().iter().collect();
        assert_eq!(found, expected, "{options:?}");
    }
    // A day in the middle has the runs that waited or ran on it, and no others.
    let day = &submits[submits.len() / 2][..10];
    let args = ["jobs", "--all-users", "--limit", "0", "--json", "--from", day, "--to", day];
    let found: Value = serde_json::from_str(&centre.done(&args)).unwrap();
    let (begin, end) = (format!("{day}T00:00:00"), format!("{day}T23:59:59"));
    let touches = |job: &&Value| {
        let over = job["end"].as_str().is_some_and(|at| &at[..19] < begin.as_str());
        &job["submit"].as_str().unwrap()[..19] <= end.as_str() && !over
    };
    let expected: Vec<&Value> = jobs.iter().filter(touches).collect();
    let found: Vec<&Value> = found["jobs"].as_array().unwrap().iter().collect();
    assert!(!expected.is_empty() && expected.len() < jobs.len());
    assert_eq!(found, expected);
    // A word that is no state is the asker's mistake.
    assert_eq!(centre.run(&["jobs", "--state", "SLEEPY"]).status.code(), Some(2));
}

#[test]
fn an_archive_in_a_bucket_is_told_about_too() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let recipe = Recipe { jobs: 200, days: 2, seed: 6, now: now(), comments: false };
    let text = Text::write(&dir.path().join("text"), recipe);
    let place = format!("s3://{BUCKET}/desk");
    let centre = Centre::new(dir.path(), "one", &place, &text, &storage.settings(dir.path()));
    assert_eq!(centre.run(&["status"]).status.code(), Some(1), "nothing there yet");
    centre.done(&["collect", "--days", "3", "--no-summary"]);
    let told =
        |args: &[&str]| -> Value { serde_json::from_slice(&centre.run(args).stdout).unwrap() };
    let held = told(&["status", "--json"])["clusters"][0].clone();
    let jobs = told(&["jobs", "--all-users", "--limit", "0", "--json"]);
    let count = held["runs"].as_u64().unwrap() + held["open"].as_u64().unwrap();
    assert_eq!(jobs["jobs"].as_array().unwrap().len() as u64, count);
    let findings = told(&["doctor", "--json"]);
    assert_eq!(of(&findings, "archive")[0].0, "good", "{findings}");
}

/// A configuration file with these settings and the rest in `dir`.
fn settings(dir: &Path, more: &str) -> String {
    let path = dir.join("steward.toml");
    let (archive, state, socket) = (dir.join("archive"), dir.join("state"), dir.join("s.sock"));
    let text = format!(
        "[archive]\ndirectory = {archive:?}\n[serve]\nstate = {state:?}\nsocket = {socket:?}\n{more}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The marks and advice of a subject.
fn of<'a>(findings: &'a Value, subject: &str) -> Vec<(&'a str, &'a str)> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let all = findings.as_array().unwrap().iter().filter(|one| one["subject"] == subject);
    let found: Vec<_> = all.map(|one| (text(&one["mark"]), text(&one["advice"]))).collect();
    assert!(!found.is_empty(), "{subject} was not looked at: {findings}");
    found
}

#[test]
fn the_doctor_finds_a_healthy_slurm_well() {
    let dir = shared::directory();
    let more = format!(
        "[prometheus]\nurl = {:?}\n[pushgateway]\nurl = {:?}\n",
        Testbed::get().prometheus(),
        Testbed::get().pushgateway()
    );
    let config = settings(dir.path(), &more);
    let collected = steward(&["--config", &config, "collect", "--days", "0", "--no-summary"]);
    assert_eq!(collected.status.code(), Some(0), "{}", said(&collected));
    let findings = parsed(&steward(&["--config", &config, "doctor", "--json"]), 0);
    for subject in
        ["settings", "sacct", "rights", "accounting", "purge", "clock", "archive", "pushgateway"]
    {
        let bad = of(&findings, subject).iter().any(|(mark, _)| *mark == "trouble");
        assert!(!bad, "{subject}: {findings}");
    }
    for subject in ["accounting", "purge", "clock"] {
        assert!(of(&findings, subject).iter().all(|(mark, _)| *mark == "good"), "{findings}");
    }
    // The old name, and a file that is gone.
    let days = dir
        .path()
        .join("archive/processed")
        .join(format!("cluster={}/open.parquet", Testbed::get().value("STEWARD_CLUSTER")));
    std::fs::remove_file(&days).unwrap();
    let hurt = steward(&["--config", &config, "test"]);
    let text = String::from_utf8(hurt.stdout.clone()).unwrap();
    assert_eq!(hurt.status.code(), Some(1), "{text}");
    assert!(text.contains("✗ archive") || text.contains("✗  "), "{text}");
    assert!(text.contains("steward archive rebuild"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colour on a pipe");
}

#[test]
fn the_doctor_says_what_to_do_without_sacct_and_goes_on() {
    let dir = shared::directory();
    let config = settings(dir.path(), "[slurm]\nsacct = [\"/nonexistent/sacct\"]\n");
    let findings = parsed(&steward(&["--config", &config, "doctor", "--json"]), 1);
    let (mark, advice) = of(&findings, "sacct")[0];
    assert_eq!(mark, "trouble");
    assert!(advice.contains("slurm.sacct"), "{advice}");
    for subject in ["accounting", "clock", "archive", "service", "pushgateway", "agents"] {
        of(&findings, subject);
    }
    // Settings that cannot be used are a finding too; other commands end.
    let config = settings(dir.path(), "[slurm]\nparallel = 0\n");
    let findings = parsed(&steward(&["--config", &config, "doctor", "--json"]), 1);
    assert_eq!(of(&findings, "settings")[0].0, "trouble");
    assert_eq!(steward(&["--config", &config, "status"]).status.code(), Some(2));
}

#[test]
fn the_doctor_ends_within_a_minute_when_everything_hangs() {
    let dir = shared::directory();
    let script = dir.path().join("hangs");
    std::fs::write(&script, "#!/bin/sh\nwhile :; do sleep 1; done\n").unwrap();
    // They take what comes and never answer.
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", web.local_addr().unwrap());
    let config = settings(
        dir.path(),
        &format!(
            "[slurm]\nsacct = [\"sh\", {script:?}]\nsacctmgr = [\"sh\", {script:?}]\nscontrol = [\"sh\", {script:?}]\n\
             [prometheus]\nurl = {url:?}\n[pushgateway]\nurl = {url:?}\n"
        ),
    );
    let _socket = UnixListener::bind(dir.path().join("s.sock")).unwrap();
    let begun = Instant::now();
    let findings = parsed(&steward(&["--config", &config, "doctor", "--json"]), 1);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    for subject in ["sacct", "rights", "accounting", "service", "prometheus", "pushgateway"] {
        let (mark, advice) = of(&findings, subject)[0];
        assert_eq!(mark, "trouble", "{subject}: {findings}");
        assert!(!advice.is_empty(), "{subject}");
    }
    let left = Command::new("pgrep").arg("-f").arg(&script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "nothing is left running");
}

#[test]
fn status_warns_before_slurmdbd_deletes_what_was_not_collected() {
    let dir = shared::directory();
    let recorded = directory().join("fixtures/slurm-settings/sacctmgr-show-configuration.txt");
    let script =
        format!("sed 's/^PurgeStepAfter .*/PurgeStepAfter = 30 days/' {}", recorded.display());
    let config =
        settings(dir.path(), &format!("[slurm]\nsacctmgr = [\"sh\", \"-c\", {script:?}]\n"));
    let none = steward(&["--config", &config, "status"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(said(&none).contains("steward collect"), "{}", said(&none));
    let collected = steward(&["--config", &config, "collect", "--days", "0", "--no-summary"]);
    assert_eq!(collected.status.code(), Some(0), "{}", said(&collected));
    let ask = || parsed(&steward(&["--config", &config, "status", "--json"]), 0);
    assert_eq!(ask()["warnings"], json!([]));
    // As it would stand if nobody had collected for 40 days, after a gap.
    let path = dir.path().join("archive/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let (day, now) = (86_400, now());
    for cluster in manifest["clusters"].as_object_mut().unwrap().values_mut() {
        cluster["covered"] =
            json!([[now - 50 * day, now - 48 * day], [now - 47 * day, now - 40 * day]]);
        cluster["settled"] = json!([]);
        cluster["last"]["at"] = json!(now - 40 * day);
    }
    std::fs::write(&path, manifest.to_string()).unwrap();
    let status = ask();
    let warnings = status["warnings"].to_string();
    for part in ["PurgeStepAfter", "lost already", "1 gap", "40d ago"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert_eq!(status["gaps"].as_array().unwrap().len(), 1);
    let findings = parsed(&steward(&["--config", &config, "doctor", "--json"]), 1);
    assert_eq!(of(&findings, "purge")[0].0, "trouble");
}
