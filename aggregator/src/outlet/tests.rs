mod receiver;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steward_common::id::{ClusterName, JobId};
use steward_common::rule::{
    Audience, Facts, Figures, Finding, Gathering, Hardware, Hit, Instance, Job, JobKey, Missing,
    Part, Subject, Usage, find,
};
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::*;
use crate::config::{Alertmanager, Webhook};
use crate::evaluate::{Gathered, Judged, Judgement, Trouble};
use crate::store::alerts::Alert;
use receiver::{Receiver, Request};

/// The name of a job that would break out of anything.
const HOSTILE: &str = "<script>alert(1)</script>|\"x\"\r\nBcc: a@b\u{0}\u{202e}";

/// A job of each user, which held a billing weight of 2 for ten hours.
fn facts(users: &[&str]) -> Facts {
    let window = Window::new(Timestamp::new(0), Timestamp::new(1_000_000)).unwrap();
    let cluster = ClusterName::new("c1").unwrap();
    let mut all = Gathering::new(cluster, window, window.to(), Hardware::default());
    for (user, number) in users.iter().zip(1..) {
        let mut text = |text: &str| all.names().intern(text);
        let (user, name) = (text(user), text(HOSTILE));
        let (account, partition, qos, nodes) = (text("x"), text("gpu"), text("q"), text("n1"));
        all.push(Job {
            key: JobKey { id: JobId::new(number).unwrap(), submit: Timestamp::new(5) },
            array: None,
            user,
            account,
            partition,
            qos,
            name,
            nodes,
            licences: None,
            state: JobState::Completed,
            start: Some(Timestamp::new(10)),
            end: Some(Timestamp::new(36_010)),
            elapsed: Some(36_000),
            time_limit: None,
            cpus: Some(2),
            node_count: Some(1),
            gpus: Some(1),
            memory: None,
            billing: Some(2),
            usage: Usage::default(),
        })
        .unwrap();
    }
    all.finish()
}

/// What is said of a user.
#[derive(Clone, Copy, Debug)]
enum Said {
    Found(Audience),
    OfName,
    OfJob,
    Unknown,
    Fine,
}

const RULE: &str = "low-gpu-efficiency";

fn instances() -> Vec<Instance> {
    vec![Instance::of(find(RULE).unwrap())]
}

fn judged(said: &[(&str, Said)]) -> Vec<Judged> {
    let users: Vec<&str> = said.iter().map(|(user, _)| *user).collect();
    let facts = facts(&users);
    let mut judgement = Judgement::default();
    for (user, said) in said {
        let user = facts.names.find(user).unwrap();
        let job = facts.jobs().iter().find(|job| job.user == user).unwrap();
        let finding = |audience| {
            let hit = Hit::new(job, Some(0.5), Figures::default());
            Finding::new(audience, Figures::default().with("gpu_hours_idle", 7.5), vec![hit])
        };
        let whole = Subject::User { user, part: Part::All };
        match said {
            Said::Found(audience) => judgement.findings.push((whole, finding(*audience))),
            Said::OfName => {
                let part = Part::JobName(job.name);
                judgement.findings.push((Subject::User { user, part }, finding(Audience::User)));
            }
            Said::OfJob => {
                let subject = Subject::Job { user, job: job.key };
                judgement.findings.push((subject, finding(Audience::User)));
            }
            Said::Unknown => {
                judgement.unknown_count += 1;
                judgement.unknown.push((whole, Missing::Unmeasured));
            }
            Said::Fine => judgement.fine += 1,
        }
    }
    let gathered = Gathered { facts, snapshot: None, silent: None };
    vec![Judged { gathered, judgements: vec![Some(judgement)] }]
}

fn reading(said: &[(&str, Said)]) -> Reading {
    Reading::of(&judged(said), &instances(), &[])
}

const ANN: (&str, Said) = ("ann", Said::Found(Audience::User));

