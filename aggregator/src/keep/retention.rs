//! How long each layer is kept.

use std::time::Duration;

use steward_common::time::Timestamp;

use crate::archive::{Archive, ArchiveError, Change, Day};
use crate::config;
use crate::output::number::so_many;

/// How long each layer is kept; for ever if not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Rows as sacct gave them, by the day they were asked for.
    pub raw: Option<Duration>,
    /// Runs, by the day of their end.
    pub processed: Option<Duration>,
}

/// What went because it was old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Days of `processed`.
    pub days: usize,
    /// Files of `raw`.
    pub files: usize,
}

impl Dropped {
    /// A line that says so; nothing if nothing went.
    #[must_use]
    pub fn line(self) -> String {
        match self {
            Dropped { days: 0, files: 0 } => String::new(),
            Dropped { days, files } => {
                let (days, files) = (so_many(days, "day"), so_many(files, "file"));
                format!("  let go as too old: {days} of jobs, {files} of rows\n")
            }
        }
    }
}

impl Retention {
    /// As configured.
    #[must_use]
    pub fn of(config: &config::Archive) -> Retention {
        Retention {
            raw: config.retention_raw.map(|span| span.0),
            processed: config.retention_processed.map(|span| span.0),
        }
    }

    /// Whether runs that ended on this day go.
    #[must_use]
    pub fn drops_day(&self, day: Day, now: Timestamp) -> bool {
        self.processed.is_some_and(|kept| is_over(day, kept, now))
    }

    /// Takes old days of a cluster out of the change.
    pub fn drop_days(&self, change: &mut Change, cluster: &str, now: Timestamp) -> usize {
        let Some(entry) = change.manifest.clusters.get_mut(cluster) else { return 0 };
        let before = entry.days.len();
        entry.days.retain(|day, _| !self.drops_day(*day, now));
        before - entry.days.len()
    }

    /// Deletes old raw files of a cluster. To be done when what is new counts.
    ///
    /// # Errors
    /// If one cannot be deleted.
    pub fn drop_raw(
        &self,
        archive: &Archive,
        cluster: &str,
        now: Timestamp,
    ) -> Result<usize, ArchiveError> {
        let Some(kept) = self.raw else { return Ok(0) };
        let mut dropped = 0;
        for file in archive.raw_files(cluster, u64::MAX)? {
            if is_over(file.day, kept, now) {
                archive.shelf().delete(&file.item.name)?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }
}

/// Whether all of the day is longer ago than that.
fn is_over(day: Day, kept: Duration, now: Timestamp) -> bool {
    day.end() <= now.before(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_goes_when_all_of_it_is_old() {
        let day: Day = "2026-11-16".parse().unwrap();
        let retention = Retention { processed: Some(Duration::from_secs(7 * 86_400)), raw: None };
        let at = |text: &str, more| {
            let day: Day = text.parse().unwrap();
            day.start().after(Duration::from_secs(more))
        };
        assert!(!retention.drops_day(day, at("2026-11-23", 86_399)));
        assert!(retention.drops_day(day, at("2026-11-24", 0)));
        assert!(!Retention::default().drops_day(day, at("2036-11-24", 0)));
    }
}
