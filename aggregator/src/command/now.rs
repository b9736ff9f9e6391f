//! `steward now`.

use std::time::Duration;

use steward_common::id::ClusterName;

use super::Outcome;
use crate::config::Config;
use crate::now;
use crate::output::table;
use crate::shutdown::Shutdown;
use crate::source::prometheus::Prometheus;

/// Where Prometheus listens unless told otherwise.
const USUAL: &str = "http://127.0.0.1:9090";

/// Show every running job: CPU, memory, processes and files, used and held.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward now                                every job that an agent sees
  steward now --cluster c1 --json            one cluster, for a program
  steward now --prometheus http://mon:9090   ask another Prometheus than the configured one")]
pub struct Args {
    /// The Prometheus that collects from the agents [default: prometheus.url, else http://127.0.0.1:9090].
    #[arg(long, value_name = "URL", env = "STEWARD_PROMETHEUS")]
    prometheus: Option<String>,
    /// Only this cluster.
    #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
    cluster: Option<ClusterName>,
    /// Leave out nodes whose agent has been silent for longer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    fresh: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Asks Prometheus and shows the jobs.
///
/// # Errors
/// If Prometheus does not answer.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let url = args.prometheus.or(config.prometheus.url).unwrap_or_else(|| USUAL.to_owned());
    let prometheus = Prometheus::new(&url, config.prometheus.timeout.0)?;
    let fresh = Duration::from_secs(args.fresh);
    let rows = shutdown.or(now::rows(&prometheus, args.cluster.as_ref(), fresh)).await??;
    Ok(Outcome::done(if args.json {
        serde_json::to_string_pretty(&rows)? + "\n"
    } else {
        table::now(&rows)
    }))
}
