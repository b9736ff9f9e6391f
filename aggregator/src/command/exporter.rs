//! `steward exporter`.

use std::net::SocketAddr;

use super::Outcome;
use crate::config::Config;
use crate::exporter::{self, Once};
use crate::shutdown::Shutdown;

/// Export what each cluster has, and whether it is allocated, idle or unusable, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It asks slurmctld once per exporter.interval, never because of a scrape, and less often while
slurmctld is slow. If a command fails, steward_snapshot_success is 0 for it and
steward_snapshot_age_seconds grows; what was known before stays. `steward serve` does the
same beside everything else: run one of the two.

Every CPU, GPU and byte of memory is in one class, and the classes sum to what there is:
  allocated  a job holds it
  idle       it can be given to a job now
  unusable   neither; the label cause says why: drain, down, not_responding, fail, maint,
             reserved, power, reboot, planned, error, or no_cpu and no_mem: free, but no CPU
             or memory of the same node is

Examples:
  steward exporter                                    serve /metrics at serve.listen
  steward exporter --once                             print it once, and end
  steward exporter --once | grep steward_cluster_gpus which GPUs are idle, which are not, and why
  curl http://127.0.0.1:9867/metrics/constants        exporter.constants alone")]
pub struct Args {
    /// Address for /metrics, /metrics/constants and /healthz.
    #[arg(long, value_name = "ADDRESS", env = "STEWARD_LISTEN")]
    listen: Option<SocketAddr>,
    /// Ask once, print what would be exported, and end.
    #[arg(long)]
    once: bool,
}

/// Exports until `shutdown`, or once.
///
/// # Errors
/// If it cannot start, or a part of it ends before its time.
pub async fn run(args: Args, mut config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    config.serve.listen = args.listen.unwrap_or(config.serve.listen);
    config.check()?;
    if args.once {
        let stopping = shutdown.clone();
        let work = tokio::task::spawn_blocking(move || exporter::once(config, &stopping));
        let Once { page, seen, failed } = shutdown.or(work).await???;
        return Ok(match (seen, failed) {
            (_, 0) => Outcome::done(page),
            (0, _) => Outcome::failed(page),
            _ => Outcome::in_part(page),
        });
    }
    exporter::run(config, async move { shutdown.wait().await }).await?;
    Ok(Outcome::done(""))
}
