use std::sync::Arc;

use serde_json::Value;
use steward_common::cluster::draft::{Desk, Draft, Figure};
use steward_common::cluster::state::{Flag, NodeState};
use steward_common::cluster::{Amount, Asked, Base, CurrentJob, Node, Question, Seen, Snapshot};
use steward_common::id::{ClusterName, NodeName};
use steward_common::time::Timestamp;

use crate::serve::tests::{Running, config};

fn job(id: u64, user: &str, state: &str, tasks: &str) -> CurrentJob {
    let draft = Draft {
        id: Figure::At(id),
        array_job: Figure::At(if tasks.is_empty() { 0 } else { id }),
        array_tasks: tasks.into(),
        user: user.into(),
        partition: "cpu".into(),
        name: "a \"name\"\n".into(),
        state: state.into(),
        nodes: if state == "RUNNING" { "n[1-2]".into() } else { "".into() },
        cpus: Figure::At(4),
        time_limit: Figure::Infinite,
        ..Draft::default()
    };
    Desk::default().job(draft).unwrap()
}

fn snapshot(at: i64, jobs: Vec<CurrentJob>) -> Arc<Snapshot> {
    let mut snapshot = Snapshot::unseen(ClusterName::new("c1").unwrap(), Timestamp::new(at));
    let mut node =
        Node::new(NodeName::new("n1").unwrap(), NodeState::new(Base::Mixed).with(Flag::Drain));
    node.cpus = Amount { total: 8, allocated: 4, error: 0 };
    snapshot.nodes = Some(Seen::new(Timestamp::new(at), vec![node]));
    snapshot.jobs = Some(Seen::new(Timestamp::new(at), jobs));
    Arc::new(snapshot)
}

async fn get(service: &Running, path: &str) -> (u16, Value) {
    let (code, text) = service.get(&format!("/api/v1/clusters{path}")).await;
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
}

#[tokio::test]
async fn jobs_and_nodes_are_told_and_what_is_not_there_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    let (code, nothing) = get(&service, "/c1/jobs").await;
    assert_eq!((code, nothing["error"].is_string()), (503, true), "{nothing}");
    service.board.put(snapshot(
        1000,
        vec![job(7, "alice", "RUNNING", ""), job(8, "bob", "PENDING", "0-999%5")],
    ));
    let (code, all) = get(&service, "").await;
    assert_eq!((code, &all["clusters"][0]["cluster"]), (200, &"c1".into()));
    let (_, jobs) = get(&service, "/c1/jobs").await;
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(jobs["seen_at"], 1000);
    assert_eq!(jobs["jobs"][0]["job_name"], "a \"name\"\n");
    assert_eq!(jobs["jobs"][0]["time_limit_seconds"], "unlimited");
    assert_eq!(jobs["jobs"][1]["tasks"], 1000);
    assert_eq!(jobs["jobs"][1]["job_id"], "8_[0-999%5]");
    let (_, bobs) = get(&service, "/c1/jobs?user=bob,carol&state=pending").await;
    assert_eq!(bobs["jobs"].as_array().unwrap().len(), 1);
    let (code, lines) = service.get("/api/v1/clusters/c1/jobs?format=ndjson").await;
    assert_eq!((code, lines.lines().count()), (200, 2));
    let (_, nodes) = get(&service, "/c1/nodes?state=drain").await;
    assert_eq!(nodes["nodes"][0]["cpus"]["unusable"]["drain"], 4);
    let (_, node) = get(&service, "/c1/nodes/n1").await;
    assert_eq!(node["jobs"], serde_json::json!([7]));
    for (path, status, part) in [
        ("/c2/jobs", 404, "there are c1"),
        ("/c1/nodes/n9", 404, "no node"),
        ("/c1/jobs/99", 404, "neither"),
        ("/c1/jobs/latest", 400, "no id"),
        ("/c1/jobs?who=me", 400, "known: format"),
        ("/c1/queue", 404, "/jobs"),
    ] {
        let (code, refusal) = get(&service, path).await;
        assert_eq!(code, status, "{path}: {refusal}");
        assert!(refusal["error"].as_str().unwrap().contains(part), "{path}: {refusal}");
    }
    service.stop().await;
}

