//! `steward notices`.

use jiff::Timestamp as Moment;
use jiff::ToSpan as _;
use steward_common::rule::find;
use steward_common::time::Timestamp;

use super::{BadInput, Outcome};
use crate::config::Config;
use crate::notice::workday::Calendar;
use crate::output::format::{self, Format};
use crate::output::notices;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::notices::Notice;

/// Show who was told of what, day by day, and which mails did not arrive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A line for each user with a mark for each day: X a notice, _ a workday without, blank a day on
which nothing is sent. Below it stand mails that were refused, and those of which nobody knows
whether they arrived because the program ended while it handed them over.

Examples:
  steward notices                            the last 60 days
  steward notices --rule excess-cpu-memory   of one rule or instance
  steward notices --days 365 --json          every notice, for a program")]
pub struct Args {
    /// Only of this rule, by the name of an instance or a rule's id.
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    /// Today and this many days before.
    #[arg(long, short, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u16).range(0..=3660))]
    days: u16,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Reads and draws.
///
/// # Errors
/// If the store or the file of holidays cannot be read, or there is no such rule.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let zone = config.zone();
    let last = Moment::now().to_zoned(zone.clone()).date();
    let first = last.checked_sub(i32::from(args.days).days())?;
    let from = Timestamp::new(first.to_zoned(zone.clone())?.timestamp().as_second());
    let calendar = Calendar::open(&config.notices)?;
    let read = async {
        let Some(store) = Store::existing(config.store()).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let all = (store.notices(from).await?, store.open_deliveries(from).await?);
        store.close().await;
        anyhow::Ok(all)
    };
    let (mut told, open) = shutdown.or(read).await??;
    if let Some(wanted) = &args.rule {
        let is = |notice: &Notice| notice.instance == *wanted || notice.rule == *wanted;
        let known = find(wanted).is_some()
            || config.rules.listed()?.iter().any(|one| one.instance.name == *wanted)
            || told.iter().any(is);
        if !known {
            let message =
                format!("--rule {wanted}: there is no such rule; `steward rules` lists all");
            return Err(BadInput(message).into());
        }
        told.retain(is);
    }
    let works = |date| calendar.is_workday(date);
    let mut document = notices::calendar(&told, (first, last), works, &zone);
    document.sheets.push(notices::open(&open, &zone));
    let format = if args.json { Format::Json } else { args.format };
    Ok(Outcome::done(format::write(&document, format, Screen::of_stdout(), Some(0))))
}
