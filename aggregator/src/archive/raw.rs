//! `raw`: every row as sacct gave it, with the few columns by which it is found again.
//!
//! Sixty columns of text would cost ten times the work of writing the line whole; whoever wants a
//! field cuts the text at the delimiter, in the order that the file's own key says.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int64Builder, StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use steward_common::slurm::sacct::{Layout, Row};
use steward_common::time::Timestamp;

use super::ditto::Places;
use super::processed::GENERATION;
use super::{ArchiveError, ditto};

/// The key under which a file says which fields its texts have.
pub const FIELDS: &str = "steward.fields";

/// Rows that are gathered before they are encoded.
const BATCH_BYTES: usize = 128 << 10;

/// Text of a row group: this much of it is in memory at most.
pub(super) const ROW_GROUP_BYTES: usize = 16 << 20;

/// What the text of a raw row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A row as sacct gave it.
    Plain,
    /// A row as sacct gave it, without what it or the row above it says twice.
    Ditto,
    /// A row whose line could not be cut: its fields as a JSON list, asked for again.
    Mended,
    /// Text that is no row, kept as it came.
    Malformed,
    /// What the agents measured of the run, as JSON.
    Agent,
    /// A run that was taken over from an archive of slurm-usage, as JSON.
    Import,
}

impl Form {
    /// The word for it in the archive.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Form::Plain => "plain",
            Form::Ditto => "ditto",
            Form::Mended => "mended",
            Form::Malformed => "malformed",
            Form::Agent => "agent",
            Form::Import => "import",
        }
    }

    /// The form with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Form> {
        [Form::Plain, Form::Ditto, Form::Mended, Form::Malformed, Form::Agent, Form::Import]
            .into_iter()
            .find(|form| form.name() == name)
    }
}

/// By what a raw row is found.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Slurm's number of the job; `None` for text that is no row.
    pub job: Option<u32>,
    /// When the run was submitted.
    pub submit: Option<Timestamp>,
    /// When the run ended; `None` while it had not.
    pub end: Option<Timestamp>,
    /// The step; `None` for the job's own row.
    pub step: Option<&'a str>,
}

/// The types of the columns.
#[must_use]
pub fn schema() -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("job_id_raw", DataType::Int64, true),
        Field::new("submit_time", time(), true),
        Field::new("end_time", time(), true),
        Field::new("step", DataType::Utf8, true),
        Field::new("collected_at", time(), false),
        Field::new("form", DataType::Utf8, false),
        Field::new("text", DataType::Binary, false),
    ]))
}

/// How a file of rows with these fields is written.
pub(super) fn properties(generation: u64, fields: &str) -> Result<WriterProperties, ArchiveError> {
    let plain = |name| ColumnPath::from(name);
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled(plain("job_id_raw"), EnabledStatistics::Chunk)
        .set_column_statistics_enabled(plain("end_time"), EnabledStatistics::Chunk)
        .set_column_dictionary_enabled(plain("text"), false)
        .set_column_encoding(plain("text"), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_dictionary_enabled(plain("job_id_raw"), false)
        .set_column_encoding(plain("job_id_raw"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(plain("submit_time"), false)
        .set_column_encoding(plain("submit_time"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(plain("end_time"), false)
        .set_column_encoding(plain("end_time"), Encoding::DELTA_BINARY_PACKED)
        .set_max_row_group_row_count(None)
        .set_created_by(format!("steward {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            KeyValue::new(GENERATION.to_owned(), generation.to_string()),
            KeyValue::new(FIELDS.to_owned(), fields.to_owned()),
        ]))
        .build())
}

/// Writes raw rows into one file.
pub struct RawWriter<W: Write + Send = File> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    collected: Timestamp,
    job: Int64Builder,
    submit: TimestampMillisecondBuilder,
    end: TimestampMillisecondBuilder,
    step: StringBuilder,
    collected_at: TimestampMillisecondBuilder,
    form: StringBuilder,
    text: BinaryBuilder,
    /// Where the fields of sacct stand, if the file has such rows.
    places: Option<Places>,
    /// A row while it is shortened.
    short: Vec<u8>,
    group_bytes: usize,
    rows: u64,
}

impl<W: Write + Send> RawWriter<W> {
    /// Begins a file of rows with these fields, collected at this time.
    ///
    /// # Errors
    /// If nothing can be written to it.
    pub fn new(
        file: W,
        generation: u64,
        fields: &str,
        collected: Timestamp,
    ) -> Result<Self, ArchiveError> {
        let properties = properties(generation, fields)?;
        let schema = schema();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
        let times = || TimestampMillisecondBuilder::new().with_timezone("UTC");
        Ok(Self {
            writer,
            schema,
            collected,
            job: Int64Builder::new(),
            submit: times(),
            end: times(),
            step: StringBuilder::new(),
            collected_at: times(),
            form: StringBuilder::new(),
            text: BinaryBuilder::with_capacity(1024, BATCH_BYTES + 4096),
            places: Layout::of_names(fields).as_ref().map(Places::of),
            short: Vec::new(),
            group_bytes: 0,
            rows: 0,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, key: Key<'_>, form: Form, text: &[u8]) -> Result<(), ArchiveError> {
        self.push_at(key, form, text, self.collected)
    }

    /// Adds a row as sacct gave it. `bytes` holds its text, and that of the row before of the same
    /// run, at their places.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push_row(
        &mut self,
        key: Key<'_>,
        bytes: &[u8],
        row: &Row<'_>,
        above: Option<&Row<'_>>,
    ) -> Result<(), ArchiveError> {
        let mut short = std::mem::take(&mut self.short);
        short.clear();
        let places = self.places.as_ref();
        let shorter =
            places.is_some_and(|at| ditto::write(&mut short, bytes, row, above, &key, at));
        let done = if shorter {
            self.push(key, Form::Ditto, &short)
        } else {
            self.push(key, Form::Plain, bytes.get(row.span()).unwrap_or_default())
        };
        self.short = short;
        done
    }

    /// Adds a row that was collected at another time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push_at(
        &mut self,
        key: Key<'_>,
        form: Form,
        text: &[u8],
        collected: Timestamp,
    ) -> Result<(), ArchiveError> {
        let millis = |time: Timestamp| time.get().saturating_mul(1000);
        self.job.append_option(key.job.map(i64::from));
        self.submit.append_option(key.submit.map(millis));
        self.end.append_option(key.end.map(millis));
        self.step.append_option(key.step);
        self.collected_at.append_value(millis(collected));
        self.form.append_value(form.name());
        self.text.append_value(text);
        self.rows += 1;
        if self.text.values_slice().len() >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        self.group_bytes += self.text.values_slice().len();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(self.job.finish()),
            Arc::new(self.submit.finish()),
            Arc::new(self.end.finish()),
            Arc::new(self.step.finish()),
            Arc::new(self.collected_at.finish()),
            Arc::new(self.form.finish()),
            Arc::new(self.text.finish()),
        ];
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), arrays)?)?;
        if self.group_bytes >= ROW_GROUP_BYTES {
            self.writer.flush()?;
            self.group_bytes = 0;
        }
        Ok(())
    }

    /// Ends the file and gives it back.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        self.flush()?;
        Ok(self.writer.into_inner()?)
    }
}
