//! What the service remembers of snapshots: in which states it saw each job, and since when.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use steward_common::cluster::Snapshot;
use steward_common::id::{ClusterName, JobId};
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;

use super::record::State;
use crate::shutdown::Shutdown;
use crate::store::{Store, StoreError};

/// How often what is too old is forgotten.
const FORGETTING: Duration = Duration::from_secs(3600);

/// The last look at the queue of a cluster.
#[derive(Debug)]
struct Look {
    at: Timestamp,
    states: HashMap<JobId, JobState>,
}

/// Compares each snapshot with the one before.
#[derive(Debug)]
pub struct Memory {
    store: Store,
    keep: Duration,
    looks: HashMap<ClusterName, Look>,
    forgot: Option<Instant>,
    /// How often the store had lost its file at the last look.
    losses: u64,
}

impl Memory {
    /// One that forgets after `keep`.
    #[must_use]
    pub fn new(store: Store, keep: Duration) -> Memory {
        let losses = store.losses();
        Memory { store, keep, looks: HashMap::new(), forgot: None, losses }
    }

    /// Writes down the states that are new since the last snapshot of this cluster; gives how many.
    /// What could not be written is found again by the next look.
    ///
    /// # Errors
    /// If the store does not take it.
    pub async fn look(&mut self, snapshot: &Snapshot) -> Result<usize, StoreError> {
        let Some(queue) = &snapshot.jobs else { return Ok(0) };
        let cluster = &snapshot.cluster;
        if self.looks.get(cluster).is_some_and(|look| look.at == queue.at) {
            return Ok(0);
        }
        self.store.renew().await?;
        if self.store.losses() != self.losses {
            // What was written down may be lost with the file.
            self.losses = self.store.losses();
            self.reset();
        }
        let first = queue.what.iter().map(|job| job.id).min();
        let known = match (self.looks.get(cluster), first) {
            (Some(look), _) => &look.states,
            (None, None) => &HashMap::new(),
            // The first look after a start: the store knows what was seen before.
            (None, Some(first)) => {
                let last = self.store.last_states(cluster, first).await?;
                let states = last.iter().map(|(job, state)| (*job, JobState::from(state.as_str())));
                &states.collect()
            }
        };
        let states: HashMap<JobId, JobState> =
            queue.what.iter().map(|job| (job.id, job.state.clone())).collect();
        let news: Vec<(JobId, String)> = states
            .iter()
            .filter(|(job, state)| known.get(job) != Some(state))
            .map(|(job, state)| (*job, state.name().to_owned()))
            .collect();
        if !news.is_empty() {
            self.store.add_states(cluster, queue.at, &news).await?;
        }
        self.looks.insert(cluster.clone(), Look { at: queue.at, states });
        self.forget(queue.at).await?;
        Ok(news.len())
    }

    async fn forget(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.forgot.is_some_and(|moment| moment.elapsed() < FORGETTING) {
            return Ok(());
        }
        self.store.forget_states(now.before(self.keep)).await?;
        self.forgot = Some(Instant::now());
        Ok(())
    }

    /// Begins anew: another service may have written meanwhile.
    pub fn reset(&mut self) {
        self.looks.clear();
    }
}

/// Looks at every snapshot, on the leader, until `shutdown`.
pub async fn run(state: Arc<State>, shutdown: Shutdown) {
    let keep = state.config.store.retention_states.0;
    let mut memory = Memory::new(state.store.clone(), keep);
    let mut news = state.board.watch();
    let mut failing = false;
    // The board goes with the state, which outlives this loop.
    while let Ok(Ok(())) = shutdown.or(news.changed()).await {
        if !state.leadership.leads() {
            memory.reset();
            continue;
        }
        for snapshot in state.board.all().into_values() {
            match memory.look(&snapshot).await {
                Ok(_) if failing => {
                    failing = false;
                    tracing::info!("the store takes states of jobs again");
                }
                Ok(_) => {}
                Err(error) => {
                    state.counts.store_failures.fetch_add(1, Ordering::Relaxed);
                    if !failing {
                        tracing::error!(%error, "states of jobs are not written down; tried again with each snapshot");
                    }
                    failing = true;
                }
            }
        }
    }
}