struct Stage {
    config: Config,
    store: Store,
    dir: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("a.db")).await.unwrap();
        std::fs::write(dir.path().join("key"), "geheim\n").unwrap();
        let config = Config { time_zone: Some("UTC".parse().unwrap()), ..Config::default() };
        Stage { config, store, dir }
    }

    async fn with_alertmanager(receiver: &Receiver) -> Stage {
        let mut stage = Stage::new().await;
        stage.config.outlets.alertmanager = Some(Alertmanager {
            url: receiver.url.clone(),
            timeout: "5s".parse().unwrap(),
            labels: BTreeMap::new(),
            user: Some("steward".to_owned()),
            password_file: Some(stage.dir.path().join("key")),
            token_file: None,
        });
        stage
    }

    async fn with_webhook(receiver: &Receiver, tries: u32) -> Stage {
        let mut stage = Stage::new().await;
        let secret_file = stage.dir.path().join("key");
        let timeout = "5s".parse().unwrap();
        let webhook = Webhook { url: receiver.url.clone(), secret_file, timeout, tries };
        stage.config.outlets.webhook.insert("desk".to_owned(), webhook);
        stage
    }

    async fn publish(&self, reading: &Reading, now: i64) -> Published {
        publish(&self.config, &self.store, reading, Timestamp::new(now)).await.unwrap()
    }

    async fn holding(&self) -> Vec<Alert> {
        let alerts = self.store.alerts().await.unwrap();
        alerts.into_iter().filter(|alert| alert.gone_at.is_none()).collect()
    }
}

/// Users with the begin and the end of their alert in what an Alertmanager was told last.
fn told(requests: &[Request]) -> Vec<(String, String, String)> {
    let Some((first, _, body)) = requests.last() else { return Vec::new() };
    assert!(first.starts_with("POST /hook/api/v2/alerts "), "{first}");
    let alerts: Vec<Value> = serde_json::from_str(body).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    alerts
        .iter()
        .map(|one| (text(&one["labels"]["user"]), text(&one["startsAt"]), text(&one["endsAt"])))
        .collect()
}

fn row(user: &str, begin: &str, end: &str) -> (String, String, String) {
    let day = |time: &str| format!("2026-11-16T{time}Z");
    (user.to_owned(), day(begin), day(end))
}

/// 2026-11-16T00:00:00Z
const DAY: i64 = 1_794_787_200;

#[tokio::test]
async fn an_alert_keeps_its_begin_is_renewed_and_ends_once() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_alertmanager(&receiver).await;
    // Evaluations are at 41 past; two ahead and five minutes.
    let first = stage.publish(&reading(&[ANN, ("bob", Said::Fine)]), DAY).await;
    assert_eq!((first.raised, first.ended), (1, 0));
    let requests = receiver.taken();
    assert_eq!(told(&requests), [row("ann", "00:00:00", "01:46:00")]);
    // printf steward:geheim | base64
    assert_eq!(requests[0].1["authorization"], "Basic c3Rld2FyZDpnZWhlaW0=");
    let second = stage.publish(&reading(&[ANN]), DAY + 3600).await;
    assert_eq!((second.raised, second.ended), (0, 0));
    assert_eq!(told(&receiver.taken()), [row("ann", "00:00:00", "02:46:00")]);
    let third = stage.publish(&reading(&[("ann", Said::Fine)]), DAY + 7200).await;
    assert_eq!((third.raised, third.ended), (0, 1));
    assert_eq!(told(&receiver.taken()), [row("ann", "00:00:00", "02:00:00")]);
    stage.publish(&reading(&[("ann", Said::Fine)]), DAY + 10_800).await;
    assert_eq!(receiver.taken(), []);
    // What comes again begins anew.
    stage.publish(&reading(&[ANN]), DAY + 14_400).await;
    assert_eq!(told(&receiver.taken()), [row("ann", "04:00:00", "05:46:00")]);
}

