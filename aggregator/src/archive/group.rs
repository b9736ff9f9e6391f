//! Row groups, written one column after the other.
//!
//! A writer that takes a row group batch by batch keeps an encoder and a compressor for each of
//! sixty columns, tens of megabytes that fit into no cache. Here the batches wait until there are
//! enough, and one column at a time is encoded.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowLeafColumn, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

/// Rows of a row group: enough for good dictionaries, few enough to bound memory, and not more
/// than a day of a busy cluster has, so that more jobs need no more of it.
const ROWS: usize = 16_384;

/// A file of row groups that is being written.
pub(super) struct Groups<W: Write + Send> {
    file: SerializedFileWriter<W>,
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
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
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

    pub(super) fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.file.into_inner()
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
