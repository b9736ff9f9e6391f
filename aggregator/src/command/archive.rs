//! `steward archive`.

use std::time::Duration;

use clap::Subcommand;
use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::{BadInput, Interrupted, Outcome};
use crate::archive::{self, Archive};
use crate::config::{Config, Location};
use crate::keep::KeepError;
use crate::keep::rebuild::{self, Rebuilt};
use crate::keep::retention::Retention;
use crate::output::progress::Progress;
use crate::shutdown::Shutdown;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Look after the archive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward archive rebuild          compute all jobs anew from the rows that sacct gave")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compute all jobs anew from the rows that sacct gave, as after an update of Steward.
    ///
    /// Jobs whose rows are no longer kept (archive.retention_raw, archive.raw) stay as they are. The old files count
    /// until all is done.
    Rebuild {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Only this cluster.
    #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
    cluster: Option<ClusterName>,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
}

impl Place {
    fn open(&self, config: &Config) -> anyhow::Result<Archive> {
        let place = self.data_dir.as_ref().unwrap_or(&config.archive.directory);
        let archive = archive::open(place, config)?;
        if let Some(cluster) = &self.cluster {
            let known = archive.clusters(&archive.manifest()?)?;
            if !known.contains(&cluster.to_string()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let why = format!("the archive has nothing of {cluster}; it has: {known}");
                return Err(BadInput(why).into());
            }
        }
        Ok(archive)
    }
}

fn now() -> Timestamp {
    Timestamp::new(jiff::Timestamp::now().as_second())
}

/// Does it, and says what came of it.
///
/// # Errors
/// If it cannot be done; then the archive is as it was.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    match args.what {
        What::Rebuild { place } => {
            let archive = place.open(&config)?;
            let work =
                tokio::task::spawn_blocking(move || rebuild(&archive, &place, &config, &shutdown));
            work.await?
        }
    }
}

fn rebuild(
    archive: &Archive,
    place: &Place,
    config: &Config,
    shutdown: &Shutdown,
) -> anyhow::Result<Outcome> {
    let progress = Progress::new("rebuilding");
    let lock = archive.lock(PATIENCE, || {
        progress.say("another steward is changing the archive; waiting for it");
    })?;
    let cluster = place.cluster.as_ref().map(ToString::to_string);
    let order = rebuild::Order {
        cluster: cluster.as_deref(),
        now: now(),
        retention: Retention::of(&config.archive),
        stop: &|| shutdown.is_due(),
    };
    let done = rebuild::run(archive, lock, &order, &progress);
    progress.end();
    match done {
        Ok((done, _)) => Ok(Outcome::done(done.iter().map(rebuilt).collect::<String>())),
        Err(KeepError::Stopped) => Err(Interrupted.into()),
        Err(error) => Err(error.into()),
    }
}

fn rebuilt(done: &Rebuilt) -> String {
    let Rebuilt { cluster, runs, carried, unreadable, days, dropped } = done;
    let mut text = format!("{cluster}: {runs} runs computed anew, in {days} days\n");
    if *carried > 0 {
        text += &format!("  {carried} runs stay as they were: their rows are not kept\n");
    }
    if *unreadable > 0 {
        text += &format!("  {unreadable} runs cannot be read from their rows and are left out\n");
    }
    text + &dropped.line()
}