#[tokio::test]
async fn an_end_that_nobody_heard_of_is_told_later_even_after_a_restart() {
    let receiver = Receiver::start().await;
    let mut stage = Stage::with_alertmanager(&receiver).await;
    stage.publish(&reading(&[ANN]), DAY).await;
    receiver.answer(503);
    let failed = stage.publish(&reading(&[("ann", Said::Fine)]), DAY + 60).await;
    assert_eq!(failed.ended, 1);
    assert!(failed.troubles[0].contains("503"), "{:?}", failed.troubles);
    stage.store.close().await;
    stage.store = Store::open(&stage.dir.path().join("a.db")).await.unwrap();
    receiver.answer(200);
    receiver.taken();
    stage.publish(&reading(&[("ann", Said::Fine)]), DAY + 120).await;
    assert_eq!(told(&receiver.taken()), [row("ann", "00:00:00", "00:01:00")]);
}

#[tokio::test]
async fn what_is_not_known_ends_nothing_and_is_renewed() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_alertmanager(&receiver).await;
    stage.publish(&reading(&[ANN]), DAY).await;
    let trouble = |cluster: Option<&str>, what: &str| {
        let cluster = cluster.map(|name| ClusterName::new(name).unwrap());
        vec![Trouble { cluster, what: what.to_owned(), why: "no".to_owned() }]
    };
    let fine = || judged(&[("ann", Said::Fine)]);
    for (what, said) in [
        ("too little is known", reading(&[("ann", Said::Unknown)])),
        ("the cluster was not asked", Reading::of(&[], &instances(), &[])),
        (
            "slurmctld did not answer",
            Reading::of(&fine(), &instances(), &trouble(Some("c1"), "slurmctld")),
        ),
        (
            "Prometheus did not answer",
            Reading::of(&fine(), &instances(), &trouble(None, "Prometheus")),
        ),
        (
            "another rule was looked at",
            Reading::of(&fine(), &[Instance::of(find("low-cpu").unwrap())], &[]),
        ),
    ] {
        receiver.taken();
        let published = stage.publish(&said, DAY + 60).await;
        assert_eq!(published.ended, 0, "{what}");
        assert_eq!(told(&receiver.taken()), [row("ann", "00:00:00", "01:46:00")], "{what}");
    }
    // Of more than are named somebody may be unknown.
    let mut many = fine();
    many[0].judgements[0].as_mut().unwrap().unknown_count = 1001;
    assert_eq!(stage.publish(&Reading::of(&many, &instances(), &[]), DAY + 60).await.ended, 0);
    // What is wrong elsewhere, or with a node's agent, which verdicts know of, is no hindrance.
    let mut elsewhere = trouble(Some("c2"), "slurmctld");
    elsewhere.extend(trouble(Some("c1"), "node n1"));
    let published = stage.publish(&Reading::of(&fine(), &instances(), &elsewhere), DAY + 60).await;
    assert_eq!(published.ended, 1);
}

#[tokio::test]
async fn a_rule_that_is_switched_off_and_a_cluster_that_is_gone_for_a_month_end() {
    let receiver = Receiver::start().await;
    let mut stage = Stage::with_alertmanager(&receiver).await;
    stage.publish(&reading(&[ANN]), DAY).await;
    let nothing = Reading::of(&[], &[], &[]);
    assert_eq!(stage.publish(&nothing, DAY + 30 * 86_400).await.ended, 0);
    assert_eq!(stage.publish(&nothing, DAY + 30 * 86_400 + 1).await.ended, 1);
    stage.publish(&reading(&[ANN]), DAY).await;
    let off = format!("[rules.{RULE}]\nenabled = false\n");
    stage.config.rules = Config::parse(Path::new("a.toml"), &off).unwrap().rules;
    assert_eq!(stage.publish(&nothing, DAY + 60).await.ended, 1);
}

