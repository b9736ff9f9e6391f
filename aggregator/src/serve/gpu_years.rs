//! The task that counts the GPU-years that were used this year, to stand beside what was granted.

use std::sync::PoisonError;

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use steward_common::intern::Names;
use steward_common::summary::row::Row;
use steward_common::summary::scope::Detail;
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
    let (year, window) = year(now, zone)?;
    let Some(window) = window else { return Ok(Years::new()) };
    // A writer that is quicker changes what counts: then all is read again.
    archive.consistently(|manifest| {
        let (mut years, mut names) = (Years::new(), Names::default());
        let detail = Detail::Users;
        let all =
            archive.rows(manifest, window, None, detail, &mut names, &mut |rows, names| {
                add(&mut years, year, window, rows, names);
            })?;
        Ok(all.then_some(years))
    })
}

/// The calendar year of `now` on the site's clocks, and what has passed of it.
fn year(now: Timestamp, zone: TimeZone) -> anyhow::Result<(i16, Option<Window>)> {
    let year = now.to_zoned(zone.clone()).year();
    let begin = civil::date(year, 1, 1).to_zoned(zone).context("the begin of the year")?;
    let seconds = |moment: Timestamp| time::Timestamp::new(moment.as_second());
    Ok((year, Window::new(seconds(begin.timestamp()), seconds(now))))
}

fn add(years: &mut Years, year: i16, window: Window, rows: &[Row], names: &Names) {
    for row in rows {
        let held = row.held().and_then(|held| held.overlap(window));
        #[allow(clippy::cast_precision_loss, reason = "seconds of a year")]
        let seconds = held.map_or(0.0, |held| held.seconds() as f64);
        let gpus = f64::from(row.gpus.unwrap_or(0));
        let key = (names.text(row.cluster).to_owned(), year);
        *years.entry(key).or_default() += gpus * seconds / YEAR;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_held_of_the_year_counts_and_no_more() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let now: Timestamp = "2026-07-02T11:00:00Z".parse().unwrap();
        let (year, window) = year(now, zone).unwrap();
        let window = window.unwrap();
        assert_eq!(year, 2026);
        assert_eq!(window.from().get(), 1_767_222_000, "midnight in Berlin");
        let mut names = Names::default();
        let (one, none) = (names.intern("tuxedo"), names.intern("cpus"));
        let row = |cluster, start: i64, end: Option<i64>, gpus| Row {
            cluster,
            user: one,
            account: one,
            partition: one,
            qos: one,
            state: one,
            nodes: one,
            gpu_types: one,
            submit: time::Timestamp::new(start),
            start: Some(time::Timestamp::new(start)),
            end: end.map(time::Timestamp::new),
            collected: window.to(),
            elapsed: None,
            cpus: None,
            gpus,
            alloc_mem_mb: None,
            max_rss_mb: None,
            cpu_seconds: None,
            gpu_seconds: None,
            time_limit: None,
        };
        let (from, day) = (window.from().get(), 86_400);
        let rows = [
            // Two days, of which one is in the last year.
            row(one, from - day, Some(from + day), Some(4)),
            // Still runs.
            row(one, window.to().get() - day, None, Some(8)),
            row(one, from, Some(from + day), None),
            row(none, from, Some(from + day), Some(0)),
        ];
        let mut years = Years::new();
        add(&mut years, year, window, &rows, &names);
        let of = |name: &str| years[&(name.to_owned(), 2026)];
        assert!((of("tuxedo") - 12.0 / 365.0).abs() < 1e-12);
        assert_eq!(of("cpus"), 0.0);
    }
}
