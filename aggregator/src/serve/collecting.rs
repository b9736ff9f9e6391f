//! The task that collects.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use steward_common::time;

use super::record::Counts;
use super::task::Setup;
use crate::archive::lock::Lock;
use crate::archive::{self, Archive, ArchiveError};
use crate::collect::site::{self, Order};
use crate::collect::{CollectError, Watch};
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::source::slurm::command::CommandError;

/// How long to wait for another who changes the archive.
const PATIENCE: Duration = Duration::from_secs(600);

/// Nobody watches a service.
struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

/// Collects every cluster. Ends soon when it is time to stop; that is no failure.
///
/// # Errors
/// Names the clusters that could not be collected, and why.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let work = tokio::task::spawn_blocking(move || collect(&setup.config, &setup.counts, shutdown));
    work.await?
}

fn collect(config: &Config, counts: &Counts, shutdown: Shutdown) -> anyhow::Result<()> {
    let archive = archive::open(&config.archive.directory, config)?;
    let Some(lock) = lock(&archive, &shutdown)? else { return Ok(()) };
    let order = Order {
        days: config.collect.days,
        parallel: config.slurm.parallel,
        cluster: None,
        now: time::Timestamp::new(Timestamp::now().as_second()),
        zone: config.zone(),
        stop: Arc::new(move || shutdown.is_due()),
    };
    let done = match site::collect(config, &archive, &order, lock, &Unwatched) {
        Err(CollectError::Slurm(CommandError::Stopped)) => return Ok(()),
        done => done?,
    };
    let mut failed = Vec::new();
    for (cluster, end) in &done {
        match end {
            Ok(collected) => {
                tracing::info!(%cluster, runs = collected.runs, rows = collected.rows, "collected");
                if collected.malformed > 0 {
                    tracing::warn!(
                        %cluster,
                        texts = collected.malformed,
                        "could not be read; they are kept in raw"
                    );
                }
                let mut collections =
                    counts.collections.lock().unwrap_or_else(PoisonError::into_inner);
                let one = collections.clusters.entry(cluster.to_string()).or_default();
                one.last_success = Some(Timestamp::now());
                one.runs += collected.runs;
                one.malformed += collected.malformed;
            }
            Err(error) if error.is_stop() => {}
            Err(error) => failed.push(format!("{cluster}: {error}")),
        }
    }
    look(&archive, counts)?;
    anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

/// The right to change the archive; `None` if it is time to stop.
fn lock(archive: &Archive, shutdown: &Shutdown) -> Result<Option<Lock>, ArchiveError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match archive.lock(Duration::from_secs(1), || {}) {
            Err(ArchiveError::Busy { .. }) if shutdown.is_due() => return Ok(None),
            Err(ArchiveError::Busy { .. }) if Instant::now() < until => {}
            end => return end.map(Some),
        }
    }
}

/// Notes what the archive has come to.
fn look(archive: &Archive, counts: &Counts) -> Result<(), ArchiveError> {
    let manifest = archive.manifest()?;
    let raw = archive.shelf().list("raw")?.iter().map(|item| item.bytes).sum();
    let files = manifest.clusters.values().flat_map(|one| one.days.values().chain(&one.open));
    let processed = files.map(|entry| entry.bytes).sum();
    let mut collections = counts.collections.lock().unwrap_or_else(PoisonError::into_inner);
    collections.bytes = Some((raw, processed));
    for (name, cluster) in &manifest.clusters {
        // A cluster that this service has not asked is none of its business.
        if let Some(one) = collections.clusters.get_mut(name) {
            one.covered_until = cluster.covered.last().map(time::Timestamp::get);
        }
    }
    Ok(())
}