#[tokio::test]
async fn states_are_remembered_when_they_change_and_told_with_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    service.wait_for("ok: leader\n").await;
    // The times are within what is kept.
    let now = jiff::Timestamp::now().as_second() - 100;
    for (at, state) in [(now, "PENDING"), (now + 1, "PENDING"), (now + 2, "RUNNING")] {
        service.board.put(snapshot(at, vec![job(7, "alice", state, "")]));
        service.until_states(7, |states| states.last().is_some_and(|last| last == state)).await;
    }
    let (_, told) = get(&service, "/c1/jobs/7").await;
    assert_eq!(told["source"], "slurmctld");
    let expected = serde_json::json!([
        {"state": "PENDING", "seen_at": now},
        {"state": "RUNNING", "seen_at": now + 2},
    ]);
    assert_eq!(told["states"], expected);
    service.stop().await;
    // The next service goes on where this one ended, and tells of a job that has left.
    let service = Running::start(config(dir.path())).await;
    service.wait_for("ok: leader\n").await;
    service.board.put(snapshot(now + 3, vec![job(7, "alice", "RUNNING", "")]));
    service.board.put(snapshot(now + 4, vec![job(7, "alice", "COMPLETED", "")]));
    service.until_states(7, |states| states.len() == 3).await;
    service.board.put(snapshot(now + 5, Vec::new()));
    let (code, told) = get(&service, "/c1/jobs/7").await;
    assert_eq!((code, &told["source"]), (200, &"store".into()), "{told}");
    assert_eq!(told["states"].as_array().unwrap().len(), 3);
    assert!(told.get("job").is_none());
    // Nobody may take it for the present.
    assert_eq!(told["age"]["seen_at"], now + 4);
    assert!(told["age"]["age_seconds"].as_i64().unwrap() >= 96, "{told}");
    service.stop().await;
}

#[tokio::test]
async fn a_store_that_was_deleted_is_begun_anew_with_the_states_of_all_jobs_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    service.wait_for("ok: leader\n").await;
    let now = jiff::Timestamp::now().as_second() - 100;
    let (alices, bobs) = (job(7, "alice", "RUNNING", ""), job(8, "bob", "PENDING", ""));
    service.board.put(snapshot(now, vec![alices.clone(), bobs.clone()]));
    service.until_states(7, |states| states.len() == 1).await;
    let path = dir.path().join("state/steward.db");
    std::fs::remove_file(&path).unwrap();
    service.board.put(snapshot(now + 1, vec![alices, bobs]));
    service.until_states(7, |states| states.len() == 1 && path.exists()).await;
    service.until_states(8, |states| states.len() == 1).await;
    let (_, page) = service.get("/metrics").await;
    assert!(page.contains("\nsteward_store_failures_total 1\n"), "{page}");
    service.stop().await;
    // Not only in a file that nobody will see again.
    let service = Running::start(config(dir.path())).await;
    service.until_states(8, |states| states == ["PENDING"]).await;
    service.stop().await;
}

#[tokio::test]
async fn an_old_answer_says_how_old_it_is_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    let mut old = Snapshot::clone(&snapshot(1000, vec![job(7, "alice", "RUNNING", "")]));
    let failed = Asked {
        at: Timestamp::new(2000),
        took: std::time::Duration::from_secs(1),
        error: Some("squeue: no answer".to_owned()),
        answered: Some(Timestamp::new(1000)),
    };
    old.asked.insert(Question::Jobs, failed);
    service.board.put(Arc::new(old));
    let (code, jobs) = get(&service, "/c1/jobs").await;
    assert_eq!((code, &jobs["error"]), (200, &"squeue: no answer".into()));
    assert!(jobs["age_seconds"].as_i64().unwrap() > 1000);
    service.stop().await;
}

