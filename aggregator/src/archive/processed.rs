//! `processed`: one row per run of a job, written as Parquet.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use steward_common::job::AgentUse;

use super::ArchiveError;
use super::column::{COLUMNS, Get, Spread, Stored};
use super::group::Groups;

/// The key under which a file says in which generation of the archive it was written.
pub const GENERATION: &str = "steward.generation";

/// Rows that are gathered before they are encoded.
const BATCH: usize = 4096;

/// The last column: what the agents measured on each node.
pub(super) const NODE_USAGE: &str = "node_usage";

/// The types of all columns.
#[must_use]
pub fn schema() -> SchemaRef {
    let mut fields: Vec<Field> = COLUMNS
        .iter()
        .map(|column| Field::new(column.name, data_type(&column.get), true))
        .collect();
    fields.push(Field::new(NODE_USAGE, node_usage_type(), true));
    Arc::new(Schema::new(fields))
}

fn data_type(get: &Get) -> DataType {
    match get {
        Get::Text(_) => DataType::Utf8,
        Get::Whole(_) => DataType::Int64,
        Get::Real(_) | Get::Derived(_) => DataType::Float64,
        Get::Truth(_) => DataType::Boolean,
        Get::Time(_) => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
    }
}

fn node_usage_fields() -> Fields {
    Fields::from(vec![
        Field::new("node", DataType::Utf8, true),
        Field::new("cpu_seconds", DataType::Float64, true),
        Field::new("peak_memory_bytes", DataType::Int64, true),
        Field::new("gpus", DataType::Int64, true),
    ])
}

fn node_usage_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(node_usage_fields()), true))
}

fn node_usage_type() -> DataType {
    DataType::List(node_usage_item())
}

fn properties(generation: u64) -> Result<WriterProperties, ArchiveError> {
    let level = ZstdLevel::try_new(1)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(format!("steward {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            GENERATION.to_owned(),
            generation.to_string(),
        )]));
    for column in COLUMNS {
        let path = || ColumnPath::from(column.name);
        if column.spread == Spread::Many {
            properties = properties.set_column_dictionary_enabled(path(), false);
            let encoding = match column.get {
                Get::Whole(_) | Get::Time(_) => Encoding::DELTA_BINARY_PACKED,
                Get::Real(_) | Get::Derived(_) => Encoding::BYTE_STREAM_SPLIT,
                Get::Text(_) => Encoding::DELTA_LENGTH_BYTE_ARRAY,
                Get::Truth(_) => continue,
            };
            properties = properties.set_column_encoding(path(), encoding);
        }
        // By these a reader passes over what it does not want.
        if matches!(column.name, "job_id_raw" | "submit_time" | "start_time" | "end_time") {
            properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::Chunk);
        }
    }
    Ok(properties.build())
}

/// The values of one column that are waiting to be encoded.
enum Values {
    Text(StringBuilder),
    Whole(Int64Builder),
    Real(Float64Builder),
    Truth(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
}

impl Values {
    fn new(get: &Get) -> Values {
        match get {
            Get::Text(_) => Values::Text(StringBuilder::with_capacity(BATCH, BATCH * 8)),
            Get::Whole(_) => Values::Whole(Int64Builder::with_capacity(BATCH)),
            Get::Real(_) | Get::Derived(_) => Values::Real(Float64Builder::with_capacity(BATCH)),
            Get::Truth(_) => Values::Truth(BooleanBuilder::with_capacity(BATCH)),
            Get::Time(_) => Values::Time(
                TimestampMillisecondBuilder::with_capacity(BATCH).with_data_type(data_type(get)),
            ),
        }
    }