#[tokio::test]
async fn advice_is_told_nobody_and_a_hostile_name_stays_in_its_string() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_alertmanager(&receiver).await;
    let said = [
        ("ann", Said::Found(Audience::Advice)),
        ("bob", Said::Found(Audience::Administrators)),
        ("eve", Said::OfName),
        ("joe", Said::OfJob),
    ];
    assert_eq!(stage.publish(&reading(&said), DAY).await.raised, 3);
    let requests = receiver.taken();
    let alerts: Vec<Value> = serde_json::from_str(&requests[0].2).unwrap();
    let labels: Vec<&Value> = alerts.iter().map(|one| &one["labels"]).collect();
    let of = |user: &str, severity: &str| json!({ "alertname": RULE, "rule": RULE, "cluster": "c1", "user": user, "severity": severity });
    let with = |mut labels: Value, name: &str, value: &str| {
        labels[name] = json!(value);
        labels
    };
    let expected = [
        of("bob", "info"),
        with(of("eve", "warning"), "job_name", HOSTILE),
        with(of("joe", "warning"), "job", "1"),
    ];
    for one in &expected {
        let one = if one["user"] == "joe" { with(one.clone(), "job", "4") } else { one.clone() };
        assert!(labels.contains(&&one), "{one} is not in {labels:?}");
    }
    // Half of 2 an hour for ten hours.
    assert_eq!(alerts[0]["annotations"]["billing_hours"], "10");
    let text = alerts[0]["annotations"]["description"].as_str().unwrap();
    assert!(text.contains("GPU hours idle: 7.5; Billing h wasted: 10.0"), "{text}");
    // Each is the same in the next run.
    assert_eq!(stage.publish(&reading(&said), DAY + 60).await, Published::default());
    assert_eq!(stage.holding().await.len(), 3);
}

#[tokio::test]
async fn a_webhook_gets_each_event_once_with_its_signature() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 100).await;
    let published = stage.publish(&reading(&[ANN]), DAY).await;
    assert_eq!((published.raised, published.delivered), (1, 1));
    let [(first, headers, body)] = receiver.taken().try_into().unwrap();
    assert!(first.starts_with("POST /hook "), "{first}");
    let event: Value = serde_json::from_str(&body).unwrap();
    let stamp: i64 = headers["x-steward-timestamp"].parse().unwrap();
    assert_eq!(headers["x-steward-signature"], signature(b"geheim", stamp, &body));
    assert_eq!(event["id"], headers["x-steward-event"].as_str());
    assert_eq!(event["schema"], 1);
    assert_eq!(
        (&event["kind"], &event["time"]),
        (&json!("finding.new"), &json!("2026-11-16T00:00:00Z"))
    );
    let what = &event["what"];
    assert_eq!((&what["user"], &what["instance"]), (&json!("ann"), &json!(RULE)));
    assert_eq!(
        (&what["billing_hours_wasted"], &what["gpu_hours_idle"]),
        (&json!(10.0), &json!(7.5))
    );
    assert_eq!(stage.publish(&reading(&[ANN]), DAY + 60).await.delivered, 0);
    assert_eq!(stage.publish(&reading(&[("ann", Said::Fine)]), DAY + 120).await.delivered, 1);
    let [(_, _, gone)] = receiver.taken().try_into().unwrap();
    let gone: Value = serde_json::from_str(&gone).unwrap();
    assert_eq!((&gone["kind"], &gone["what"]["alert"]), (&json!("finding.gone"), &what["alert"]));
    assert_eq!(gone["what"]["until"], "2026-11-16T00:02:00Z");
    assert_ne!(gone["id"], event["id"]);
}

#[tokio::test]
async fn what_a_receiver_did_not_take_comes_later_under_the_same_id() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 100).await;
    let round = async |now: i64| {
        deliver(&stage.config.outlets, &stage.store, Timestamp::new(now)).await.unwrap()
    };
    receiver.answer(500);
    let published = stage.publish(&reading(&[ANN]), DAY).await;
    assert_eq!(published.delivered, 0);
    assert!(published.troubles[0].contains("500"), "{:?}", published.troubles);
    assert!(!published.troubles[0].contains("geheim"));
    let [(_, first, body)] = receiver.taken().try_into().unwrap();
    // Not before its time, and then twice as long.
    assert_eq!(round(DAY + 59).await, Published::default());
    assert_eq!(round(DAY + 60).await.delivered, 0);
    assert_eq!(round(DAY + 179).await, Published::default());
    receiver.taken();
    receiver.answer(204);
    assert_eq!(round(DAY + 180).await.delivered, 1);
    let [(_, again, same)] = receiver.taken().try_into().unwrap();
    assert_eq!((&again["x-steward-event"], &same), (&first["x-steward-event"], &body));
    assert_eq!(stage.store.waiting_events("desk").await.unwrap(), 0);
}