#[tokio::test]
async fn a_site_can_switch_it_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = config(dir.path());
    settings.serve.api = false;
    let service = Running::start(settings).await;
    service.board.put(snapshot(1000, Vec::new()));
    assert_eq!(service.get("/api/v1/clusters/c1/jobs").await.0, 404);
    let (code, front) = service.get("/").await;
    assert_eq!((code, front.contains("/metrics"), front.contains("/api")), (200, true, false));
    service.stop().await;
    let service = Running::start(config(dir.path())).await;
    assert!(service.get("/").await.1.contains("/api/v1/clusters"));
    service.stop().await;
}

#[tokio::test]
async fn every_refusal_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    service.board.put(snapshot(1000, Vec::new()));
    for (method, path, status) in [
        ("GET", "/api", 404),
        ("GET", "/api/", 404),
        ("GET", "/api/v2/%ff", 404),
        ("GET", "/api/v1/clusters/%ff/jobs", 400),
        ("GET", "/api/v1/clusters/%ff/nodes", 400),
        ("GET", "/api/v1/clusters/c1/jobs/%ff", 400),
        ("GET", "/api/v1/clusters/c1/nodes/%ff", 400),
        ("POST", "/api/v1/clusters/c1/jobs", 405),
        ("DELETE", "/api/v1/clusters/c1/jobs/7", 405),
        ("PUT", "/api/nothing", 405),
    ] {
        let (code, kind, text) = service.send(method, path).await;
        assert_eq!((code, kind.as_str()), (status, "application/json"), "{method} {path}: {text}");
        let refusal: Value = serde_json::from_str(&text).unwrap();
        assert!(refusal["error"].as_str().is_some_and(|why| !why.is_empty()), "{path}: {text}");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_state_that_slurm_does_not_have_is_refused_with_those_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    let jobs = vec![job(7, "alice", "RUNNING", ""), job(8, "bob", "EXPEDITING", "")];
    service.board.put(snapshot(1000, jobs));
    for (path, part) in [
        ("/c1/jobs?state=foo", "RUNNING"),
        ("/c1/jobs?state=running,foo", "PENDING"),
        ("/c1/nodes?state=RUNNING", "mixed"),
        ("/c1/nodes?state=drian", "not_responding"),
    ] {
        let (code, refusal) = get(&service, path).await;
        assert_eq!(code, 400, "{path}: {refusal}");
        assert!(refusal["error"].as_str().unwrap().contains(part), "{path}: {refusal}");
    }
    // Short names are Slurm's too, and so is a state of a newer Slurm that a job is in.
    for (path, rows, count) in [
        ("/c1/jobs?state=r", "jobs", 1),
        ("/c1/jobs?state=oom", "jobs", 0),
        ("/c1/jobs?state=expediting", "jobs", 1),
        ("/c1/nodes?state=mix", "nodes", 1),
        ("/c1/nodes?state=DRAIN", "nodes", 1),
        ("/c1/nodes?state=idle", "nodes", 0),
    ] {
        let (code, told) = get(&service, path).await;
        assert_eq!((code, told[rows].as_array().map(Vec::len)), (200, Some(count)), "{path}");
    }
    service.stop().await;
}

#[tokio::test]
async fn one_object_has_no_rows_and_what_is_asked_in_vain_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let service = Running::start(config(dir.path())).await;
    service.board.put(snapshot(1000, vec![job(7, "alice", "RUNNING", "")]));
    for path in ["", "/c1/jobs/7", "/c1/nodes/n1"] {
        assert_eq!(get(&service, &format!("{path}?format=json")).await.0, 200, "{path}");
        for (question, part) in
            [("format=ndjson", "lists"), ("format=xml", "json"), ("user=bob", "known: format")]
        {
            let (code, refusal) = get(&service, &format!("{path}?{question}")).await;
            assert_eq!(code, 400, "{path} {question}: {refusal}");
            let why = refusal["error"].as_str().unwrap();
            assert!(why.contains(part), "{path} {question}: {refusal}");
        }
    }
    service.stop().await;
}
