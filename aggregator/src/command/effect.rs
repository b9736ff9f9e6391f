//! `steward effect`.

use std::sync::Arc;
use std::time::Duration;

use steward_common::rule::{Instance, find};
use steward_common::time::Timestamp;

use super::{BadInput, Outcome};
use crate::archive;
use crate::config::Config;
use crate::effect::{self, Question};
use crate::output::effect as shown;
use crate::output::format::{self, Format};
use crate::output::progress::Progress;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::notices::Notice;

/// Show what came of notices: what users wasted before the first one and after it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
As long before the first notice as after it, in windows of evaluate.days as they are judged when notices are given, from the
archive alone. The day of the notice counts nowhere, a job where it ended. A change of less than a tenth is none; a user without
jobs since has not improved; what was not archived or measured is unknown.
Exit codes: 0 done, 1 failed, 2 bad input, 3 something could not be read.

Examples:
  steward effect                                   first notices of the last 90 days
  steward effect --rule excess-cpu-memory          of one rule or instance
  steward effect --days 365 --json | jq .rules     sums of each rule, for a program")]
pub struct Args {
    /// Only of this rule, by the name of an instance or a rule's id.
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    /// First notices of this many days.
    #[arg(long, short, value_name = "N", default_value_t = 90,
        value_parser = clap::value_parser!(u16).range(1..=3660))]
    days: u16,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How many lines of each table; 0 is all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

/// Compares and shows.
///
/// # Errors
/// If the store or the archive cannot be read, or there is no such rule.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let since = now.before(Duration::from_secs(u64::from(args.days) * 86_400));
    let mut notices = match Store::existing(config.store()).await? {
        Some(store) => {
            let notices = store.notices(Timestamp::new(0)).await;
            store.close().await;
            notices?
        }
        None => Vec::new(),
    };
    let listed = config.rules.listed()?;
    let instances: Vec<Instance> = listed.into_iter().map(|one| one.instance).collect();
    if let Some(wanted) = &args.rule {
        let is = |notice: &Notice| notice.instance == *wanted || notice.rule == *wanted;
        let known = find(wanted).is_some()
            || instances.iter().any(|one| one.name == *wanted)
            || notices.iter().any(is);
        if !known {
            let why = format!("--rule {wanted}: there is no such rule; `steward rules` lists all");
            return Err(BadInput(why).into());
        }
        notices.retain(is);
    }
    let archive = archive::open(&config.archive.directory, &config)?;
    let config = Arc::new(config);
    let work = {
        let (config, shutdown) = (Arc::clone(&config), shutdown.clone());
        tokio::task::spawn_blocking(move || {
            let progress = Progress::counting("judging", "windows");
            let question = Question { notices: &notices, instances: &instances, since, now };
            let done = effect::run(&config, &archive, &question, &shutdown, &progress);
            progress.end();
            done
        })
    };
    let effect = work.await??;
    let document = shown::document(&effect, &config.cost, args.days, &config.zone());
    let format = if args.json { Format::Json } else { args.format };
    let text = format::write(&document, format, Screen::of_stdout(), args.top);
    if matches!(format, Format::Json | Format::Csv) {
        for trouble in &effect.troubles {
            tracing::warn!("{trouble}");
        }
    }
    Ok(if effect.troubles.is_empty() { Outcome::done(text) } else { Outcome::in_part(text) })
}
