//! `steward analyze`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Outcome;
use crate::analyze::ask::Asked;
use crate::analyze::nodes::{self, Sizes};
use crate::analyze::options::Options;
use crate::archive::{self, Archive, ArchiveError};
use crate::config::{Config, Location};
use crate::serve::client::{AskError, ask};
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
    let archive = archive::open(&place, &config)?;
    let socket = config.serve.socket.clone();
    let due = shutdown.clone();
    let stop: Stop = Arc::new(move || due.is_due());
    let own = asked.clone();
    let work = tokio::task::spawn_blocking(move || text(own, &archive, &config, &stop));
    let why = match shutdown.or(work).await?? {
        Err(error) if args.data_dir.is_none() && is_closed(&error) => error,
        text => return Ok(Outcome::done(text?)),
    };
    let answer = shutdown.or(ask::<String>(&socket, "analyze", asked)).await?;
    let text = answer.map_err(|error| match error {
        AskError::NoService { .. } | AskError::Broken { .. } => anyhow::anyhow!(
            "neither the archive nor the service can be asked.\n  archive: {why}\n  service: {error}\n\
             Ask your administrator to run 'steward serve' on this machine or to let you read the \
             archive."
        ),
        // It was asked, and that is its answer.
        error => error.into(),
    })?;
    Ok(Outcome::done(text))
}

/// Whether the archive is not for us.
fn is_closed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ArchiveError::File { source, .. })
        if source.kind() == io::ErrorKind::PermissionDenied)
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
