//! `raw`: every row as sacct gave it, with the few columns by which it is found again.
//!
//! Fifty columns of text would cost several times the work. The rows of a run are written
//! [`short`]: what many runs say alike once, the rest as text and figures.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use steward_common::slurm::sacct::{Layout, Row};
use steward_common::time::Timestamp;

use super::ArchiveError;
use super::chunk::{Chunk, MOST_ROWS, Values};
use super::dictionary::{Numbers, Texts};
use super::group::Groups;
use super::pages::Press;
use super::processed::GENERATION;
use super::short::{self, PHRASES, Phrase, Places, Scratch};

/// The key under which a file says which fields its texts have.
pub const FIELDS: &str = "steward.fields";

/// Text that is gathered before it is compressed.
const PAGE_BYTES: usize = 512 << 10;

/// About as many runs as have so much text.
const ROWS: usize = 16 << 10;

/// Text and packed figures of a row group: so much, the text of it compressed, is in memory at most. A day of a busy cluster has
/// more, so that twice the jobs need no more memory.
pub(super) const ROW_GROUP_BYTES: usize = 3 << 20;

/// What the text of a raw row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A row as sacct gave it.
    Plain,
    /// All rows of a run as sacct gave them, written [`short`].
    Short,
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
            Form::Short => "short",
            Form::Mended => "mended",
            Form::Malformed => "malformed",
            Form::Agent => "agent",
            Form::Import => "import",
        }
    }

    /// The form with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Form> {
        [Form::Plain, Form::Short, Form::Mended, Form::Malformed, Form::Agent, Form::Import]
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
    let mut fields = vec![
        Field::new("job_id_raw", DataType::Int64, true),
        Field::new("submit_time", time(), true),
        Field::new("end_time", time(), true),
        Field::new("step", DataType::Utf8, true),
        Field::new("collected_at", time(), false),
        Field::new("form", DataType::Utf8, false),
    ];
    fields.extend(Phrase::COLUMNS.map(|name| Field::new(name, DataType::Binary, true)));
    fields.push(Field::new("figures", DataType::Binary, true));
    fields.push(Field::new("text", DataType::Binary, false));
    Arc::new(Schema::new(fields))
}

/// How a file of rows with these fields is written.
pub(super) fn properties(generation: u64, fields: &str) -> Result<WriterProperties, ArchiveError> {
    let plain = |name| ColumnPath::from(name);
    Ok(WriterProperties::builder()
        .set_compression(Press::compression()?)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled(plain("job_id_raw"), EnabledStatistics::Chunk)
        .set_column_statistics_enabled(plain("end_time"), EnabledStatistics::Chunk)
        .set_column_compression(plain("figures"), Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(plain("figures"), false)
        .set_column_encoding(plain("figures"), Encoding::DELTA_LENGTH_BYTE_ARRAY)
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

/// The columns of a row group while its rows come in.
struct Columns {
    /// In the order of the schema.
    chunks: [Chunk; 8 + PHRASES],
    press: Press,
    /// The run that is written.
    scratch: Scratch,
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
        let number = |is_ranged| Chunk::new(Values::Wholes(Vec::new()), ROWS, true, is_ranged);
        let word = |may_lack| {
            Chunk::new(Values::Words(Vec::new(), Texts::default()), ROWS, may_lack, false)
        };
        let text = |may_lack| {
            let text = Vec::with_capacity(PAGE_BYTES + PAGE_BYTES / 16);
            Chunk::new(Values::Texts(Vec::new(), text), ROWS, may_lack, false)
        };
        Ok(Columns {
            chunks: [
                number(true),
                number(false),
                number(true),
                word(true),
                Chunk::new(Values::Figures(Vec::new(), Numbers::default()), ROWS, false, false),
                word(false),
                word(true),
                word(true),
                word(true),
                word(true),
                text(true).plain(),
                text(false),
            ],
            press: Press::new()?,
            scratch: Scratch::default(),
        })
    }
}

/// Writes raw rows into one file.
pub struct RawWriter<W: Write + Send = File> {
    groups: Groups<W>,
    columns: Columns,
    collected: Timestamp,
    /// Where the fields of sacct stand, if the file has such rows.
    places: Option<Places>,
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
        Ok(Self {
            groups: Groups::new(file, schema(), properties(generation, fields)?)?,
            columns: Columns::new()?,
            collected,
            places: Layout::of_names(fields).as_ref().map(Places::of),
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

    /// Adds a run: its rows as sacct gave them, of which `bytes` holds the text at their places.
    /// `may_have_marks` says that they may hold control characters that stand for something else there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push_run<'r>(
        &mut self,
        key: Key<'_>,
        bytes: &'r [u8],
        rows: impl Iterator<Item = Row<'r>> + Clone,
        may_have_marks: bool,
    ) -> Result<(), ArchiveError> {
        let has_marks = may_have_marks && short::has_marks(bytes, rows.clone());
        let places = self.places.as_ref();
        let Columns { chunks, scratch, .. } = &mut self.columns;
        let [_, _, _, _, _, _, who, how, asked, steps, figures, text] = chunks;
        let places = places.filter(|_| !has_marks);
        let is_short = text.written(|out| {
            places.is_some_and(|at| short::write(out, scratch, bytes, rows.clone(), &key, at))
        });
        if is_short {
            for (chunk, phrase) in [who, how, asked, steps].into_iter().zip(scratch.phrases()) {
                chunk.text(Some(phrase));
            }
            figures.text(scratch.figures());
            return self.entered(key, Form::Short, self.collected);
        }
        for row in rows {
            let key = Key { step: row.id().1, ..key };
            self.push(key, Form::Plain, bytes.get(row.span()).unwrap_or_default())?;
        }
        Ok(())
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
        let [_, _, _, _, _, _, who, how, asked, steps, figures, texts] = &mut self.columns.chunks;
        texts.text(Some(text));
        for chunk in [who, how, asked, steps, figures] {
            chunk.text(None);
        }
        self.entered(key, form, collected)
    }

    /// Adds the key columns of a row whose text is there.
    fn entered(
        &mut self,
        key: Key<'_>,
        form: Form,
        collected: Timestamp,
    ) -> Result<(), ArchiveError> {
        let millis = |time: Timestamp| time.get().saturating_mul(1000);
        let [job, submit, end, step, collected_at, form_name, phrases @ .., figures, text] =
            &mut self.columns.chunks;
        job.whole(key.job.map(i64::from));
        submit.whole(key.submit.map(millis));
        end.whole(key.end.map(millis));
        step.text(key.step.map(str::as_bytes));
        collected_at.whole(Some(millis(collected)));
        form_name.text(Some(form.name().as_bytes()));
        self.rows += 1;
        for chunk in [figures, text] {
            let waiting = chunk.text_size();
            if waiting >= PAGE_BYTES {
                chunk.page(&mut self.columns.press)?;
                self.group_bytes += waiting;
            }
        }
        let words: usize = phrases.iter().map(|phrase| phrase.text_size()).sum();
        let is_full = self.group_bytes + words >= ROW_GROUP_BYTES || job.rows() >= MOST_ROWS;
        if is_full { self.flush() } else { Ok(()) }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        self.group_bytes = 0;
        let Columns { chunks, press, .. } = &mut self.columns;
        Ok(self.groups.pack(chunks.iter_mut(), press, None)?)
    }

    /// Ends the file and gives it back.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        let [job, ..] = &self.columns.chunks;
        if job.rows() > 0 {
            self.flush()?;
        }
        SPARE.with_borrow_mut(|spare| spare.push(self.columns));
        Ok(self.groups.finish()?)
    }
}
