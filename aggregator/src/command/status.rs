//! `steward status`.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use steward_common::id::ClusterName;
use steward_common::span::Span;
use steward_common::time::Timestamp;

use super::Outcome;
use crate::archive::{self, ArchiveError};
use crate::config::{Config, Location};
use crate::output::archive::{Around, Clock, document};
use crate::output::format::{self, Format};
use crate::output::number::counted;
use crate::output::screen::Screen;
use crate::purge;
use crate::serve::client::ask;
use crate::serve::handler::status::Status;
use crate::shutdown::Shutdown;
use crate::source::slurm::settings::{Settings, text};
use crate::status::{Holding, look, lost_in_words};

/// How long Slurm and the service may take to say something.
const PATIENCE: Duration = Duration::from_secs(10);

/// Say what the archive holds, what it lacks and what can still change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Warns when jobs were never collected, could not be read, or will be deleted by slurmdbd before
they are collected, and when files are lost. Exit codes: 0 the archive was read, whatever it holds (warnings do not
change it; the JSON lists them); 1 there is no archive, or it cannot be read.

Examples:
  steward status                        the archive of the configuration
  steward status --data-dir /mnt/old    another one
  steward status --json                 for a program")]
pub struct Args {
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Looks and tells.
///
/// # Errors
/// If there is no archive, or it cannot be read.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let place = args.data_dir.unwrap_or_else(|| config.archive.directory.clone());
    let closed = |error: ArchiveError| match error.is_closed() {
        true => anyhow::anyhow!("{error}; `steward service status` is for everybody"),
        false => error.into(),
    };
    let archive = archive::open(&place, &config).map_err(closed)?;
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let grace = config.collect.grace.0;
    let looked = tokio::task::spawn_blocking(move || look(&archive, now, grace));
    let service = async {
        let asked = ask::<Status>(&config.serve.socket, "status", ());
        tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
    };
    let ((looked, purge), service) = shutdown
        .or(async { tokio::join!(async { (looked.await, purge(&config).await) }, service) })
        .await?;
    let looked = looked?.map_err(closed)?;
    let Some(holding) = looked else {
        anyhow::bail!("{place}: no archive here yet; `steward collect` makes one");
    };
    let around = Around {
        free: free(&place),
        place: place.to_string(),
        service: service.as_ref(),
        warnings: warnings(&holding, &config.slurm.clusters, &purge, now),
        clock: Clock { zone: config.zone(), whole: args.json },
    };
    let format = if args.json { Format::Json } else { Format::Table };
    let document = document(&holding, &around);
    Ok(Outcome::done(format::write(&document, format, Screen::of_stdout(), Some(0))))
}

/// What is free where the archive is, in bytes.
fn free(place: &Location) -> Option<u64> {
    let Location::Directory(path) = place else { return None };
    let disk = statvfs(path.as_path()).ok()?;
    disk.blocks_available().checked_mul(disk.fragment_size())
}

/// What slurmdbd deletes first, or why that is not known.
async fn purge(config: &Config) -> Result<Option<(&'static str, Duration)>, String> {
    let sacctmgr = config.slurm.sacctmgr.clone();
    let asked = tokio::task::spawn_blocking(move || {
        text(
            &sacctmgr,
            &["-n", "-P", "show", "configuration"],
            PATIENCE,
            &(Arc::new(|| false) as _),
        )
    });
    let settings =
        Settings::parse(&asked.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?);
    match settings.get("PurgeJobAfter") {
        None => Err("sacctmgr does not say PurgeJobAfter".to_owned()),
        Some(_) => Ok(purge::first(&settings)),
    }
}

fn warnings(
    holding: &Holding,
    configured: &[ClusterName],
    purge: &Result<Option<(&'static str, Duration)>, String>,
    now: Timestamp,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if !holding.lost.is_empty() {
        let lost = lost_in_words(&holding.lost);
        warnings
            .push(format!("{lost}; `steward archive rebuild` makes missing files anew from raw"));
    }
    if let Err(why) = purge {
        warnings.push(format!(
            "it is not known when slurmdbd deletes jobs, so nobody warns before it does: {why}"
        ));
    }
    if let Ok(Some(after)) = purge {
        let covered = holding.clusters.iter().map(|held| (held.cluster.as_str(), held.until));
        let covered: Vec<_> = covered.collect();
        warnings.extend(purge::warnings(&covered, configured, now, *after));
    }
    for held in &holding.clusters {
        let cluster = &held.cluster;
        if !held.gaps.is_empty() {
            let gaps = counted(held.gaps.len() as u64, "gap");
            warnings.push(format!(
                "{cluster}: {gaps} in what was collected; `steward collect` fills what slurmdbd \
                 still knows"
            ));
        }
        let age = held.last.and_then(|last| now.since(Timestamp::new(last.at)));
        if let Some(age) = age.filter(|age| *age > Duration::from_secs(2 * 86_400)) {
            let days = Span(Duration::from_secs(age.as_secs() / 86_400 * 86_400));
            warnings.push(format!(
                "{cluster}: the last collection was {days} ago; see that `steward serve` or a timer runs"
            ));
        }
        if let Some(last) = held.last.filter(|last| last.malformed > 0) {
            warnings.push(format!(
                "{cluster}: the last collection could not read {} of sacct; `steward collect` shows some",
                counted(last.malformed, "text")
            ));
        }
    }
    warnings
}
