//! The real program tells a real Alertmanager, and a receiver of webhooks in another language. Slurm is
//! text: no testbed needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use steward_aggregator::config::Config;
use steward_aggregator::outlet;
use steward_aggregator::store::Store;
use steward_common::time::Timestamp;
use steward_tests::alertmanager::Alertmanager;
use steward_tests::gateway::own_port;
use steward_tests::postgres::Postgres;
use steward_tests::receiver::Receiver;
use steward_tests::sacct_text::Recipe;
use steward_tests::service::{program, steward};
use steward_tests::{http, shared, wait};

const RULE: &str = "zero-util-gpu-hours";

/// A site whose Slurm is text.
struct Site {
    dir: tempfile::TempDir,
    more: String,
}

impl Site {
    /// One with some days of jobs in its archive.
    fn new(more: &str) -> Site {
        let dir = shared::directory();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let recipe = Recipe { jobs: 2_000, days: 5, seed: 4, now, comments: true };
        recipe.write(&dir.path().join("text")).unwrap();
        // What has not ended is not in the queue that was recorded.
        for name in ["open.txt", "open.index"] {
            let _if_there = fs::remove_file(dir.path().join("text").join(name));
        }
        let site = Site { dir, more: more.to_owned() };
        site.set(0.001, true);
        let done = site.run(&["collect", "--days", "8", "--no-summary"]);
        assert!(done.status.success(), "{done:?}");
        site
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("steward.toml")
    }

