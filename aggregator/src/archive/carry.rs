//! Runs that go from one file of `processed` into another as they stand.

use std::collections::HashMap;
use std::io::Write;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use steward_common::time::Timestamp;

use super::ArchiveError;
use super::cells::{texts, times, whole};
use super::processed::ProcessedWriter;
use super::read::{RunKey, Table};

/// Adds those runs of a file for which `keep` holds; it is shown each run and its user.
///
/// # Errors
/// If they cannot be read or written.
pub fn carry<W: Write + Send>(
    from: &Table,
    to: &mut ProcessedWriter<W>,
    mut keep: impl FnMut(RunKey, &str) -> bool,
) -> Result<(), ArchiveError> {
    for batch in from.batches(None, false)? {
        let batch = batch?;
        let wanted: BooleanArray =
            keys(&batch).map(|(key, user)| Some(key.is_some_and(|key| keep(key, user)))).collect();
        to.push_batch(&filter_record_batch(&batch, &wanted)?)?;
    }
    Ok(())
}

/// Each run of a batch and its user.
fn keys(batch: &RecordBatch) -> impl Iterator<Item = (Option<RunKey>, &str)> {
    let keys = whole(batch, "job_id_raw").zip(times(batch, "submit_time"));
    keys.zip(texts(batch, "user")).map(|((job, submit), user)| {
        (job.and_then(|job| u32::try_from(job).ok()).zip(submit), user.unwrap_or(""))
    })
}

/// Shows `visit` every run and its user.
///
/// # Errors
/// If the file cannot be read.
pub fn owners(table: &Table, mut visit: impl FnMut(RunKey, &str)) -> Result<(), ArchiveError> {
    for batch in table.batches(Some(&["job_id_raw", "submit_time", "user"]), false)? {
        for (key, user) in keys(&batch?) {
            if let Some(key) = key {
                visit(key, user);
            }
        }
    }
    Ok(())
}

/// Shows `visit` every run and the id that people see.
///
/// # Errors
/// If the file cannot be read.
pub fn shown(table: &Table, mut visit: impl FnMut(RunKey, &str)) -> Result<(), ArchiveError> {
    for batch in table.batches(Some(&["job_id_raw", "submit_time", "job_id"]), false)? {
        let batch = batch?;
        for ((key, _), id) in keys(&batch).zip(texts(&batch, "job_id")) {
            if let (Some(key), Some(id)) = (key, id) {
                visit(key, id);
            }
        }
    }
    Ok(())
}

/// Of each run the digest of its rows, and when it was collected.
///
/// # Errors
/// If the file cannot be read.
pub fn seen(table: &Table) -> Result<HashMap<RunKey, (i32, Timestamp)>, ArchiveError> {
    let mut seen = HashMap::new();
    let columns = ["job_id_raw", "submit_time", "user", "row_digest", "collected_at"];
    for batch in table.batches(Some(&columns), false)? {
        let batch = batch?;
        let values = whole(&batch, "row_digest").zip(times(&batch, "collected_at"));
        for ((key, _), (digest, at)) in keys(&batch).zip(values) {
            let digest = digest.and_then(|digest| i32::try_from(digest).ok());
            if let (Some(key), Some(digest), Some(at)) = (key, digest, at) {
                seen.insert(key, (digest, at));
            }
        }
    }
    Ok(seen)
}
