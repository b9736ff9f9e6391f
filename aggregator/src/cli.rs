//! The command line.

use std::time::Duration;

use clap::{Parser, Subcommand};
use steward_common::id::ClusterName;

use crate::now;
use crate::output::table;
use crate::source::prometheus::Prometheus;

/// Says what the cluster's jobs use of what they hold.
#[derive(Debug, Parser)]
#[command(name = "steward", version, after_help = "Exit codes: 0 done, 1 failed, 2 bad usage.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every running job: CPU, memory, processes and files, used and held.
    Now {
        /// The Prometheus that collects from the agents.
        #[arg(
            long,
            value_name = "URL",
            env = "STEWARD_PROMETHEUS",
            default_value = "http://127.0.0.1:9090"
        )]
        prometheus: String,
        /// Only this cluster.
        #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
        cluster: Option<ClusterName>,
        /// Leave out nodes whose agent has been silent for longer, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        fresh: u64,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Does what was asked and gives what is to be printed.
///
/// # Errors
/// If it cannot be done; the message says what to try.
pub async fn run(command: Command) -> anyhow::Result<String> {
    match command {
        Command::Now { prometheus, cluster, fresh, json } => {
            let prometheus = Prometheus::new(&prometheus)?;
            let rows = now::rows(&prometheus, cluster.as_ref(), Duration::from_secs(fresh)).await?;
            if json {
                Ok(serde_json::to_string_pretty(&rows)? + "\n")
            } else {
                Ok(table::now(&rows))
            }
        }
    }
}
