//! `/api/v1`: the jobs and nodes of each cluster as they are now, as JSON.
//!
//! Whoever can reach the listener is told about everybody's jobs; `serve.api` switches it off. Users
//! of the machine ask at the Unix socket, each about himself.

mod job;
mod listing;
mod place;
mod question;
mod refusal;

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State as Extract};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use serde::Serialize;
use steward_common::cluster::{Question, Seen, Snapshot};
use steward_common::id::{ClusterName, NodeName};

use super::record::State;
use crate::current::{JobRow, NodeRow, jobs_on};
use place::Place;
use question::Asked;
use refusal::Refusal;

type Answer = Result<Response, Refusal>;

/// Its line on the service's front page.
pub const PAGE: &str = "/api/v1/clusters  their jobs and nodes, as JSON\n";

/// Its routes.
pub fn routes() -> Router<Arc<State>> {
    Router::new()
        .route("/api/v1/clusters", get(clusters))
        .route("/api/v1/clusters/{cluster}/jobs", get(jobs))
        .route("/api/v1/clusters/{cluster}/jobs/{job}", get(job::answer))
        .route("/api/v1/clusters/{cluster}/nodes", get(nodes))
        .route("/api/v1/clusters/{cluster}/nodes/{node}", get(node))
        .route("/api", get(nothing))
        .route("/api/", get(nothing))
        .route("/api/{*rest}", get(nothing))
        .method_not_allowed_fallback(read_only)
}

async fn read_only() -> Refusal {
    Refusal::read_only("nothing can be changed here: ask with GET")
}

async fn nothing() -> Refusal {
    Refusal::none(
        "there is nothing here; there are /api/v1/clusters, and below each of them /jobs, \
         /jobs/ID, /nodes and /nodes/NAME",
    )
}

/// How old an answer is, and what became of the last try to have a newer one.
#[derive(Clone, Debug, Serialize)]
struct Age {
    cluster: String,
    /// When slurmctld said it, or the archive had it from Slurm's database; `null` if nobody wrote
    /// that down.
    seen_at: Option<i64>,
    age_seconds: Option<i64>,
    /// Why there is nothing newer; `null` if it was said at the last try.
    error: Option<String>,
}

impl Age {
    fn new<T>(snapshot: &Snapshot, question: Question, seen: &Seen<T>) -> Age {
        Age::at(snapshot, question, Some(seen.at.get()))
    }

    /// Of what was known at another time than that of the snapshot.
    fn at(snapshot: &Snapshot, question: Question, seen_at: Option<i64>) -> Age {
        let asked = snapshot.asked.get(&question);
        Age {
            cluster: snapshot.cluster.to_string(),
            seen_at,
            age_seconds: seen_at.map(|at| Timestamp::now().as_second().saturating_sub(at).max(0)),
            error: asked.and_then(|asked| asked.error.clone()),
        }
    }
}

fn json(value: &impl Serialize) -> Answer {
    let mut text = serde_json::to_vec(value).map_err(|error| Refusal::failed(error.to_string()))?;
    text.push(b'\n');
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// The newest snapshot of the cluster of that name.
fn snapshot(state: &State, cluster: &str) -> Result<Arc<Snapshot>, Refusal> {
    let known = state.board.all();
    let named = ClusterName::new(cluster).ok().and_then(|name| known.get(&name).cloned());
    named.ok_or_else(|| {
        let names: Vec<&str> = known.keys().map(ClusterName::as_str).collect();
        if names.is_empty() {
            return Refusal::later(if state.leadership.leads() {
                "no cluster was seen yet: slurmctld is being asked"
            } else {
                "this service is a standby and asks nobody: ask the leader"
            });
        }
        Refusal::none(format!("no cluster {cluster:?} is watched; there are {}", names.join(", ")))
    })
}

/// A part of a snapshot that has been seen.
fn seen<'a, T>(
    snapshot: &Snapshot,
    question: Question,
    part: Option<&'a Seen<T>>,
) -> Result<&'a Seen<T>, Refusal> {
    part.ok_or_else(|| {
        let why = snapshot.asked.get(&question).and_then(|asked| asked.error.as_deref());
        Refusal::later(format!(
            "slurmctld of {} has not told its {} yet: {}",
            snapshot.cluster,
            question.name(),
            why.unwrap_or("it is being asked")
        ))
    })
}

