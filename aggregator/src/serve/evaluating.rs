//! The task that looks at the rules.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use steward_common::cluster::Snapshot;
use steward_common::rule::Instance;
use steward_common::time;
use steward_common::window::Window;

use super::task::Setup;
use crate::archive;
use crate::evaluate::window::Period;
use crate::evaluate::{Judged, Sources, Trouble, gather, judge};
use crate::outlet::{self, Reading};
use crate::output::verdicts;
use crate::shutdown::Shutdown;

/// What rules say at the moment.
#[derive(Debug)]
pub struct Looked {
    /// What each says of each cluster.
    pub judged: Vec<Judged>,
    /// The rules.
    pub instances: Vec<Instance>,
    /// The time that was looked at.
    pub window: Window,
    /// The present.
    pub now: time::Timestamp,
    /// What could not be asked.
    pub troubles: Vec<Trouble>,
}

/// Evaluates. What could not be asked is said; the rest is found all the same.
///
/// # Errors
/// If the archive cannot be read.
pub fn look(setup: &Setup, shutdown: &Shutdown) -> anyhow::Result<Looked> {
    let config = &setup.config;
    let instances = config.rules.instances()?;
    let archive = archive::open(&config.archive.directory, config)?;
    let now = time::Timestamp::new(Timestamp::now().as_second());
    let window = Period::default().window(config.evaluate.days, now, &config.zone())?;
    let mut troubles = Vec::new();
    let known: Vec<Arc<Snapshot>> = setup.board.all().into_values().collect();
    // Without the exporter nobody else asks slurmctld.
    let snapshots = if known.is_empty() {
        gather::snapshots(config, &[], shutdown, &mut troubles)
    } else {
        known
    };
    let sources = Sources { config, archive: &archive, snapshots: &snapshots, now, measured: true };
    let gathered = gather(&sources, window, &[], &mut troubles)?;
    let judged = gathered.into_iter().map(|one| judge(one, &instances)).collect();
    for trouble in &troubles {
        tracing::warn!("evaluation: {trouble}");
    }
    Ok(Looked { judged, instances, window, now, troubles })
}

/// Evaluates, puts up what was found, and tells those who want to know.
///
/// # Errors
/// If the archive cannot be read.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let (config, store) = (Arc::clone(&setup.config), setup.store.clone());
    let work = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
        let found = look(&setup, &shutdown)?;
        let page = verdicts::page(&found.judged, &found.instances, &found.troubles)?;
        *setup.counts.rules.lock().unwrap_or_else(PoisonError::into_inner) = page;
        Ok((Reading::of(&found.judged, &found.instances, &found.troubles), found.now))
    });
    let (reading, now) = work.await??;
    outlet::publish(&config, &store, &reading, now).await?.into_result()
}
