//! Charges: what jobs used by the archive goes into the ledger, day by day, to be held against what Slurm counts.

use std::collections::BTreeMap;

use steward_common::bank::charge::{Charges, Days};
use steward_common::bank::{Account, Day, Units};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::Bank;
use crate::archive::{self, Archive, ArchiveError};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Entries that were added.
    pub entries: usize,
    /// Runs that Slurm gave no billing weight, and that are not charged.
    pub unbilled: u64,
}

/// What accounts used on each day, by the archive.
#[derive(Debug, Default)]
struct Used {
    days: BTreeMap<String, Days>,
    unbilled: u64,
}

impl Bank {
    /// Charges what jobs used up to the end of yesterday (UTC). What was charged before is corrected by the difference,
    /// so this may be done as often as one likes.
    ///
    /// # Errors
    /// If the archive or the store cannot be read or written.
    pub async fn charge(&self) -> anyhow::Result<Charged> {
        self.charge_at(super::now()).await
    }

    /// The same at a moment: up to the last midnight before it.
    ///
    /// # Errors
    /// As [`Bank::charge`].
    pub async fn charge_at(&self, now: Timestamp) -> anyhow::Result<Charged> {
        let mut from: BTreeMap<String, Timestamp> = BTreeMap::new();
        for (name, account) in self.store.accounts().await? {
            let charges = Charges::of(&self.store.entries(&name).await?);
            from.insert(name, begin(&account, charges.since));
        }
        let clusters: Vec<String> =
            self.slurm.clusters().await?.into_iter().map(|place| place.name).collect();
        let config = std::sync::Arc::clone(&self.config);
        let until = Timestamp::new(now.get().div_euclid(DAY) * DAY);
        let work = tokio::task::spawn_blocking(move || -> anyhow::Result<Used> {
            let archive = archive::open(&config.archive.directory, &config)?;
            Ok(used(&archive, &clusters, &from, until)?)
        });
        let used = work.await??;
        let mut charged = Charged { unbilled: used.unbilled, ..Charged::default() };
        if self.dry {
            return Ok(charged);
        }
        let author = self.author("charge");
        for (name, days) in &used.days {
            let plan = |entries: &[_]| Charges::of(entries).corrections(days);
            charged.entries += self.store.add_entries(name, &author, plan).await?;
        }
        Ok(charged)
    }
}

impl Bank {
    /// A cluster of which the archive does not have all of the day before this one (UTC).
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn not_collected(&self, day: Day) -> anyhow::Result<Option<String>> {
        let to = Timestamp::new(day.number().saturating_mul(DAY));
        let Some(last) = Window::new(Timestamp::new(to.get() - DAY), to) else { return Ok(None) };
        let places = self.slurm.clusters().await?;
        let config = std::sync::Arc::clone(&self.config);
        let work = tokio::task::spawn_blocking(move || -> anyhow::Result<Option<String>> {
            let manifest = archive::open(&config.archive.directory, &config)?.manifest()?;
            let has =
                |name: &str| manifest.clusters.get(name).is_some_and(|own| own.covered.holds(last));
            Ok(places.into_iter().map(|place| place.name).find(|name| !has(name)))
        });
        work.await?
    }
}

/// From when on an account is charged: the first day of its proposal, or when its usage began anew.
fn begin(account: &Account, since: Option<Timestamp>) -> Timestamp {
    let first = Timestamp::new(account.start.number().saturating_mul(DAY));
    since.map_or(first, |since| since.max(first))
}

fn used(
    archive: &Archive,
    clusters: &[String],
    from: &BTreeMap<String, Timestamp>,
    until: Timestamp,
) -> Result<Used, ArchiveError> {
    let earliest = from.values().min().copied();
    let Some(window) = earliest.and_then(|from| Window::new(from, until)) else {
        return Ok(Used::default());
    };
    archive.consistently(|manifest| {
        let mut all = Used::default();
        for cluster in clusters {
            let complete =
                archive.billed(manifest, cluster, window, &mut |account, held, weight| {
                    let Some(begin) = from.get(account) else { return };
                    let own = Window::new(*begin, until).and_then(|own| own.overlap(held));
                    let Some(own) = own else { return };
                    match weight {
                        Some(weight) => all.add(account, cluster, own, weight),
                        None => all.unbilled += 1,
                    }
                })?;
            if !complete {
                return Ok(None);
            }
        }
        Ok(Some(all))
    })
}

impl Used {
    /// A run, by the days that it touches.
    fn add(&mut self, account: &str, cluster: &str, held: Window, weight: u64) {
        let days = self.days.entry(account.to_owned()).or_default();
        let mut from = held.from().get();
        while from < held.to().get() {
            let day = from.div_euclid(DAY);
            let to = held.to().get().min((day + 1).saturating_mul(DAY));
            let seconds = i128::from(to - from) * i128::from(weight);
            let units = Units::new(i64::try_from(seconds).unwrap_or(i64::MAX));
            if let Some(day) = Day::new(day) {
                let sum = days.entry((cluster.to_owned(), day)).or_default();
                *sum = [*sum, units].into_iter().sum();
            }
            from = to;
        }
    }
}

#[cfg(test)]
mod tests;
