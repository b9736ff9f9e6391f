//! `steward service status`.

use std::path::PathBuf;

use clap::Subcommand;

use super::Outcome;
use crate::config::Config;
use crate::output::service;
use crate::serve::client::ask;
use crate::serve::handler::status::{Status, TaskStatus};
use crate::shutdown::Shutdown;

/// Ask the service of this machine about itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward service status            whether it leads, when its tasks ran and run next
  steward service status --json     the same for a program

Any user may ask; only the administrator sees why a task failed.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say whether it leads, when its tasks ran and run next; exits with 1 if a task's last run failed.
    Status {
        /// Unix socket of the service [default: serve.socket of the configuration].
        #[arg(long, value_name = "PATH", env = "STEWARD_SOCKET")]
        socket: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Asks the service and shows what it says.
///
/// # Errors
/// If no service answers.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let What::Status { socket, json } = args.what;
    let zone = config.zone();
    let socket = socket.unwrap_or(config.serve.socket);
    let status: Status = shutdown.or(ask(&socket, "status", ())).await??;
    let text = if json {
        serde_json::to_string_pretty(&status)? + "\n"
    } else {
        service::status(&status, &zone)
    };
    let trouble = status.role == "trouble" || status.tasks.iter().any(TaskStatus::is_failing);
    Ok(if trouble { Outcome::failed(text) } else { Outcome::done(text) })
}
