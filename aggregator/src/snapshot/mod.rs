//! Snapshots of clusters: slurmctld is asked once per interval, and everybody who wants to know
//! anything looks at what it said.
//!
//! [`watch`] runs for as long as the service does. A question that fails keeps its last answer,
//! with its age; nothing that Slurm does ends the service.

mod ask;
mod pace;
mod take;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use steward_common::cluster::{Question, Snapshot};
use steward_common::id::ClusterName;
use steward_common::time;
use tokio::task::JoinSet;

use crate::collect::site;
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::source::slurm::command::CommandError;
use crate::source::slurm::sacct::Stop;
use ask::Asker;
use pace::pause;

/// How long to wait before looking again whether asking is allowed.
const BREATH: Duration = Duration::from_secs(1);

/// What is done with a snapshot. Called on a thread that may be kept.
#[derive(Clone)]
pub struct Publish(Arc<dyn Fn(Arc<Snapshot>) + Send + Sync>);

impl Publish {
    /// Does this with each.
    pub fn new(publish: impl Fn(Arc<Snapshot>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(publish))
    }
}

impl fmt::Debug for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Publish")
    }
}

/// Takes snapshots of every cluster until `shutdown`, whenever `may_ask` says so.
pub async fn watch(
    config: Arc<Config>,
    publish: Publish,
    may_ask: impl Fn() -> bool + Clone + Send + Sync + 'static,
    shutdown: Shutdown,
) {
    let mut clusters: Vec<_> = config.slurm.clusters.iter().cloned().map(Some).collect();
    if clusters.is_empty() {
        clusters.push(None);
    }
    let mut watchers = JoinSet::new();
    for cluster in clusters {
        let watcher = Watcher::new(&config, cluster, &shutdown);
        watchers.spawn(watcher.run(publish.clone(), may_ask.clone(), shutdown.clone()));
    }
    while watchers.join_next().await.is_some() {}
    // A service with no cluster to watch is not at its end.
    shutdown.wait().await;
}

/// One snapshot of each cluster, now.
///
/// # Errors
/// If the name of the local cluster cannot be found out, or it is time to stop.
pub fn once(config: &Arc<Config>, shutdown: &Shutdown) -> anyhow::Result<Vec<Snapshot>> {
    let mut clusters: Vec<_> = config.slurm.clusters.iter().cloned().map(Some).collect();
    if clusters.is_empty() {
        clusters.push(None);
    }
    let one = |cluster| {
        let mut watcher = Watcher::new(config, cluster, shutdown);
        watcher.round().map_err(anyhow::Error::from)?;
        watcher.last.ok_or_else(|| anyhow::anyhow!("interrupted"))
    };
    clusters.into_iter().map(one).collect()
}

/// Only what is `wanted` of one cluster, or of the local one, now.
///
/// # Errors
/// If the name of the local cluster cannot be found out, or it is time to stop.
pub fn part(
    config: &Arc<Config>,
    cluster: Option<ClusterName>,
    wanted: &[Question],
    shutdown: &Shutdown,
) -> anyhow::Result<Snapshot> {
    let stopping = shutdown.clone();
    let stop: Stop = Arc::new(move || stopping.is_due());
    let name = match &cluster {
        Some(name) => name.clone(),
        None => site::local(&config.slurm.scontrol, &stop)?,
    };
    let mut asker = Asker::new(Arc::clone(config), cluster, stop);
    Ok(take::take(&mut asker, &Snapshot::unseen(name, now()), wanted)?)
}

/// Asks one cluster.
struct Watcher {
    config: Arc<Config>,
    asker: Asker,
    shutdown: Shutdown,
    last: Option<Snapshot>,
    nameless: bool,
}

impl Watcher {
    fn new(config: &Arc<Config>, cluster: Option<ClusterName>, shutdown: &Shutdown) -> Self {
        let last = cluster.clone().map(|name| Snapshot::unseen(name, now()));
        let stopping = shutdown.clone();
        let asker = Asker::new(Arc::clone(config), cluster, Arc::new(move || stopping.is_due()));
        Self {
            config: Arc::clone(config),
            asker,
            shutdown: shutdown.clone(),
            last,
            nameless: false,
        }
    }

    async fn run(
        mut self,
        publish: Publish,
        may_ask: impl Fn() -> bool + Send,
        shutdown: Shutdown,
    ) {
        loop {
            if !may_ask() {
                if shutdown.or(tokio::time::sleep(BREATH)).await.is_err() {
                    return;
                }
                continue;
            }
            let publish = publish.clone();
            let begun = Instant::now();
            let work = tokio::task::spawn_blocking(move || {
                let wait = self.round_and_publish(&publish);
                (self, wait)
            });
            // It panics only if the program is wrong; then there is nothing to go on with.
            let Ok((watcher, wait)) = work.await else { return };
            self = watcher;
            let left = wait.saturating_sub(begun.elapsed());
            if shutdown.or(tokio::time::sleep(left)).await.is_err() {
                return;
            }
        }
    }

    /// Takes a snapshot and hands it on; says how long after its begin the next is due.
    fn round_and_publish(&mut self, publish: &Publish) -> Duration {
        match self.round() {
            Ok(()) => self.nameless = false,
            Err(CommandError::Stopped) => {}
            Err(error) if !self.nameless => {
                tracing::error!(%error, "cannot find out which cluster this is; trying again");
                self.nameless = true;
            }
            Err(_) => {}
        }
        let interval = self.config.exporter.interval.0;
        let Some(last) = &self.last else { return interval };
        if !self.shutdown.is_due() {
            (publish.0)(Arc::new(last.clone()));
        }
        last.interval
    }

    /// Takes a snapshot.
    fn round(&mut self) -> Result<(), CommandError> {
        let begun = Instant::now();
        if self.last.is_none() {
            let stopping = self.shutdown.clone();
            let stop: Stop = Arc::new(move || stopping.is_due());
            let name = site::local(&self.config.slurm.scontrol, &stop)?;
            self.last = Some(Snapshot::unseen(name, now()));
        }
        let Some(last) = &self.last else { return Ok(()) };
        let wanted = wanted(&self.config);
        let mut snapshot = take::take(&mut self.asker, last, &wanted)?;
        let exporter = &self.config.exporter;
        snapshot.interval = pause(exporter.interval.0, exporter.share, begun.elapsed());
        take::tell(last, &snapshot);
        self.last = Some(snapshot);
        Ok(())
    }
}

/// What is asked: what pages and rules need, and what the families need that are switched on.
fn wanted(config: &Config) -> Vec<Question> {
    let exporter = &config.exporter;
    let families = &exporter.families;
    let needed = |question: &Question| match question {
        Question::Nodes | Question::Jobs | Question::Partitions | Question::Reservations => true,
        Question::Licences => families.licences,
        Question::Shares => families.fairshare || families.accounts || exporter.vpenso,
        Question::Limits => families.limits,
        Question::Scheduler => families.scheduler || exporter.vpenso,
    };
    Question::ALL.iter().copied().filter(needed).collect()
}

fn now() -> time::Timestamp {
    time::Timestamp::new(Timestamp::now().as_second())
}

#[cfg(test)]
mod tests;
