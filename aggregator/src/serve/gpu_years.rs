//! The task that counts the GPU-years that were used this year, to stand beside what was granted.

use std::sync::PoisonError;

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use steward_common::intern::Names;
use steward_common::time;
use steward_common::window::Window;

use super::task::Setup;
use crate::archive::{self, Archive};
use crate::output::exporter::Years;

/// Seconds of 365 days.
const YEAR: f64 = 365.0 * 86_400.0;

/// Reads the runs of this year and notes what they held.
///
/// # Errors
/// If the archive cannot be read.
pub async fn run(setup: Setup) -> anyhow::Result<()> {
    let work = tokio::task::spawn_blocking(move || {
        let config = &setup.config;
        let archive = archive::open(&config.archive.directory, config)?;
        let used = used(&archive, Timestamp::now(), config.zone())?;
        *setup.counts.gpu_years.lock().unwrap_or_else(PoisonError::into_inner) = used;
        Ok(())
    });
    work.await?
}

/// GPU-years by cluster, of the calendar year so far. A cluster whose jobs hold no GPU has 0.
fn used(archive: &Archive, now: Timestamp, zone: TimeZone) -> anyhow::Result<Years> {
    let year = now.to_zoned(zone.clone()).year();
    let begin = civil::date(year, 1, 1).to_zoned(zone).context("the begin of the year")?;
    let seconds = |moment: Timestamp| time::Timestamp::new(moment.as_second());
    let mut years = Years::new();
    let Some(window) = Window::new(seconds(begin.timestamp()), seconds(now)) else {
        return Ok(years);
    };
    let mut names = Names::default();
    archive.rows(window, None, &mut names, &mut |rows, names| {
        for row in rows {
            let held = row.held().and_then(|held| held.overlap(window));
            #[allow(clippy::cast_precision_loss, reason = "seconds of a year")]
            let seconds = held.map_or(0.0, |held| held.seconds() as f64);
            let gpus = f64::from(row.gpus.unwrap_or(0));
            let key = (names.text(row.cluster).to_owned(), year);
            *years.entry(key).or_default() += gpus * seconds / YEAR;
        }
    })?;
    Ok(years)
}
