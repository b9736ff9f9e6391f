//! Notices: who hears of what was found, how often, and never twice.
//!
//! ```text
//! Judged ─ [`digest::candidates`] ─> Candidate ─ [`plan::plan`] ─> Plan ─ [`run::Run`] ─> store ─ [`deliver`] ─> mail
//!                                     (held back: [`restraint`])
//! ```
//!
//! A mail is recorded before it is sent. Two programs on one store never send the same.

pub mod deliver;
pub mod digest;
pub mod plan;
pub mod restraint;
pub mod run;
mod trouble;
pub mod workday;

use std::time::Duration;

use jiff::Timestamp as Moment;
use jiff::tz::TimeZone;
use steward_common::rule::Instance;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::config::Config;
use crate::evaluate::Judged;
use crate::store::Store;
use plan::Plan;
use restraint::{History, Restraint};
use workday::Calendar;

/// How far back notices are looked at, at least: longer than any sensible quiet time.
const YEARS: Duration = Duration::from_secs(3 * 366 * 86_400);

/// Why today is no day for mail; `None` if it is one.
///
/// # Errors
/// If the file of holidays cannot be read.
pub fn no_day(config: &Config, now: Timestamp) -> anyhow::Result<Option<String>> {
    let calendar = Calendar::open(&config.notices)?;
    let today = Moment::from_second(now.get())?.to_zoned(config.zone()).date();
    Ok(calendar.why_not(today).map(|why| why.to_string()))
}

/// Decides who is told of what was found. Without a store nobody was ever told.
///
/// # Errors
/// If the store or the file of holidays cannot be read.
pub async fn prepare(
    config: &Config,
    store: Option<&Store>,
    (judged, instances): (&[Judged], &[Instance]),
    window: Window,
    quiet: Option<Duration>,
    now: Timestamp,
) -> anyhow::Result<Plan> {
    let since = now.get().saturating_sub(i64::try_from(YEARS.as_secs()).unwrap_or(i64::MAX));
    let (history, exemptions) = match store {
        Some(store) => (
            History::of(&store.notices(Timestamp::new(since)).await?),
            store.exemptions_at(now).await?,
        ),
        None => (History::default(), Vec::new()),
    };
    let restraint = Restraint {
        config: &config.notices,
        quiet,
        day: no_day(config, now)?,
        history: &history,
        exemptions: &exemptions,
        now,
    };
    let zone = config.zone();
    let last = Timestamp::new(window.to().get().saturating_sub(1));
    let (from, to) = (date(window.from(), &zone), date(last, &zone));
    Ok(plan::plan(digest::candidates(judged, instances), &restraint, &from, &to))
}

fn date(at: Timestamp, zone: &TimeZone) -> String {
    Moment::from_second(at.get())
        .map_or_else(|_| String::new(), |at| at.to_zoned(zone.clone()).date().to_string())
}

#[cfg(test)]
mod tests;
