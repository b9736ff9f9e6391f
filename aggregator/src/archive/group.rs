//! Row groups, written one column after the other.
//!
//! New rows come as [`Chunk`]s, rows that were read from another file as batches. Those wait until
//! there are enough, and one column at a time is encoded: a writer that takes a row group batch by
//! batch keeps an encoder and a compressor for each of sixty columns, tens of megabytes that fit
//! into no cache.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowLeafColumn, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::chunk::{Chunk, MOST_ROWS};
use super::pages::Press;

/// Rows of a row group: enough for good dictionaries, few enough to bound memory, and not more
/// than a day of a busy cluster has, so that more jobs need no more of it.
pub(super) const ROWS: usize = 16_384;

const _: () = assert!(ROWS <= MOST_ROWS, "a dictionary would have more values than numbers");

/// How much is written to a file at a time. Left to itself `parquet` writes a few kilobytes.
const WRITE: usize = 256 << 10;

/// A file that is written in large pieces.
pub(super) fn in_pieces<W: Write>(file: W) -> BufWriter<W> {
    BufWriter::with_capacity(WRITE, file)
}

/// The file, with the last piece.
pub(super) fn whole<W: Write>(file: BufWriter<W>) -> Result<W, ParquetError> {
    Ok(file.into_inner().map_err(std::io::IntoInnerError::into_error)?)
}

/// A file of row groups that is being written.
pub(super) struct Groups<W: Write + Send> {
    file: SerializedFileWriter<BufWriter<W>>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    waiting: Vec<RecordBatch>,
    rows: usize,
}

impl<W: Write + Send> Groups<W> {
    pub(super) fn new(
        file: W,
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self, ParquetError> {
        let writer = ArrowWriter::try_new(in_pieces(file), schema.clone(), Some(properties))?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Self { file, columns, schema, waiting: Vec::new(), rows: 0 })
    }

    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<(), ParquetError> {
        self.rows += batch.num_rows();
        self.waiting.push(batch);
        if self.rows < ROWS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let batches = std::mem::take(&mut self.waiting);
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let index = self.file.flushed_row_groups().len();
        let mut writers = self.columns.create_column_writers(index)?.into_iter();
        let mut group = self.file.next_row_group()?;
        for (place, field) in self.schema.fields().iter().enumerate() {
            let leaves = batches.iter().map(|batch| compute_leaves(field, batch.column(place)));
            for column in across(leaves.collect::<Result<_, _>>()?) {
                let writer = writers.next();
                let mut writer =
                    writer.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
                for leaf in &column {
                    writer.write(leaf)?;
                }
                writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes a row group of these columns and a nested one behind them.
    pub(super) fn pack<'c>(
        &mut self,
        chunks: impl Iterator<Item = &'c mut Chunk>,
        press: &mut Press,
        nested: Option<(&Nested, &ArrayRef)>,
    ) -> Result<(), ParquetError> {
        self.flush()?;
        let columns = self.file.schema_descr().columns().to_vec();
        let mut group = self.file.next_row_group()?;
        for (chunk, column) in chunks.zip(columns) {
            chunk.append(press, &mut group, column)?;
        }
        if let Some((nested, values)) = nested {
            let mut writers = nested.columns.create_column_writers(0)?.into_iter();
            for leaf in compute_leaves(&nested.field, values)? {
                if let Some(mut writer) = writers.next() {
                    writer.write(&leaf)?;
                    writer.close()?.append_to_row_group(&mut group)?;
                }
            }
        }
        group.close()?;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        whole(self.file.into_inner()?)
    }
}

/// What writes the columns of a nested field.
pub(super) struct Nested {
    field: Field,
    columns: ArrowRowGroupWriterFactory,
}

impl Nested {
    pub(super) fn new(field: Field, properties: WriterProperties) -> Result<Nested, ParquetError> {
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        Ok(Nested { field, columns: writer.into_serialized_writer()?.1 })
    }
}

/// The columns of a nested field, each with what all batches have of it.
fn across(batches: Vec<Vec<ArrowLeafColumn>>) -> Vec<Vec<ArrowLeafColumn>> {
    let mut columns: Vec<Vec<ArrowLeafColumn>> = Vec::new();
    for leaves in batches {
        for (place, leaf) in leaves.into_iter().enumerate() {
            match columns.get_mut(place) {
                Some(column) => column.push(leaf),
                None => columns.push(vec![leaf]),
            }
        }
    }
    columns
}
