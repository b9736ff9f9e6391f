//! `processed`: one row per run of a job, written as Parquet.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::basic::Encoding;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use steward_common::job::AgentUse;
use steward_common::time::Timestamp;

use super::ArchiveError;
use super::block::{self, Block};
use super::cells;
use super::chunk::{Chunk, Values};
use super::column::{self, COLUMNS, Column, Kind, Spread, Stored};
use super::dictionary::{Numbers, Texts};
use super::group::{Groups, Nested, ROWS};
use super::pages::Press;

/// The key under which a file says in which generation of the archive it was written.
pub const GENERATION: &str = "steward.generation";

/// Text of users that is gathered before it is packed, however few rows that are.
const TEXT: usize = 16 << 20;

/// The last column: what the agents measured on each node.
pub(super) const NODE_USAGE: &str = "node_usage";

/// The types of all columns.
#[must_use]
pub fn schema() -> SchemaRef {
    let mut fields: Vec<Field> = COLUMNS
        .iter()
        .map(|column| Field::new(column.name, data_type(column.kind), true))
        .collect();
    fields.push(Field::new(NODE_USAGE, node_usage_type(), true));
    Arc::new(Schema::new(fields))
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text => DataType::Utf8,
        Kind::Whole => DataType::Int64,
        Kind::Real | Kind::Derived => DataType::Float64,
        Kind::Truth => DataType::Boolean,
        Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
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

/// Whether least and greatest value are told: by these a reader passes over what it does not want.
fn is_ranged(name: &str) -> bool {
    matches!(name, "job_id_raw" | "submit_time" | "start_time" | "end_time")
}

pub(super) fn properties(generation: u64) -> Result<WriterProperties, ArchiveError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Press::compression()?)
        .set_statistics_enabled(EnabledStatistics::None)
        // A row group's column is one page: where pages begin says nothing.
        .set_offset_index_disabled(true)
        .set_created_by(format!("steward {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            GENERATION.to_owned(),
            generation.to_string(),
        )]));
    for column in COLUMNS {
        let path = || ColumnPath::from(column.name);
        if column.spread == Spread::Many {
            properties = properties.set_column_dictionary_enabled(path(), false);
            let encoding = match column.kind {
                Kind::Whole | Kind::Time => Encoding::DELTA_BINARY_PACKED,
                Kind::Real | Kind::Derived => Encoding::BYTE_STREAM_SPLIT,
                Kind::Text => Encoding::DELTA_LENGTH_BYTE_ARRAY,
                Kind::Truth => continue,
            };
            properties = properties.set_column_encoding(path(), encoding);
        }
        if is_ranged(column.name) {
            properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::Chunk);
        }
    }
    Ok(properties.build())
}

/// An empty column of this kind.
fn chunk(column: &Column) -> Chunk {
    let values = match (column.kind, column.spread) {
        (Kind::Text, Spread::Few) => Values::Words(Vec::new(), Texts::default()),
        (Kind::Text, Spread::Many) => Values::Texts(Vec::new(), Vec::new()),
        (Kind::Truth, _) => Values::Truths(Vec::new()),
        (_, Spread::Few) => Values::Figures(Vec::new(), Numbers::default()),
        (Kind::Whole | Kind::Time, Spread::Many) => Values::Wholes(Vec::new()),
        (Kind::Real | Kind::Derived, Spread::Many) => Values::Reals(Vec::new()),
    };
    Chunk::new(values, ROWS, true, is_ranged(column.name))
}

/// What still lacks a value of the run that is added.
struct Rest<'c> {
    texts: std::slice::IterMut<'c, Chunk>,
    numbers: block::Run<'c>,
}

