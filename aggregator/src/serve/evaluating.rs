//! The task that looks at the rules.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use steward_common::cluster::Snapshot;
use steward_common::time::Timestamp as Moment;

use super::task::Setup;
use crate::archive;
use crate::evaluate::window::Period;
use crate::evaluate::{Judged, Sources, gather, judge};
use crate::outlet::{self, Reading};
use crate::output::verdicts;
use crate::shutdown::Shutdown;

/// Evaluates, puts up what was found, and tells those who want to know. What could not be asked is said and counted; the rest is
/// found all the same.
///
/// # Errors
/// If the archive cannot be read.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let (config, store) = (Arc::clone(&setup.config), setup.store.clone());
    let work = tokio::task::spawn_blocking(move || -> anyhow::Result<(Reading, Moment)> {
        let config = &setup.config;
        let instances = config.rules.instances()?;
        let archive = archive::open(&config.archive.directory, config)?;
        let now = Moment::new(Timestamp::now().as_second());
        let window = Period::default().window(config.evaluate.days, now, &config.zone())?;
        let mut troubles = Vec::new();
        let known: Vec<Arc<Snapshot>> = setup.board.all().into_values().collect();
        // Without the exporter nobody else asks slurmctld.
        let snapshots = if known.is_empty() {
            gather::snapshots(config, &[], &shutdown, &mut troubles)
        } else {
            known
        };
        let sources =
            Sources { config, archive: &archive, snapshots: &snapshots, now, measured: true };
        let gathered = gather(&sources, window, &[], &mut troubles)?;
        let judged: Vec<Judged> = gathered.into_iter().map(|one| judge(one, &instances)).collect();
        for trouble in &troubles {
            tracing::warn!("evaluation: {trouble}");
        }
        let page = verdicts::page(&judged, &instances, &troubles)?;
        *setup.counts.rules.lock().unwrap_or_else(PoisonError::into_inner) = page;
        Ok((Reading::of(&judged, &instances, &troubles), now))
    });
    let (reading, now) = work.await??;
    outlet::publish(&config, &store, &reading, now).await?.into_result()
}
