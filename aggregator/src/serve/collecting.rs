//! The task that collects.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use steward_common::time;

use super::leader::Leadership;
use super::record::Counts;
use super::task::Setup;
use crate::archive::lock::Lock;
use crate::archive::{self, Archive, ArchiveError};
use crate::collect::site::{self, Order};
use crate::collect::{CollectError, Watch};
use crate::command::message;
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::source::slurm::command::CommandError;
use crate::source::slurm::sacct::Stop;

/// How long to wait for another who changes the archive.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often it is looked whether this service leads.
const BREATH: Duration = Duration::from_secs(1);

/// When an archive is looked at again that could not be read.
const AGAIN: Duration = Duration::from_secs(60);

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
        Err(error) => {
            // Others may have collected meanwhile. Why this one failed matters more than a look
            // that does.
            drop(look(&archive, counts));
            return Err(error.into());
        }
        Ok(done) => done,
    };
    let mut failed = Vec::new();
    for (cluster, end) in &done {
        own(counts, cluster.as_str());
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
    let looked = look(&archive, counts);
    anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(looked?)
}

/// Notes what the archive holds whenever this service begins to lead, until `shutdown`: the first
/// collection may be long in coming, and may fail.
pub async fn watch(setup: Setup, leadership: Arc<Leadership>, shutdown: Shutdown) {
    let (mut is_known, mut is_failing) = (false, false);
    loop {
        let mut pause = BREATH;
        if !leadership.leads() {
            is_known = false;
        } else if !is_known {
            let (setup, stop) = (setup.clone(), shutdown.clone());
            let work = tokio::task::spawn_blocking(move || first_look(&setup, &stop));
            let Ok(looked) = shutdown.or(work).await else { return };
            let looked = looked.map_err(anyhow::Error::from).flatten();
            is_known = looked.is_ok();
            if let Err(error) = &looked {
                pause = AGAIN;
                if !is_failing && !shutdown.is_due() {
                    let error = message(error);
                    tracing::warn!(error, "cannot tell what the archive holds; trying again");
                }
            }
            is_failing = looked.is_err();
        }
        if shutdown.or(tokio::time::sleep(pause)).await.is_err() {
            return;
        }
    }
}

/// Notes what the archive holds of the clusters that are to be collected.
fn first_look(setup: &Setup, shutdown: &Shutdown) -> anyhow::Result<()> {
    let (config, counts) = (&setup.config, &setup.counts);
    let archive = archive::open(&config.archive.directory, config)?;
    let manifest = archive.manifest()?;
    let stopping = shutdown.clone();
    let stop: Stop = Arc::new(move || stopping.is_due());
    for name in &config.slurm.clusters {
        own(counts, name.as_str());
    }
    let mut held = manifest.clusters.keys();
    if let (true, Some(first)) = (config.slurm.clusters.is_empty(), held.next()) {
        match (site::local(&config.slurm.scontrol, &stop), held.next()) {
            (Ok(name), _) => own(counts, name.as_str()),
            // With but one in the archive, Slurm need not be up to say which it is.
            (Err(_), None) => own(counts, first),
            (Err(error), Some(_)) => return Err(error.into()),
        }
    }
    Ok(look(&archive, counts)?)
}

/// Counts what is done for a cluster from now on.
fn own(counts: &Counts, cluster: &str) {
    let mut collections = counts.collections.lock().unwrap_or_else(PoisonError::into_inner);
    collections.clusters.entry(cluster.to_owned()).or_default();
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

/// Notes what the archive has come to. If it cannot be read, what was noted stays: it still holds that,
/// and whoever looks at its age sees it grow.
fn look(archive: &Archive, counts: &Counts) -> Result<(), ArchiveError> {
    let manifest = archive.manifest()?;
    let raw = archive.shelf().list("raw")?.iter().map(|item| item.bytes).sum();
    let files = manifest.clusters.values().flat_map(|one| one.days.values().chain(&one.open));
    let processed = files.map(|entry| entry.bytes).sum();
    let mut collections = counts.collections.lock().unwrap_or_else(PoisonError::into_inner);
    collections.bytes = Some((raw, processed));
    // A cluster that this service does not collect is none of its business.
    for (name, one) in &mut collections.clusters {
        let covered = manifest.clusters.get(name).and_then(|cluster| cluster.covered.last());
        one.covered_until = covered.map(time::Timestamp::get);
    }
    Ok(())
}
