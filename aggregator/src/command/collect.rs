//! `steward collect`.

use std::sync::Arc;
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::{BadInput, Interrupted, Outcome};
use crate::analyze::ask::Asked;
use crate::analyze::days;
use crate::archive;
use crate::collect::site::{self, Order};
use crate::collect::{CollectError, Collected};
use crate::config::{Config, Location};
use crate::output::number::so_many;
use crate::output::progress::Progress;
use crate::shutdown::Shutdown;
use crate::source::slurm::command::CommandError;
use crate::source::slurm::sacct::Stop;

/// How long to wait for another collection.
const PATIENCE: Duration = Duration::from_secs(600);

/// Bring what Slurm's database knows into the archive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Asks sacct for what has changed since the last time; gaps are filled. Safe to
run at any time: it can be interrupted, and what is in the archive already is
not added again. Exit codes: 0 done, 1 failed, 3 some clusters failed.

Examples:
  steward collect                  today, yesterday, all since the last time
  steward collect --days 365       a year, for the first time
  steward collect --no-summary     for cron: quiet unless something is wrong")]
pub struct Args {
    /// Today and this many days before [default: collect.days].
    #[arg(long, short, value_name = "N")]
    days: Option<u16>,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
    /// Sum up the days that were collected (the default).
    #[arg(long, overrides_with = "no_summary")]
    summary: bool,
    /// Only collect.
    #[arg(long)]
    no_summary: bool,
    /// Calls of sacct at a time [default: slurm.parallel].
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    n_parallel: Option<u16>,
    /// Only this cluster.
    #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
    cluster: Option<ClusterName>,
}

/// Collects, and says what came of it.
///
/// # Errors
/// If nothing could be collected.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let place = args.data_dir.clone().unwrap_or_else(|| config.archive.directory.clone());
    let archive = archive::open(&place, &config)?;
    if let Some(days) = args.days {
        // Those that cannot be summed up at the end are refused before sacct is asked for them.
        days::days(None, None, days, jiff::Timestamp::now(), &config.zone())
            .map_err(|error| BadInput(error.to_string()))?;
    }
    let days = args.days.map_or(config.collect.days, u32::from);
    let stop = shutdown.clone();
    let order = Order {
        days,
        parallel: args.n_parallel.map_or(config.slurm.parallel, usize::from),
        cluster: args.cluster.clone(),
        now: Timestamp::new(jiff::Timestamp::now().as_second()),
        zone: config.zone(),
        stop: Arc::new(move || stop.is_due()),
    };
    let work = {
        let (config, archive) = (config.clone(), archive.clone());
        tokio::task::spawn_blocking(move || {
            let progress = Progress::new("collecting");
            let lock = archive.lock_unless(PATIENCE, &*order.stop, || {
                progress.say("another steward is changing the archive; waiting for it");
            })?;
            let Some(lock) = lock else { return Err(CommandError::Stopped.into()) };
            let done = site::collect(&config, &archive, &order, lock, &progress);
            progress.end();
            done
        })
    };
    let done = match work.await? {
        Err(error) if error.is_stop() => return Err(Interrupted.into()),
        done => done?,
    };
    if done.iter().any(|(_, end)| end.as_ref().is_err_and(CollectError::is_stop)) {
        return Err(Interrupted.into());
    }
    let mut text = String::new();
    let mut failed = 0;
    for (cluster, end) in &done {
        match end {
            Ok(collected) => {
                // Standard output may go nowhere, as by cron.
                if collected.malformed > 0 {
                    tracing::warn!(%cluster, texts = collected.malformed, "could not be read");
                }
                text += &line(collected);
            }
            Err(error) => {
                failed += 1;
                if done.len() > 1 {
                    tracing::error!(%cluster, %error, "could not be collected");
                }
                let kept = if error.is_kept() { "collected, but" } else { "nothing was kept:" };
                text += &format!("{cluster}: failed, {kept} {error}\n");
            }
        }
    }
    if failed == done.len() {
        anyhow::bail!("{}", text.trim_end());
    }
    if !args.no_summary {
        let options = crate::analyze::options::Options::of_days(days, args.cluster.as_ref());
        let stop: Stop = Arc::new(move || shutdown.is_due());
        let summary = tokio::task::spawn_blocking(move || {
            super::analyze::text(Asked::here(options), &archive, &config, &stop)
        });
        match summary.await? {
            Ok(summary) => text += &format!("\n{summary}"),
            // An archive without jobs yet has nothing to sum up.
            Err(error) => text += &format!("{error:#}\n"),
        }
    }
    Ok(if failed > 0 { Outcome::in_part(text) } else { Outcome::done(text) })
}

fn line(collected: &Collected) -> String {
    let Collected { cluster, rows, runs, malformed, odd, days, measured, .. } = collected;
    let mut text = format!(
        "{cluster}: {} new or changed, of {} in {}\n",
        so_many(*runs, "run"),
        so_many(*rows, "row"),
        so_many(*days, "day")
    );
    if *malformed > 0 {
        let kept = if collected.keeps_raw { "kept in raw" } else { "not kept (archive.raw)" };
        let they = if *malformed == 1 { "it is" } else { "they are" };
        let texts = so_many(*malformed, "text");
        text += &format!("  {texts} could not be read; {they} {kept}\n");
    }
    if *odd > 0 {
        let are = if *odd == 1 { "is" } else { "are" };
        text += &format!("  {} could not be read and {are} absent\n", so_many(*odd, "value"));
    }
    if *measured > 0 {
        text += &format!("  {} with what agents measured\n", so_many(*measured, "run"));
    }
    if collected.is_deaf {
        text += "  Prometheus did not answer: the rest is without what agents measured\n";
    }
    text += &collected.dropped.line();
    for example in &collected.examples {
        text += &format!("    {example}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn days_have_the_same_range_wherever_they_are_given() {
        for command in ["collect", "analyze", "jobs"] {
            let parse = |days: &str| Cli::try_parse_from(["steward", command, "--days", days]);
            let refused = parse("99999999").unwrap_err().to_string();
            assert!(refused.contains("not in 0..=65535"), "{command}: {refused}");
            assert!(parse("365").is_ok(), "{command}");
        }
    }
}
