//! `steward analyze`.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Outcome, reader};
use crate::analyze::ask::Asked;
use crate::analyze::nodes::{self, Sizes};
use crate::analyze::options::Options;
use crate::archive::Archive;
use crate::config::{Config, Location};
use crate::serve::client::ask;
use crate::shutdown::Shutdown;
use crate::source::slurm::sacct::Stop;

/// Sum up who used what, and how well, over days of the archive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Who may not read the archive is told by the service about his own jobs.

Examples:
  steward analyze                                   the last seven days
  steward analyze --from 2026-01-01 --to 2026-03-31 a quarter
  steward analyze --user alice --table waste        what one user wasted, and why
  steward analyze --format html > usage.html        a page to send")]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory, else the service].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
    /// Unix socket of the service [default: serve.socket].
    #[arg(long, value_name = "PATH", env = "STEWARD_SOCKET", conflicts_with = "data_dir")]
    socket: Option<PathBuf>,
}

/// Reads the archive, or asks the service, and shows the tables.
///
/// # Errors
/// If there is nothing to show.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let asked = Asked::here(args.options);
    if let Some(socket) = &args.socket {
        return Ok(Outcome::done(shutdown.or(ask::<String>(socket, "analyze", asked)).await??));
    }
    let place = args.data_dir.clone().unwrap_or_else(|| config.archive.directory.clone());
    let socket = config.serve.socket.clone();
    let due = shutdown.clone();
    let stop: Stop = Arc::new(move || due.is_due());
    let own = asked.clone();
    let work = tokio::task::spawn_blocking(move || {
        text(own, &reader::open(&place, &config)?, &config, &stop)
    });
    let text = match shutdown.or(work).await?? {
        Err(why) if args.data_dir.is_none() && reader::is_closed(&why) => {
            shutdown.or(reader::instead(&socket, "analyze", asked, &why)).await??
        }
        text => text?,
    };
    Ok(Outcome::done(text))
}

/// The tables, with what nodes have if they are shown.
///
/// # Errors
/// If there is nothing to show.
pub fn text(
    asked: Asked,
    archive: &Archive,
    config: &Config,
    stop: &Stop,
) -> anyhow::Result<String> {
    let only = &asked.options.cluster;
    let sizes = if asked.options.shows_nodes() {
        let clusters = archive.manifest()?.clusters.into_keys();
        let wanted = |name: &String| only.is_empty() || only.contains(name);
        nodes::sizes(&config.slurm, &clusters.filter(wanted).collect::<Vec<_>>(), stop)
    } else {
        Sizes::new()
    };
    asked.text(archive, config, sizes)
}