    /// From how many idle GPU-hours on somebody is found, and whether slurmctld answers.
    fn set(&self, hours: f64, answers: bool) {
        let fixtures = steward_tests::directory().join("fixtures/snapshot-slurm-22.05");
        let script = |name: &str, body: &str| {
            let path = self.dir.path().join(name);
            fs::write(&path, format!("cd {}\n{body}\n", fixtures.display())).unwrap();
            format!("{name} = [\"sh\", {:?}]\n", path.display().to_string())
        };
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let replay = program().with_file_name("steward-sacct-replay");
        let mut text = format!(
            "time_zone = \"UTC\"\n{}\n[archive]\ndirectory = {:?}\n[serve]\nstate = {:?}\n\
             [rules.{RULE}]\ngpu_hours_user = {hours}\ngpu_hours_admin = {hours}\n\
             [slurm]\nclusters = [\"c1\"]\nretries = 0\nsacct = [{:?}, {:?}]\n",
            self.more,
            at("archive"),
            at("state"),
            replay.display().to_string(),
            at("text"),
        );
        let squeue = "case \"$*\" in *--json*) cat squeue-ended.json;; *) cat squeue.txt;; esac";
        text += &script("squeue", if answers { squeue } else { "echo away >&2; exit 1" });
        text += &script("sinfo", "cat sinfo.json");
        text += &script("sshare", "cat sshare.txt");
        text += &script("sdiag", "cat sdiag.txt");
        text += &script("sacctmgr", "echo '|physics|64|256000|10|100'");
        text += &script(
            "scontrol",
            "case \"$*\" in\n\
             *--json*) echo \"scontrol: unrecognized option '--json'\" >&2; exit 1;;\n\
             *config) echo 'ClusterName = c1';;\n\
             *partitions) cat scontrol-show-partitions.txt;;\n\
             *reservations) cat scontrol-show-reservations.txt;;\n\
             *licenses) cat scontrol-show-licenses.txt;;\nesac",
        );
        fs::write(self.config(), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let config = self.config().display().to_string();
        steward(&[&["--config", &config], args].concat())
    }

    /// Evaluates and tells: the exit code, and the users that were found.
    fn publish(&self) -> (Option<i32>, BTreeSet<String>, String) {
        let done = self.run(&["evaluate", "--no-collect", "--rule", RULE, "--publish", "--json"]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let answer: Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let findings = answer["clusters"][0]["rules"][0]["findings"].as_array().unwrap().clone();
        let user = |finding: &Value| finding["user"].as_str().unwrap().to_owned();
        (done.status.code(), findings.iter().map(user).collect(), said)
    }
}

/// The user and the begin of each alert of the rule.
fn begins(alerts: &[Value]) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    alerts.iter().map(|one| (text(&one["labels"]["user"]), text(&one["startsAt"]))).collect()
}

#[test]
fn a_real_alertmanager_shows_what_holds_and_no_more_when_it_is_gone() {
    let alertmanager = Alertmanager::start();
    let site = Site::new(&format!(
        "[outlets.alertmanager]\nurl = {:?}\nlabels = {{ site = \"north\" }}",
        alertmanager.url()
    ));
    let (code, found, said) = site.publish();
    assert_eq!(code, Some(0), "{said}");
    assert!(found.len() > 3, "{found:?}");
    let alerts = alertmanager.alerts();
    let first = begins(&alerts);
    assert_eq!(first.keys().cloned().collect::<BTreeSet<_>>(), found);
    for alert in &alerts {
        let labels = &alert["labels"];
        for (name, value) in
            [("alertname", RULE), ("rule", RULE), ("cluster", "c1"), ("site", "north")]
        {
            assert_eq!(labels[name], value, "{alert}");
        }
        assert_eq!(alert["status"]["state"], "active");
        assert!(alert["annotations"]["billing_hours"].as_str().is_some(), "{alert}");
        assert!(alert["endsAt"].as_str() > alert["startsAt"].as_str(), "{alert}");
    }
    // Another run of the program renews the same alerts.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(site.publish().0, Some(0));
    assert_eq!(begins(&alertmanager.alerts()), first);
    // Nothing is found, but not everything was asked.
    site.set(1e9, false);
    let (code, found, _) = site.publish();
    assert_eq!((code, found.len()), (Some(3), 0));
    assert_eq!(begins(&alertmanager.alerts()), first);
    site.set(1e9, true);
    let (code, found, said) = site.publish();
    assert_eq!((code, found.len()), (Some(0), 0), "{said}");
    wait::until_true("all alerts are resolved", Duration::from_secs(30), || {
        alertmanager.alerts().is_empty()
    });
    // What is found again begins anew.
    site.set(0.001, true);
    site.publish();
    let again = begins(&alertmanager.alerts());
    assert!(
        again.keys().eq(first.keys())
            && again.values().all(|begin| !first.values().any(|old| old == begin))
    );
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn webhook(dir: &Path, port: u16, postgres: &Postgres) -> (PathBuf, String) {
    let secret = dir.join("secret");
    fs::write(&secret, "correct horse\n").unwrap();
    let settings = format!(
        "[outlets.webhook.desk]\nurl = \"http://127.0.0.1:{port}/hook\"\nsecret_file = {secret:?}\n\
         [store]\nurl = {:?}\npassword_file = {:?}",
        postgres.url(),
        postgres.password_file()
    );
    (secret, settings)
}

#[tokio::test]
async fn a_receiver_gets_each_event_signed_and_what_it_missed_under_the_same_id() {
    let work = tokio::task::spawn_blocking(|| {
        let (dir, port, postgres) = (shared::directory(), own_port(), Postgres::start());
        let (secret, settings) = webhook(dir.path(), port, &postgres);
        let site = Site::new(&settings);
        let (code, found, said) = site.publish();
        assert_eq!(code, Some(3), "nobody listens: {said}");
        assert!(said.contains("outlets.webhook.desk: ") && said.contains("it is tried again"));
        assert!(!said.contains("correct horse"));
        (dir, port, postgres, secret, site, found)
    });
    let (dir, port, postgres, secret, site, found) = work.await.unwrap();
    let config = Config::load(Some(&site.config())).unwrap();
    let store = Store::at(config.store()).await.unwrap();
    let later = Timestamp::new(now() + 7200);
    let mut waiting: Vec<String> = store
        .due_events("desk", later, 1000)
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(waiting.len(), found.len());
    let receiver = {
        let (dir, secret) = (dir.path().to_owned(), secret.clone());
        tokio::task::spawn_blocking(move || {
            let receiver = Receiver::start(&dir, port, &secret);
            let url = format!("http://127.0.0.1:{port}/hook");
            let forged = http::client()
                .post(url)
                .header("X-Steward-Timestamp", now())
                .header("X-Steward-Signature", outlet::signature(b"wrong", now(), "{}"))
                .body("{}")
                .send()
                .unwrap();
            assert_eq!(forged.status(), 401);
            receiver
        })
        .await
        .unwrap()
    };
    let delivered = outlet::deliver(&config.outlets, &store, later).await.unwrap();
    assert_eq!((delivered.delivered, delivered.troubles), (waiting.len(), vec![]));
    let taken = receiver.taken();
    let mut ids: Vec<String> = taken.iter().map(|(id, _)| id.clone()).collect();
    ids.sort();
    waiting.sort();
    assert_eq!(ids, waiting);
    let users: BTreeSet<String> = taken
        .iter()
        .map(|(id, body)| {
            assert_eq!((&body["id"], &body["kind"]), (&id.as_str().into(), &"finding.new".into()));
            body["what"]["user"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(users, found);
    store.close().await;
    let work = tokio::task::spawn_blocking(move || {
        // Nothing is new; then all is gone.
        assert_eq!(site.publish().0, Some(0));
        assert_eq!(receiver.taken().len(), found.len());
        site.set(1e9, true);
        let (code, _, said) = site.publish();
        assert_eq!(code, Some(0), "{said}");
        let taken = receiver.taken();
        let gone = taken.iter().filter(|(_, body)| body["kind"] == "finding.gone").count();
        assert_eq!((taken.len(), gone), (2 * found.len(), found.len()));
        let other = site.dir.path().join("other");
        fs::write(&other, "battery staple").unwrap();
        let settings = site.more.replace(&format!("{secret:?}"), &format!("{other:?}"));
        let site = Site { more: settings, ..site };
        site.set(0.001, true);
        let (code, _, said) = site.publish();
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("is given up: the receiver answered 401"), "{said}");
        assert_eq!(receiver.taken().len(), 2 * found.len());
        drop((dir, postgres));
    });
    work.await.unwrap();
}