    fn push(&mut self, get: &Get, stored: &Stored<'_>) {
        match (self, get) {
            (Values::Text(values), Get::Text(get)) => values.append_option(get(stored)),
            (Values::Whole(values), Get::Whole(get)) => values.append_option(get(stored)),
            (Values::Real(values), Get::Real(get)) => values.append_option(get(stored)),
            (Values::Real(values), Get::Derived(get)) => {
                values.append_option(get(stored).map(shortened));
            }
            (Values::Truth(values), Get::Truth(get)) => values.append_option(get(stored)),
            (Values::Time(values), Get::Time(get)) => {
                values.append_option(get(stored).map(|time| time.get().saturating_mul(1000)));
            }
            // Both come from one line of COLUMNS.
            _ => {}
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Values::Text(values) => Arc::new(values.finish()),
            Values::Whole(values) => Arc::new(values.finish()),
            Values::Real(values) => Arc::new(values.finish()),
            Values::Truth(values) => Arc::new(values.finish()),
            Values::Time(values) => Arc::new(values.finish()),
        }
    }
}

/// Binary digits of a derived number that are kept behind the first: six decimal ones and a half.
const DIGITS: u32 = 22;

/// The number with those digits. What would follow is no knowledge, only space.
fn shortened(number: f64) -> f64 {
    let rest = (1_u64 << (f64::MANTISSA_DIGITS - 1 - DIGITS)) - 1;
    let rounded = number.to_bits().saturating_add(rest / 2 + 1) & !rest;
    let short = f64::from_bits(rounded);
    if short.is_finite() { short } else { number }
}

/// Writes runs into one file.
pub struct ProcessedWriter<W: Write + Send = File> {
    groups: Groups<W>,
    schema: SchemaRef,
    values: Vec<Values>,
    node_usage: Vec<Option<AgentUse>>,
    rows: u64,
}

impl<W: Write + Send> ProcessedWriter<W> {
    /// Begins a file of this generation.
    ///
    /// # Errors
    /// If nothing can be written to it.
    pub fn new(file: W, generation: u64) -> Result<Self, ArchiveError> {
        let schema = schema();
        let groups = Groups::new(file, schema.clone(), properties(generation)?)?;
        let values = COLUMNS.iter().map(|column| Values::new(&column.get)).collect();
        Ok(Self { groups, schema, values, node_usage: Vec::new(), rows: 0 })
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, stored: &Stored<'_>) -> Result<(), ArchiveError> {
        for (values, column) in self.values.iter_mut().zip(COLUMNS) {
            values.push(&column.get, stored);
        }
        self.node_usage.push(stored.run.agent.clone());
        self.rows += 1;
        if self.node_usage.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds rows that were read from a file of the same schema.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn push_batch(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        self.flush()?;
        self.rows += batch.num_rows() as u64;
        Ok(self.groups.push(batch.clone())?)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        if self.node_usage.is_empty() {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = self.values.iter_mut().map(Values::take).collect();
        arrays.push(node_usage(&std::mem::take(&mut self.node_usage)));
        Ok(self.groups.push(RecordBatch::try_new(self.schema.clone(), arrays)?)?)
    }

    /// Ends the file and gives it back.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        self.flush()?;
        Ok(self.groups.finish()?)
    }
}

/// The rows with all columns of today: those that an older file has not are absent.
///
/// # Errors
/// If a column is of another type.
pub fn conform(batch: &RecordBatch) -> Result<RecordBatch, ArchiveError> {
    let schema = schema();
    let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    });
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns.collect())?)
}

/// The nested column. Most runs have none, and most batches are without any.
fn node_usage(runs: &[Option<AgentUse>]) -> ArrayRef {
    if runs.iter().all(Option::is_none) {
        return new_null_array(&node_usage_type(), runs.len());
    }
    let nodes: Vec<_> = runs.iter().flatten().flat_map(|agent| &agent.nodes).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(nodes.iter().map(|n| Some(n.node.as_str())).collect::<StringArray>()),
        Arc::new(nodes.iter().map(|n| n.cpu_seconds).collect::<Float64Array>()),
        Arc::new(
            nodes
                .iter()
                .map(|n| n.peak_memory_bytes.and_then(|bytes| i64::try_from(bytes).ok()))
                .collect::<Int64Array>(),
        ),
        Arc::new(nodes.iter().map(|n| n.gpus.map(i64::from)).collect::<Int64Array>()),
    ];
    let lengths = runs.iter().map(|run| run.as_ref().map_or(0, |agent| agent.nodes.len()));
    let known: NullBuffer = runs.iter().map(Option::is_some).collect();
    Arc::new(ListArray::new(
        node_usage_item(),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(StructArray::new(node_usage_fields(), columns, None)),
        Some(known),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_number_keeps_six_digits() {
        for number in [0.0, 1.0, 100.0, 1e-9, 33.333_333_333, 123_456.789, -2.5, 1e300, f64::MAX] {
            let short = shortened(number);
            assert!((short - number).abs() <= number.abs() * 1.2e-7, "{number} is {short}");
        }
        assert!(shortened(f64::NAN).is_nan());
        assert_eq!(shortened(75.5), 75.5);
        assert_eq!(shortened(100.0 / 3.0).to_bits().trailing_zeros(), 30);
    }
}