impl column::Row for Rest<'_> {
    #[inline(always)]
    fn text(&mut self, value: Option<&str>) {
        if let Some(chunk) = self.texts.next() {
            chunk.text(value.map(str::as_bytes));
        }
    }

    #[inline(always)]
    fn whole(&mut self, value: Option<i64>) {
        self.numbers.whole(value);
    }

    #[inline(always)]
    fn real(&mut self, value: Option<f64>) {
        self.numbers.bits(value.map(f64::to_bits));
    }

    #[inline(always)]
    fn derived(&mut self, value: Option<f64>) {
        self.real(value.map(shortened));
    }

    #[inline(always)]
    fn truth(&mut self, value: Option<bool>) {
        self.numbers.bits(value.map(u64::from));
    }

    #[inline(always)]
    fn time(&mut self, value: Option<Timestamp>) {
        self.numbers.time(value);
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

/// The columns of a row group while its runs come in.
struct Columns {
    texts: Vec<Chunk>,
    numbers: Vec<Chunk>,
    /// The last runs, of which the numbers are not yet in their columns.
    block: Block,
    press: Press,
}

thread_local! {
    /// Columns of files that were written: their memory serves for the next. Whoever collects writes
    /// a file for each day, and its threads end with the collection.
    static SPARE: RefCell<Vec<Columns>> = const { RefCell::new(Vec::new()) };
}

impl Columns {
    fn new() -> Result<Columns, ArchiveError> {
        if let Some(spare) = SPARE.with_borrow_mut(Vec::pop) {
            return Ok(spare);
        }
        let chunks = |are_texts| {
            let these = COLUMNS.iter().filter(|column| (column.kind == Kind::Text) == are_texts);
            these.map(chunk).collect()
        };
        let (texts, numbers) = (chunks(true), chunks(false));
        Ok(Columns { texts, numbers, block: Block::new(), press: Press::new()? })
    }

    fn push(&mut self, stored: &Stored<'_>) {
        let Columns { texts, numbers, block, .. } = self;
        column::put(stored, &mut Rest { texts: texts.iter_mut(), numbers: block.run() });
        if block.is_full() {
            block.settle(numbers.iter_mut());
        }
    }

    /// All of them in their order, with the numbers of the last runs; and what packs them.
    fn settled(&mut self) -> (impl Iterator<Item = &mut Chunk>, &mut Press) {
        let Columns { texts, numbers, block, press } = self;
        block.settle(numbers.iter_mut());
        let (mut texts, mut numbers) = (texts.iter_mut(), numbers.iter_mut());
        let next = move |column: &Column| match column.kind {
            Kind::Text => texts.next(),
            _ => numbers.next(),
        };
        (COLUMNS.iter().filter_map(next), press)
    }
}

/// Writes runs into one file.
pub struct ProcessedWriter<W: Write + Send = File> {
    groups: Groups<W>,
    columns: Columns,
    nested: Nested,
    /// What agents measured of the runs that wait; empty if they measured none of them.
    node_usage: Vec<Option<AgentUse>>,
    waiting: usize,
    /// Bytes of what users and administrators wrote that wait.
    text: usize,
    rows: u64,
}

impl<W: Write + Send> ProcessedWriter<W> {
    /// Begins a file of this generation.
    ///
    /// # Errors
    /// If nothing can be written to it.
    pub fn new(file: W, generation: u64) -> Result<Self, ArchiveError> {
        let groups = Groups::new(file, schema(), properties(generation)?)?;
        let field = Field::new(NODE_USAGE, node_usage_type(), true);
        Ok(Self {
            groups,
            columns: Columns::new()?,
            nested: Nested::new(field, properties(generation)?)?,
            node_usage: Vec::new(),
            waiting: 0,
            text: 0,
            rows: 0,
        })
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, stored: &Stored<'_>) -> Result<(), ArchiveError> {
        self.columns.push(stored);
        if stored.run.agent.is_some() || !self.node_usage.is_empty() {
            self.node_usage.resize(self.waiting, None);
            self.node_usage.push(stored.run.agent.clone());
        }
        self.waiting += 1;
        self.rows += 1;
        self.text += stored.run.admin_comment.len() + stored.run.name.len();
        if self.waiting >= ROWS || self.text >= TEXT {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds rows that were read from a file, which may be of a program that knew fewer columns.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn push_batch(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        self.flush()?;
        self.rows += batch.num_rows() as u64;
        Ok(self.groups.push(conform(batch)?)?)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        let rows = std::mem::take(&mut self.waiting);
        if rows == 0 {
            return Ok(());
        }
        self.text = 0;
        let usage = match std::mem::take(&mut self.node_usage) {
            nothing if nothing.is_empty() => new_null_array(&node_usage_type(), rows),
            usage => node_usage(&usage),
        };
        let (columns, press) = self.columns.settled();
        Ok(self.groups.pack(columns, press, Some((&self.nested, &usage)))?)
    }

    /// Ends the file and gives it back.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        self.flush()?;
        SPARE.with_borrow_mut(|spare| spare.push(self.columns));
        Ok(self.groups.finish()?)
    }
}

/// The rows with all columns of today: those that an older file has not are absent, unless another
/// tells as much.
///
/// # Errors
/// If a column is of another type.
fn conform(batch: &RecordBatch) -> Result<RecordBatch, ArchiveError> {
    let schema = schema();
    let columns = schema.fields().iter().map(|field| match cells::column(batch, field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    });
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns.collect())?)
}

/// The nested column. Most runs have none, and most batches are without any.
fn node_usage(runs: &[Option<AgentUse>]) -> ArrayRef {
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
