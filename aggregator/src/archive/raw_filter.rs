//! A raw file without some of its rows. The others stay as they are.

use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use tempfile::NamedTempFile;

use super::ArchiveError;
use super::raw::{FIELDS, ROW_GROUP_BYTES, properties};
use super::raw_read::{RawRow, RawTable, each};
use super::shelf::Shelf;

/// Writes those rows of a file for which `keep` holds. The file and its number of rows.
///
/// # Errors
/// If it cannot be read or written.
pub fn filter(
    table: &RawTable,
    shelf: &dyn Shelf,
    mut keep: impl FnMut(&RawRow<'_>) -> bool,
) -> Result<(NamedTempFile, u64), ArchiveError> {
    let table = table.table();
    let fields = table.value(FIELDS).unwrap_or_default();
    let properties = properties(table.generation().unwrap_or(0), fields)?;
    let schema = Arc::clone(table.schema());
    let mut writer = ArrowWriter::try_new(shelf.scratch()?, schema, Some(properties))?;
    let (mut rows, mut place) = (0, 0);
    for batch in table.batches(None, false)? {
        let batch = batch?;
        let mut wanted = Vec::with_capacity(batch.num_rows());
        each(&batch, &mut place, |_, row| {
            wanted.push(keep(row));
            Ok::<_, ArchiveError>(())
        })?;
        let batch = filter_record_batch(&batch, &BooleanArray::from(wanted))?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
        if writer.in_progress_size() >= ROW_GROUP_BYTES {
            writer.flush()?;
        }
    }
    Ok((writer.into_inner()?, rows))
}
