//! `steward audit`.

use std::time::Duration;

use steward_common::time::Timestamp;

use super::Outcome;
use crate::config::Config;
use crate::output::exemptions;
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;

/// List who did what to whom: exemptions and cancellations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is ever removed from this log.

Examples:
  steward audit                      the last 30 days
  steward audit --days 365 --json    a year, for a program")]
pub struct Args {
    /// How many days back.
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Lists.
///
/// # Errors
/// If the store cannot be read.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let since = now.before(Duration::from_secs(u64::from(args.days) * 86_400));
    let work = async {
        let store = Store::at(config.store()).await?;
        let list = store.audited(since).await;
        store.close().await;
        list
    };
    let document = exemptions::audit(shutdown.or(work).await??, &config.zone());
    let format = if args.json { Format::Json } else { Format::Table };
    Ok(Outcome::done(format::write(&document, format, Screen::of_stdout(), Some(0))))
}
