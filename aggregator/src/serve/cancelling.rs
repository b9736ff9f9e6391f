//! The task that looks after idle jobs.

use super::task::Setup;
use crate::cancel::engine::Came;
use crate::cancel::run;
use crate::shutdown::Shutdown;

/// Looks and acts, once.
///
/// # Errors
/// If nothing could be done, or something failed: the rest was done all the same.
pub async fn run(setup: Setup, shutdown: Shutdown) -> anyhow::Result<()> {
    let mode = setup.config.cancel.mode;
    let report = run::once(&setup.config, mode, "service".to_owned(), &shutdown).await?;
    for trouble in &report.troubles {
        tracing::warn!("cancelling: {trouble}");
    }
    let mut failed = 0;
    for line in &report.lines {
        let (cluster, job) = (&line.key.cluster, &line.job);
        match &line.came {
            Came::Nothing(_) => {}
            Came::Would(what) => tracing::info!(%cluster, %job, "dry run: would {what}"),
            Came::Done(what) => tracing::info!(%cluster, %job, "idle job: {what}"),
            Came::Failed(why) => {
                failed += 1;
                tracing::warn!(%cluster, %job, "idle job: {why}");
            }
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of {} jobs failed", report.lines.len());
    Ok(())
}
