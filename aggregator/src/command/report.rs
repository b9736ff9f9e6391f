//! `steward report`.

use std::sync::Arc;
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::{BadInput, Outcome};
use crate::archive;
use crate::config::{Config, Location};
use crate::evaluate::window::Period;
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::output::sheet::{Cell, Document};
use crate::report::{Desk, Question, list};
use crate::shutdown::Shutdown;

/// Show a report: who uses what, who waits, who wastes, what a rule found.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward report                            which reports there are
  steward report usage-overview -d 30       clusters and partitions, the last 30 days
  steward report usage-by-account -S 2026-10-01 -E 2026-11-01 --format csv
  steward report longest-queued --min-days 1
  steward report waste --partition gpu      billing hours wasted, by user and account
  steward report low-cpu-efficiency         what a rule found, a line for each user
  steward report low-cpu-efficiency --jobs  the same, a line for each job
  steward report most-gpus --no-live        without asking slurmctld and Prometheus

Hours of usage-overview, usage-by-account and jobs-overview are those held within the window, as
in steward analyze; those of waste, of rules and of single jobs are of whole jobs. Running jobs
count up to now; with --no-live, up to the last collection.

It ends with 1 if there are no jobs in the window, and with 3 if a source did not answer.")]
pub struct Args {
    /// A report, a rule, or an instance of a rule as it is named in the settings; without it, or
    /// with `list`, all of them are listed.
    name: Option<String>,
    #[command(flatten)]
    period: Period,
    /// Only jobs of this cluster; may be given several times.
    #[arg(long, value_name = "NAME")]
    cluster: Vec<ClusterName>,
    /// Only jobs in this partition; may be given several times.
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// Of longest-queued: only jobs that have waited for so many days.
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    min_days: f64,
    /// Of a rule: a line for each job instead of each finding.
    #[arg(long)]
    jobs: bool,
    /// Ask neither slurmctld nor Prometheus: what the archive says, alone.
    #[arg(long)]
    no_live: bool,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How many lines of each table; 0 is all. Without it people see the top of each, and json and
    /// csv have all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
}

/// Makes the report.
///
/// # Errors
/// If there is no such report, or nothing to show.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let format = if args.json { Format::Json } else { args.format };
    let Some(name) = args.name.filter(|name| name != "list") else {
        let width = (format == Format::Table).then(|| Screen::of_stdout().width);
        return Ok(Outcome::done(text(&list(&config, width)?, format, args.top)));
    };
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let question = Question {
        name,
        window: args.period.window(config.evaluate.days, now, &config.zone())?,
        now,
        clusters: args.cluster,
        partitions: args.partition,
        waited: Duration::try_from_secs_f64(args.min_days * 86_400.0)
            .map_err(|_| BadInput("--min-days must be a number of days, 0 or more".to_owned()))?,
        jobs: args.jobs,
        live: !args.no_live,
    };
    let place = args.data_dir.unwrap_or_else(|| config.archive.directory.clone());
    let archive = archive::open(&place, &config)?;
    let (config, stop) = (Arc::new(config), shutdown.clone());
    let work = tokio::task::spawn_blocking(move || {
        let zone = config.zone();
        let desk = Desk { config: &config, archive: &archive, zone, shutdown: &stop };
        let mut troubles = Vec::new();
        let document = desk.document(&question, &mut troubles);
        document.map(|document| (document, troubles))
    });
    let (mut document, troubles) = shutdown.or(work).await???;
    document.facts.push(("troubles", Cell::Count(troubles.len() as u64)));
    for trouble in &troubles {
        tracing::warn!("{trouble}");
    }
    let text = text(&document, format, args.top);
    Ok(if troubles.is_empty() { Outcome::done(text) } else { Outcome::in_part(text) })
}

/// One table alone needs no line with its name before it.
fn text(document: &Document, format: Format, top: Option<usize>) -> String {
    let screen = Screen::of_stdout();
    match (format, document.sheets.as_slice()) {
        (Format::Csv, [sheet]) => format::write_sheet(document, sheet, format, screen, top),
        _ => format::write(document, format, screen, top),
    }
}
