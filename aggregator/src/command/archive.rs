//! `steward archive`.

mod forget_user;
mod rows;

use std::time::Duration;

use clap::Subcommand;
use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::{BadInput, Interrupted, Outcome};
use crate::archive::files::Listed;
use crate::archive::lock::Lock;
use crate::archive::{self, Archive, ArchiveError};
use crate::config::{Config, Location};
use crate::keep::KeepError;
use crate::keep::rebuild::{self, Rebuilt};
use crate::keep::retention::Retention;
use crate::output::number::so_many;
use crate::output::progress::Progress;
use crate::shutdown::Shutdown;
use forget_user::Wish;
use rows::Job;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Look after the archive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward archive rebuild             compute all jobs anew from the rows that sacct gave
  steward archive rows 4711           what sacct told of a job, each time that it told something new
  steward archive files --json        which files count, for DuckDB or Spark
  steward archive forget-user alice   all jobs of a user go, for good")]
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
    /// Remove all jobs of a user, for good, and do not collect them again.
    ///
    /// Both layers are written anew without the user's jobs, all at once. Jobs that the user submits from now on are
    /// kept again. What the store has of the user goes too, but for bookkeeping: notices, mails, cancellations; what
    /// stays is told. Backups of the archive, Slurm's own database, and logs are not touched.
    ForgetUser {
        /// The user's name as `steward jobs` shows it.
        #[arg(value_name = "NAME")]
        user: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show what sacct told of a job: its rows and those of its steps, field by field.
    ///
    /// Each time that the rows had changed they were kept; the oldest come first. Fields that were empty are left out.
    Rows {
        /// The job as tables show it: 4711, 17_3 for a task of an array, 22+1 for a part of a heterogeneous job.
        #[arg(value_name = "JOB")]
        job: Job,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List the files that count, for programs that read the archive themselves.
    ///
    /// Other files may lie beside them while something is being changed, or after a crash.
    Files {
        /// As JSON.
        #[arg(long)]
        json: bool,
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
    let work = tokio::task::spawn_blocking(move || match args.what {
        What::Rebuild { place } => rebuild(&place.open(&config)?, &place, &config, &shutdown),
        What::ForgetUser { user, yes, json, place } => {
            let wish = Wish { user: &user, yes, json, place: &place };
            let handle = tokio::runtime::Handle::current();
            forget_user::run(&place.open(&config)?, &wish, &config, &shutdown, &handle)
        }
        What::Rows { job, json, place } => {
            let cluster = place.cluster.as_ref().map(ToString::to_string);
            rows::run(&place.open(&config)?, cluster.as_deref(), &job, json)
        }
        What::Files { json, place } => files(&place.open(&config)?, &place, json),
    });
    work.await?
}

fn lock(archive: &Archive, progress: &Progress) -> Result<Lock, ArchiveError> {
    archive.lock(PATIENCE, || {
        progress.say("another steward is changing the archive; waiting for it");
    })
}

fn rebuild(
    archive: &Archive,
    place: &Place,
    config: &Config,
    shutdown: &Shutdown,
) -> anyhow::Result<Outcome> {
    let progress = Progress::new("rebuilding");
    let lock = lock(archive, &progress)?;
    let cluster = place.cluster.as_ref().map(ToString::to_string);
    let order = rebuild::Order {
        cluster: cluster.as_deref(),
        now: now(),
        retention: Retention::of(&config.archive),
        stop: &|| shutdown.is_due(),
    };
    let done = rebuild::run(archive, lock, &order, &progress);
    progress.end();
    let (done, _) = done.map_err(failed)?;
    Ok(Outcome::done(done.iter().map(rebuilt).collect::<String>()))
}

fn failed(error: KeepError) -> anyhow::Error {
    match error {
        KeepError::Stopped => Interrupted.into(),
        KeepError::Archive(error) => error.into(),
    }
}

fn rebuilt(done: &Rebuilt) -> String {
    let Rebuilt { cluster, runs, carried, unreadable, days, dropped } = done;
    let run = |count: &u64| so_many(*count, "run");
    let days = so_many(*days, "day");
    let mut text = format!("{cluster}: {} computed anew, in {days}\n", run(runs));
    match carried {
        0 => {}
        1 => text += "  1 run stays as it was: its rows are not kept\n",
        _ => text += &format!("  {} stay as they were: their rows are not kept\n", run(carried)),
    }
    match unreadable {
        0 => {}
        1 => text += "  1 run cannot be read from its rows and is left out\n",
        _ => {
            let runs = run(unreadable);
            text += &format!("  {runs} cannot be read from their rows and are left out\n");
        }
    }
    text + &dropped.line()
}

fn files(archive: &Archive, place: &Place, json: bool) -> anyhow::Result<Outcome> {
    let cluster = place.cluster.as_ref().map(ToString::to_string);
    let (generation, files) = archive.files(cluster.as_deref())?;
    if json {
        let answer = serde_json::json!({ "generation": generation, "files": files });
        return Ok(Outcome::done(serde_json::to_string_pretty(&answer)? + "\n"));
    }
    let mut text = format!("{:>10} {:>12} {:>6}  FILE\n", "ROWS", "BYTES", "GEN");
    for Listed { path, rows, bytes, generation, .. } in &files {
        text += &format!("{rows:>10} {bytes:>12} {generation:>6}  {path}\n");
    }
    Ok(Outcome::done(text))
}