#[tokio::test]
async fn who_does_not_answer_is_asked_once_a_round_and_a_refusal_is_final() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 100).await;
    let users = [ANN, ("bob", Said::Found(Audience::User)), ("eve", Said::OfName)];
    receiver.answer(0);
    let published = stage.publish(&reading(&users), DAY).await;
    assert_eq!((published.raised, published.delivered, published.troubles.len()), (3, 0, 1));
    receiver.answer(410);
    let published = stage.publish(&reading(&users), DAY + 30).await;
    let given_up = published.troubles.iter().filter(|why| why.contains("given up")).count();
    assert_eq!(given_up, 2, "{:?}", published.troubles);
    assert_eq!(stage.store.waiting_events("desk").await.unwrap(), 1);
    receiver.taken();
    receiver.answer(200);
    assert_eq!(stage.publish(&reading(&users), DAY + 60).await.delivered, 1);
}

#[tokio::test]
async fn tries_end_and_a_secret_that_is_not_there_uses_none_up() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 2).await;
    let key = stage.dir.path().join("key");
    std::fs::write(&key, "\n").unwrap();
    let published = stage.publish(&reading(&[ANN]), DAY).await;
    assert!(published.troubles[0].contains("is empty"), "{:?}", published.troubles);
    std::fs::write(&key, "geheim").unwrap();
    receiver.answer(500);
    let round = async |now: i64| {
        deliver(&stage.config.outlets, &stage.store, Timestamp::new(now)).await.unwrap()
    };
    assert!(round(DAY).await.troubles[0].contains("tried again"));
    assert!(round(DAY + 60).await.troubles[0].contains("given up"));
    assert_eq!(round(DAY + 7200).await, Published::default());
}

#[tokio::test]
async fn an_event_that_is_told_twice_is_one_and_two_processes_send_it_once() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 100).await;
    let other = Store::open(&stage.dir.path().join("a.db")).await.unwrap();
    let (outlets, now) = (&stage.config.outlets, Timestamp::new(DAY));
    for number in 0..20 {
        for store in [&stage.store, &other] {
            let what = json!({ "user": "ann" });
            let id = format!("notice-{number}");
            tell(outlets, store, Kind::NoticeSent, &id, &what, now).await.unwrap();
        }
    }
    let (one, two) =
        tokio::join!(deliver(outlets, &stage.store, now), deliver(outlets, &other, now));
    assert_eq!(one.unwrap().delivered + two.unwrap().delivered, 20);
    let mut ids: Vec<String> = receiver
        .taken()
        .into_iter()
        .map(|(_, headers, _)| headers["x-steward-event"].clone())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

#[tokio::test]
async fn two_processes_that_find_the_same_tell_of_it_once() {
    let receiver = Receiver::start().await;
    let stage = Stage::with_webhook(&receiver, 100).await;
    let other = Store::open(&stage.dir.path().join("a.db")).await.unwrap();
    let (found, now) = (reading(&[ANN]), Timestamp::new(DAY));
    let (one, two) = tokio::join!(
        publish(&stage.config, &stage.store, &found, now),
        publish(&stage.config, &other, &found, now)
    );
    assert_eq!(one.unwrap().raised + two.unwrap().raised, 1);
    assert_eq!(receiver.taken().len(), 1);
}

#[tokio::test]
async fn nobody_is_told_and_nothing_written_down_if_nobody_is_configured() {
    let stage = Stage::new().await;
    assert_eq!(stage.publish(&reading(&[ANN]), DAY).await, Published::default());
    assert_eq!(stage.store.alerts().await.unwrap(), []);
}
