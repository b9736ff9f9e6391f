//! One job: as slurmctld tells of it, else as the archive does; with the states it was seen in.

use std::sync::Arc;

use axum::extract::{RawQuery, State as Extract};
use serde::Serialize;
use steward_common::cluster::{CurrentJob, Question as Part, Seen, Snapshot};
use steward_common::id::{ClusterName, JobId};

use super::place::Place;
use super::question::Asked;
use super::{Age, Answer, json, snapshot};
use crate::archive;
use crate::current::JobRow;
use crate::jobs::{JobRun, Question, Whose};
use crate::serve::api::refusal::Refusal;
use crate::serve::handler::jobs::READERS;
use crate::serve::record::State;

/// Runs of a job that are told; a job that is requeued more often is rare.
const RUNS: usize = 100;

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Slurmctld,
    Archive,
    /// It left slurmctld and is not collected yet: only its states are known.
    Store,
}

#[derive(Serialize)]
struct StateRow {
    state: String,
    seen_at: i64,
}

#[derive(Serialize)]
struct One {
    cluster: String,
    source: Source,
    /// When what is told was known: in the snapshot, by the newest run's collection, or when its last
    /// state was seen first.
    age: Age,
    /// As it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobRow>,
    /// As the archive has it, the newest run first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<JobRun>,
    /// The states it was seen in, the first first.
    states: Vec<StateRow>,
}

/// Tells of a job.
pub async fn answer(
    Extract(state): Extract<Arc<State>>,
    Place((cluster, id)): Place<(String, String)>,
    RawQuery(query): RawQuery,
) -> Answer {
    Asked::one(query.as_deref())?;
    if !is_id(&id) {
        return Err(Refusal::bad(format!(
            "{id:?} is no id of a job: those are like 739, 741_0 or 743+1"
        )));
    }
    let snapshot = snapshot(&state, &cluster)?;
    if let Some((queue, job)) = find(&snapshot, &id) {
        let age = Age::new(&snapshot, Part::Jobs, queue);
        return json(&One {
            cluster,
            source: Source::Slurmctld,
            age,
            job: Some(JobRow::new(&snapshot.cluster, job)),
            runs: Vec::new(),
            states: states(&state, &snapshot.cluster, Some(job.id)).await?,
        });
    }
    let runs = archived(&state, &snapshot.cluster, &id).await?;
    let raw = runs.first().and_then(|run| run.job_id_raw).and_then(JobId::new);
    let states = states(&state, &snapshot.cluster, raw.or_else(|| id.parse().ok())).await?;
    let source = if runs.is_empty() { Source::Store } else { Source::Archive };
    if source == Source::Store && states.is_empty() {
        return Err(Refusal::none(format!(
            "job {id} of cluster {cluster} is neither with slurmctld nor in the archive: it may \
             have ended and not be collected yet (see collect.schedule), or never have been"
        )));
    }
    let age = Age::at(&snapshot, Part::Jobs, known_at(&runs, &states));
    json(&One { cluster, source, age, job: None, runs, states })
}

/// When what is told of a job that has left slurmctld was known: what the archive has of its newest
/// run, else its last state.
fn known_at(runs: &[JobRun], states: &[StateRow]) -> Option<i64> {
    match runs.first() {
        Some(run) => run.collected_at,
        None => states.last().map(|state| state.seen_at),
    }
}

/// `739`, `741_0`, `743+1`.
fn is_id(text: &str) -> bool {
    let number = |text: &str| {
        (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match text.split_once(['_', '+']) {
        None => number(text),
        Some((job, part)) => number(job) && number(part),
    }
}

/// The job in the queue, and the queue that it is in.
fn find<'a>(
    snapshot: &'a Snapshot,
    id: &str,
) -> Option<(&'a Seen<Vec<CurrentJob>>, &'a CurrentJob)> {
    let queue = snapshot.jobs.as_ref()?;
    let job = match id.parse() {
        Ok(id) => snapshot.job(id),
        Err(_) => queue.what.iter().find(|job| job.is_known_as(id)),
    };
    Some((queue, job?))
}

async fn states(
    state: &State,
    cluster: &ClusterName,
    job: Option<JobId>,
) -> Result<Vec<StateRow>, Refusal> {
    let Some(job) = job else { return Ok(Vec::new()) };
    let states = state.store.states(cluster, job).await;
    let states = states.map_err(|error| Refusal::failed(error.to_string()))?;
    let row = |seen: crate::store::states::SeenState| StateRow {
        state: seen.state,
        seen_at: seen.at.get(),
    };
    Ok(states.into_iter().map(row).collect())
}

/// The runs of a job that the archive has, the newest first.
async fn archived(state: &State, cluster: &ClusterName, id: &str) -> Result<Vec<JobRun>, Refusal> {
    let question = Question {
        whose: Whose::All,
        from: 0,
        to: i64::MAX,
        states: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        clusters: vec![cluster.to_string()],
        name: None,
        job_id: Some(id.to_owned()),
        limit: RUNS,
    };
    let failed = |error: &dyn std::fmt::Display| Refusal::failed(format!("the archive: {error}"));
    let archive = archive::open(&state.config.archive.directory, &state.config)
        .map_err(|error| failed(&error))?;
    let turn = READERS.acquire().await.map_err(|error| failed(&error))?;
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        archive.jobs(&question)
    });
    let answer = work.await.map_err(|error| failed(&error))?;
    Ok(answer.map_err(|error| failed(&error))?.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_as_old_as_where_it_comes_from() {
        let run = |collected_at| JobRun { collected_at, ..JobRun::default() };
        let seen = |seen_at| StateRow { state: "RUNNING".to_owned(), seen_at };
        let states = [seen(10), seen(50)];
        // A state that was seen later makes no run of the archive younger.
        assert_eq!(known_at(&[run(Some(30)), run(Some(20))], &states), Some(30));
        assert_eq!(known_at(&[run(None)], &states), None);
        assert_eq!(known_at(&[], &states), Some(50));
        assert_eq!(known_at(&[], &[]), None);
    }

    #[test]
    fn ids_are_numbers_with_a_part_at_most() {
        for id in ["1", "741_0", "743+1", "4294967295"] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "a", "1_", "_1", "1_2_3", "1.batch", "741_[3-9]", "12345678901", "-1"] {
            assert!(!is_id(id), "{id}");
        }
    }
}
