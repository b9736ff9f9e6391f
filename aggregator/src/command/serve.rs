//! `steward serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Outcome;
use crate::config::Config;
use crate::serve;
use crate::shutdown::Shutdown;

/// Run the service: tasks on their schedules, /metrics and /healthz, and the socket that users ask.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It runs until SIGTERM or SIGINT. Of several services on one state directory, one leads and
runs the tasks; the others serve their pages and take over when it ends. Everything has a
key in steward.toml: see deploy/config/steward.toml.

Examples:
  steward serve                                      as deploy/systemd/steward.service does
  steward serve --pushgateway http://127.0.0.1:9091  also delete silent agents' groups there
  curl http://127.0.0.1:9867/healthz                 whether it leads or waits
  steward service status                             how its tasks do")]
pub struct Args {
    /// Address for /metrics and /healthz.
    #[arg(long, value_name = "ADDRESS", env = "STEWARD_LISTEN")]
    listen: Option<SocketAddr>,
    /// Unix socket for the users of this machine.
    #[arg(long, value_name = "PATH", env = "STEWARD_SOCKET")]
    socket: Option<PathBuf>,
    /// Directory for what the service must know.
    #[arg(long, value_name = "DIR", env = "STEWARD_STATE")]
    state: Option<PathBuf>,
    /// Pushgateway from which stale groups are deleted.
    #[arg(long, value_name = "URL", env = "STEWARD_PUSHGATEWAY")]
    pushgateway: Option<String>,
}

/// Serves until `shutdown`.
///
/// # Errors
/// If it cannot start, or a part of it ends before its time.
pub async fn run(args: Args, mut config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    config.serve.listen = args.listen.unwrap_or(config.serve.listen);
    config.serve.socket = args.socket.unwrap_or(config.serve.socket);
    config.serve.state = args.state.unwrap_or(config.serve.state);
    config.pushgateway.url = args.pushgateway.or(config.pushgateway.url);
    config.check()?;
    serve::run(config, async move { shutdown.wait().await }).await?;
    Ok(Outcome::done(""))
}
