//! A file of `processed` once more, with other numbers in one of its columns. The other columns are
//! copied as they are packed: to unpack and pack sixty of them would cost as much as to collect
//! them.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Type;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::ArchiveError;
use super::chunk::{Chunk, Values};
use super::dictionary::Numbers;
use super::group::{in_pieces, whole};
use super::pages::Press;
use super::processed::{GENERATION, properties};
use super::read::Table;

/// Writes the file with these numbers, one for each row, in the column.
///
/// # Errors
/// If it cannot be read or written, or the column is not one of whole numbers.
pub(super) fn swap<W: Write + Send>(
    table: &Table,
    file: W,
    generation: u64,
    column: &str,
    numbers: &[Option<i64>],
) -> Result<W, ArchiveError> {
    let metadata = table.metadata();
    let about = metadata.file_metadata();
    let schema = about.schema_descr().root_schema_ptr();
    let properties = Arc::new(properties(generation)?);
    let mut writer = SerializedFileWriter::new(in_pieces(file), schema, properties)?;
    for pair in about.key_value_metadata().into_iter().flatten() {
        if pair.key != GENERATION {
            writer.append_key_value_metadata(pair.clone());
        }
    }
    let mut press = Press::new()?;
    let mut rest = numbers;
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
        let (own, others) = rest.split_at_checked(rows).ok_or_else(|| too_few(column))?;
        rest = others;
        let mut out = writer.next_row_group()?;
        copy(table, group, &mut out, &mut press, column, own)?;
        out.close()?;
    }
    Ok(whole(writer.into_inner()?)?)
}

/// Writes one row group.
fn copy<W: Write + Send>(
    table: &Table,
    group: &RowGroupMetaData,
    out: &mut SerializedRowGroupWriter<'_, W>,
    press: &mut Press,
    column: &str,
    numbers: &[Option<i64>],
) -> Result<(), ArchiveError> {
    for chunk in group.columns() {
        if chunk.column_path().string() != column {
            let as_it_is = ColumnCloseResult {
                bytes_written: u64::try_from(chunk.compressed_size()).unwrap_or(0),
                rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
                metadata: chunk.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            out.append_column(table.file(), as_it_is)?;
            continue;
        }
        if chunk.column_type() != Type::INT64 {
            return Err(ParquetError::General(format!("{column} has no whole numbers")).into());
        }
        let values = Values::Figures(Vec::new(), Numbers::default());
        let may_lack = chunk.column_descr().max_def_level() > 0;
        let mut new = Chunk::new(values, numbers.len(), may_lack, false);
        numbers.iter().for_each(|number| new.whole(*number));
        new.append(press, out, chunk.column_descr_ptr())?;
    }
    Ok(())
}

fn too_few(column: &str) -> ParquetError {
    ParquetError::General(format!("{column}: not as many numbers as rows"))
}
