//! What runs were billed, for the bank.

use arrow_array::RecordBatch;
use steward_common::intern::Names;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::cells::{times, whole};
use super::manifest::Manifest;
use super::rows::interned;
use super::{Archive, ArchiveError, Day, Part};

const NAMES: &[&str] = &["account"];

const COLUMNS: &[&str] =
    &["account", "billing", "collected_at", "end_time", "is_complete", "start_time"];

/// Someone who takes runs: the account, the time in which it held something, and its billing weight, if Slurm said one.
pub type Take<'a> = &'a mut dyn FnMut(&str, Window, Option<u64>);

impl Archive {
    /// Shows `take` the runs of a cluster that held something in the window. Whether all of them were shown: if not, a
    /// writer was quicker, and what was shown does not count.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn billed(
        &self,
        manifest: &Manifest,
        cluster: &str,
        window: Window,
        take: Take<'_>,
    ) -> Result<bool, ArchiveError> {
        let Some(entry) = manifest.clusters.get(cluster) else { return Ok(true) };
        let days = entry.days.range(Day::of(window.from())..);
        let days = days.map(|(day, file)| (Part::Day(*day), *file));
        for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
            let Some(table) = self.open(cluster, part, file)? else { return Ok(false) };
            let began = table.least_time("start_time");
            if began.is_some_and(|least| least >= window.to()) {
                continue;
            }
            for batch in table.coded(COLUMNS, NAMES)? {
                add(&batch?, window, take);
            }
        }
        Ok(true)
    }
}

fn add(batch: &RecordBatch, window: Window, take: Take<'_>) {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    let mut names = Names::default();
    let nothing = names.intern("");
    let accounts = interned(batch, "account", &mut names, nothing);
    let complete = batch.column_by_name("is_complete").and_then(|column| column.as_boolean_opt());
    let (mut start, mut end) = (times(batch, "start_time"), times(batch, "end_time"));
    let (mut collected, mut billing) = (times(batch, "collected_at"), whole(batch, "billing"));
    for (place, account) in accounts.iter().enumerate() {
        let ended = complete.is_some_and(|column| column.is_valid(place) && column.value(place));
        let (start, end) = (start.next().flatten(), end.next().flatten());
        let collected = collected.next().flatten();
        let weight = billing.next().flatten().and_then(|weight| u64::try_from(weight).ok());
        let until: Option<Timestamp> = if ended { end } else { collected };
        let held = start.zip(until).and_then(|(start, until)| Window::new(start, until));
        if let Some(held) = held.and_then(|held| held.overlap(window)) {
            take(names.text(*account), held, weight);
        }
    }
}
