//! `steward import`.

mod jds;
mod violations;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::{BadInput, Interrupted, Outcome};
use crate::archive;
use crate::config::{Config, Location, Zone};
use crate::keep::import::{self, Taken};
use crate::keep::retention::Retention;
use crate::keep::{KeepError, rebuild};
use crate::output::number::so_many;
use crate::output::progress::Progress;
use crate::shutdown::Shutdown;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Take over the archive, the settings or the notices of another program.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward collect --days 90                                      first what Slurm's database still has
  steward import slurm-usage /data/slurm-usage --cluster tuxedo  then what only slurm-usage has
  steward import jds config.yaml                                 Job Defense Shield's alerts as rules
  steward import jds config.yaml --output rules.toml             the same into a file that is new
  steward import jds-violations /var/spool/jds/violations        whom it told when, so that nobody hears twice")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take over the jobs that slurm-usage has in DIR/processed.
    ///
    /// Jobs that this archive has already are left as they are, and so are jobs that had not ended. slurm-usage wrote
    /// 0 where it knew nothing; here that is absent. It does not have the numbers of array tasks, so theirs stand for
    /// them (2147483648 and up) until sacct tells of the same jobs. Where a figure comes from is in cpu_source and
    /// memory_source: import. The jobs also go into raw, so that a rebuild keeps them.
    SlurmUsage {
        /// slurm-usage's data directory.
        #[arg(value_name = "DIR")]
        from: PathBuf,
        /// The cluster whose jobs they are.
        #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
        cluster: ClusterName,
        /// The zone of the times in it [default: time_zone of the configuration].
        ///
        /// slurm-usage stores what the clocks of its machine said and marks it as UTC. This says which clocks.
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<Zone>,
        /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
        #[arg(long, value_name = "PLACE")]
        data_dir: Option<Location>,
    },
    /// Write the alerts of Job Defense Shield as rules for steward.toml.
    ///
    /// The settings go to standard output or to a file, everything that could not be taken over is listed with its
    /// line and the reason, on standard error where the settings are on standard output. Thresholds come over in
    /// Steward's units, and what is left out means what it meant there. Ends with 3 if something could not be taken
    /// over, which mail settings always are.
    Jds {
        /// Its configuration.
        #[arg(value_name = "CONFIG.yaml")]
        from: PathBuf,
        /// Where to write the settings; a file that is there is left as it is.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// One JSON object with the settings (toml) and what could not be taken over (left).
        #[arg(long)]
        json: bool,
    },
    /// Take over whom Job Defense Shield told when, so that quiet times, calendar and ladder carry over.
    ///
    /// DIR is its violation-logs-path, with a directory for each alert and a file for each user. Configure the rules
    /// first (steward import jds): a notice counts for the instances of the same cluster and partitions. A second
    /// import adds nothing. Rows that cannot be read are named; it then ends with 3, and the others are taken over.
    JdsViolations {
        /// Its violation-logs-path.
        #[arg(value_name = "DIR")]
        from: PathBuf,
        /// The zone of the times in it [default: time_zone of the configuration].
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<Zone>,
        /// Only say what would be taken over.
        #[arg(long)]
        dry_run: bool,
        /// One JSON object, which names all that could not be taken over.
        #[arg(long)]
        json: bool,
    },
}

/// Takes it over, and says what came of it.
///
/// # Errors
/// If it cannot be done; then the archive is as it was.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let (from, cluster, time_zone, data_dir) = match args.what {
        What::SlurmUsage { from, cluster, time_zone, data_dir } => {
            (from, cluster, time_zone, data_dir)
        }
        What::Jds { from, output, json } => return jds::run(&from, output.as_deref(), json),
        What::JdsViolations { from, time_zone, dry_run, json } => {
            let zone = time_zone.map_or_else(|| config.zone(), |zone| zone.0);
            let how = violations::How { dry_run, json };
            return violations::run(&from, zone, how, &config).await;
        }
    };
    let place = data_dir.unwrap_or_else(|| config.archive.directory.clone());
    let archive = archive::open(&place, &config)?;
    let zone = time_zone.map_or_else(|| config.zone(), |zone| zone.0);
    let Some(zone) = zone.iana_name().map(str::to_owned) else {
        let why = "this machine's time zone has no name: give --time-zone";
        return Err(BadInput(why.to_owned()).into());
    };
    let work = tokio::task::spawn_blocking(move || -> anyhow::Result<Outcome> {
        let progress = Progress::new("taking over");
        let lock = archive.lock(PATIENCE, || {
            progress.say("another steward is changing the archive; waiting for it");
        })?;
        let cluster = cluster.to_string();
        let order = import::Order {
            from: &from,
            cluster: &cluster,
            zone: &zone,
            rebuild: rebuild::Order {
                cluster: Some(&cluster),
                now: Timestamp::new(jiff::Timestamp::now().as_second()),
                retention: Retention::of(&config.archive),
                stop: &|| shutdown.is_due(),
            },
        };
        let done = import::run(&archive, lock, &order, &progress);
        progress.end();
        match done {
            Ok((taken, _)) => Ok(Outcome::done(text(&taken))),
            Err(KeepError::Stopped) => Err(Interrupted.into()),
            Err(error) => Err(error.into()),
        }
    });
    work.await?
}

fn text(taken: &Taken) -> String {
    let Taken { runs, known, open, unreadable, unwanted, dropped } = taken;
    let were = if *runs == 1 { "was" } else { "were" };
    let mut text = format!("{} {were} taken over\n", so_many(*runs, "run"));
    for (count, one, several) in [
        (known, "run is here already", "runs are here already"),
        (
            open,
            "had not ended when slurm-usage saw it last",
            "had not ended when slurm-usage saw them last",
        ),
        (
            unwanted,
            "is of a forgotten user or older than archive.retention_processed",
            "are of forgotten users or older than archive.retention_processed",
        ),
        (
            unreadable,
            "does not say which run it is and was left out",
            "do not say which run they are and were left out",
        ),
    ] {
        match count {
            0 => {}
            1 => text += &format!("  1 {one}\n"),
            _ => text += &format!("  {count} {several}\n"),
        }
    }
    text + &dropped.line()
}