#[derive(Serialize)]
struct ClusterRow {
    cluster: String,
    jobs_seen_at: Option<i64>,
    nodes_seen_at: Option<i64>,
}

async fn clusters(Extract(state): Extract<Arc<State>>, RawQuery(query): RawQuery) -> Answer {
    #[derive(Serialize)]
    struct Clusters {
        clusters: Vec<ClusterRow>,
    }
    Asked::one(query.as_deref())?;
    let rows = state.board.all().into_values().map(|snapshot| ClusterRow {
        cluster: snapshot.cluster.to_string(),
        jobs_seen_at: snapshot.jobs.as_ref().map(|seen| seen.at.get()),
        nodes_seen_at: snapshot.nodes.as_ref().map(|seen| seen.at.get()),
    });
    json(&Clusters { clusters: rows.collect() })
}

async fn jobs(
    Extract(state): Extract<Arc<State>>,
    Place(cluster): Place<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let known = ["format", "user", "account", "partition", "state"];
    let asked = Asked::parse(query.as_deref(), &known)?;
    let snapshot = snapshot(&state, &cluster)?;
    let queue = seen(&snapshot, Question::Jobs, snapshot.jobs.as_ref())?;
    let asked = asked.of_jobs(&queue.what)?;
    let age = Age::new(&snapshot, Question::Jobs, queue);
    let (queue, name) = (Arc::clone(&queue.what), snapshot.cluster.clone());
    let shape = asked.shape;
    let rows = (0..queue.len())
        .filter_map(move |at| queue.get(at).map(|job| JobRow::new(&name, job)))
        .filter(move |row| asked.wants(row));
    Ok(listing::answer(shape, &age, "jobs", rows))
}

async fn nodes(
    Extract(state): Extract<Arc<State>>,
    Place(cluster): Place<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let asked = Asked::parse(query.as_deref(), &["format", "partition", "state"])?.of_nodes()?;
    let snapshot = snapshot(&state, &cluster)?;
    let known = seen(&snapshot, Question::Nodes, snapshot.nodes.as_ref())?;
    let age = Age::new(&snapshot, Question::Nodes, known);
    let reserved = snapshot.reserved(known.at);
    let (known, shape) = (Arc::clone(&known.what), asked.shape);
    let rows = (0..known.len())
        .filter_map(move |at| {
            let node = known.get(at)?;
            Some(NodeRow::new(&snapshot, node, reserved.get(&node.name).map(|name| &**name)))
        })
        .filter(move |row| wants_node(&asked, row));
    Ok(listing::answer(shape, &age, "nodes", rows))
}

fn wants_node(asked: &Asked, node: &NodeRow) -> bool {
    (asked.states.is_empty() || asked.states.iter().any(|word| node.is(word)))
        && (asked.partitions.is_empty()
            || node.partitions.iter().any(|own| asked.partitions.contains(own)))
}

async fn node(
    Extract(state): Extract<Arc<State>>,
    Place((cluster, name)): Place<(String, String)>,
    RawQuery(query): RawQuery,
) -> Answer {
    #[derive(Serialize)]
    struct One {
        #[serde(flatten)]
        age: Age,
        node: NodeRow,
        /// Raw ids of the jobs that hold it.
        jobs: Vec<u32>,
    }
    Asked::one(query.as_deref())?;
    let snapshot = snapshot(&state, &cluster)?;
    let known = seen(&snapshot, Question::Nodes, snapshot.nodes.as_ref())?;
    let name = NodeName::new(&name).map_err(|error| Refusal::bad(error.to_string()))?;
    let Some(node) = snapshot.node(&name) else {
        return Err(Refusal::none(format!(
            "cluster {} has no node {:?} (it has {}; see /api/v1/clusters/{}/nodes)",
            snapshot.cluster,
            name.as_str(),
            known.what.len(),
            snapshot.cluster
        )));
    };
    let reserved = snapshot.reserved(known.at);
    json(&One {
        age: Age::new(&snapshot, Question::Nodes, known),
        node: NodeRow::new(&snapshot, node, reserved.get(&name).map(|name| &**name)),
        jobs: jobs_on(&snapshot, &name),
    })
}

#[cfg(test)]
mod tests;
