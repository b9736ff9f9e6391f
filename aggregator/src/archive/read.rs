//! Files of the archive, read: which runs are there, and the columns that are asked for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, BooleanArray, RecordBatch};
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions,
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;
use roaring::RoaringBitmap;
use steward_common::time::Timestamp;

use super::ArchiveError;
use super::cells::{real, times, whole};
use super::column::before;
use super::processed::GENERATION;
pub use super::run_key::{RunKey, RunList, RunSet};
use super::stand_in;
use super::unpack::Groups;

/// Rows that are decoded at a time: half a row group, so that no batch has rows of two, whose
/// dictionaries would have to be made one, and little enough memory to be used again and again.
const BATCH: usize = 8192;

/// The moment at which what has no time happens.
pub const NEVER: Timestamp = Timestamp::new(i64::MAX);

/// What a row must have.
pub enum Wanted {
    /// In this column a text of which the function says yes.
    Text(&'static str, Box<dyn Fn(&str) -> bool + Send>),
    /// In this column this number.
    Whole(&'static str, i64),
}

impl Wanted {
    const fn column(&self) -> &'static str {
        match self {
            Wanted::Text(name, _) | Wanted::Whole(name, _) => name,
        }
    }
}

/// What tells whether a run has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The digest of its rows.
    pub digest: i32,
    /// The share of it that agents saw.
    pub coverage: Option<f32>,
    /// Whether its GPU time is known.
    pub has_gpu_time: bool,
}

/// Which texts come as dictionaries.
#[derive(Clone, Copy)]
enum Texts<'a> {
    Plain,
    Coded,
    CodedOnly(&'a [&'a str]),
}

/// A Parquet file that is open.
pub struct Table {
    file: File,
    path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl Table {
    /// Reads what the file says about itself.
    ///
    /// # Errors
    /// If it is no Parquet file.
    pub fn new(file: File, path: &Path) -> Result<Table, ArchiveError> {
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())
            .map_err(|error| unread(path, error))?;
        Ok(Table { file, path: path.to_owned(), metadata })
    }

    /// A value that its writer put into the file.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// The generation in which it was written.
    #[must_use]
    pub fn generation(&self) -> Option<u64> {
        self.value(GENERATION)?.parse().ok()
    }

    /// What it says about itself.
    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// The types of its columns, which may be fewer than those of today.
    pub(super) fn schema(&self) -> &arrow_schema::SchemaRef {
        self.metadata.schema()
    }

    /// The file itself.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The least value of a column of times, [`NEVER`] if there is no value; `None` if the file does
    /// not say.
    #[must_use]
    pub fn least_time(&self, column: &str) -> Option<Timestamp> {
        let least = self.least_times(column).collect::<Option<Vec<_>>>()?.into_iter().min();
        Some(least.unwrap_or(NEVER))
    }

    /// The least value of a column of times in each row group, where the file says it.
    fn least_times(&self, column: &str) -> impl Iterator<Item = Option<Timestamp>> {
        self.statistics(column).zip(self.groups()).map(|(statistics, rows)| match statistics? {
            Statistics::Int64(values) => match values.min_opt() {
                Some(millis) => Some(Timestamp::new(millis.div_euclid(1000))),
                None => (values.null_count_opt() == Some(rows)).then_some(NEVER),
            },
            _ => None,
        })
    }

    /// The least and the greatest number of a job; `None` if the file does not say.
    #[must_use]
    pub fn job_range(&self) -> Option<(u32, u32)> {
        let mut range: Option<(u32, u32)> = None;
        for statistics in self.statistics("job_id_raw") {
            let Some(Statistics::Int64(values)) = statistics else { return None };
            let number = |value: Option<&i64>| u32::try_from(*value?).ok();
            let (least, most) = (number(values.min_opt())?, number(values.max_opt())?);
            let (low, high) = range.unwrap_or((least, most));
            range = Some((low.min(least), high.max(most)));
        }
        range
    }

    /// What each row group says about a column.
    fn statistics(&self, column: &str) -> impl Iterator<Item = Option<&Statistics>> {
        let metadata = self.metadata.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        let place = columns.iter().position(|one| one.name() == column);
        let groups = metadata.row_groups().iter();
        groups.map(move |group| group.columns().get(place?)?.statistics())
    }

    /// These columns, or the ones that tell as much in an older file; complains if it lacks one.
    fn must_have<'n>(&self, columns: &[&'n str]) -> Result<Vec<&'n str>, ArchiveError> {
        let known = self.metadata.schema();
        let has = |name: &&str| known.field_with_name(name).is_ok();
        let found = |name: &&'n str| {
            let missing = || {
                let why =
                    format!("it has no column {name}; `steward archive rebuild` makes it anew");
                content(&self.path, &why)
            };
            Some(*name).filter(has).or_else(|| before(name).filter(has)).ok_or_else(missing)
        };
        columns.iter().map(found).collect()
    }

    /// The rows with these columns, or with all; texts as dictionaries where `dictionaries`.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a column.
    pub fn batches(
        &self,
        columns: Option<&[&str]>,
        dictionaries: bool,
    ) -> Result<Batches, ArchiveError> {
        let texts = if dictionaries { Texts::Coded } else { Texts::Plain };
        self.some(columns, texts, None)
    }

    /// The rows with these columns, and those texts among them as dictionaries.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a column.
    pub fn coded(&self, columns: &[&str], texts: &[&str]) -> Result<Batches, ArchiveError> {
        self.some(Some(columns), Texts::CodedOnly(texts), None)
    }

    /// The rows of one row group with these columns.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a column.
    pub fn group(&self, columns: &[&str], group: usize) -> Result<Batches, ArchiveError> {
        self.some(Some(columns), Texts::Plain, Some(group))
    }

    /// How many rows each row group has.
    pub fn groups(&self) -> impl Iterator<Item = u64> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
    }

    fn some(
        &self,
        columns: Option<&[&str]>,
        texts: Texts<'_>,
        group: Option<usize>,
    ) -> Result<Batches, ArchiveError> {
        let wrong = |error: ParquetError| content(&self.path, &error);
        let schema = match texts {
            Texts::Plain => Arc::clone(self.metadata.schema()),
            Texts::Coded => as_dictionaries(&self.metadata, None),
            Texts::CodedOnly(names) => as_dictionaries(&self.metadata, Some(names)),
        };
        let metadata = self.metadata.metadata();
        let columns_of_file = metadata.file_metadata().schema_descr();
        let mask = match columns {
            Some(columns) => ProjectionMask::columns(columns_of_file, self.must_have(columns)?),
            None => ProjectionMask::all(),
        };
        let levels = parquet_to_arrow_field_levels(columns_of_file, mask, Some(schema.fields()))
            .map_err(wrong)?;
        let file = self.file.try_clone().map_err(super::shelf::at(&self.path))?;
        let groups = Groups {
            file: Arc::new(file),
            metadata: Arc::clone(metadata),
            groups: group.map_or((0..metadata.num_row_groups()).collect(), |group| vec![group]),
        };
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, BATCH, None)
                .map_err(wrong)?;
        Ok(Batches { reader, path: self.path.clone() })
    }

    /// The rows that have all that is `wanted`, with these columns; the rest of a row that is not
    /// wanted is not decoded. Row groups in which all of `column` is at `before` or later, or which
    /// cannot have a number that is wanted, are passed over.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a column.
    pub fn matching(
        &self,
        columns: &[&str],
        wanted: Vec<Wanted>,
        column: &str,
        before: Timestamp,
    ) -> Result<Batches, ArchiveError> {
        let wrong = |error: &dyn std::fmt::Display| content(&self.path, error);
        let file = self.file.try_clone().map_err(super::shelf::at(&self.path))?;
        let columns = self.must_have(columns)?;
        // Names as dictionaries: each is compared once, however many rows have it.
        let names: Vec<&str> = wanted.iter().map(Wanted::column).collect();
        let options =
            ArrowReaderOptions::new().with_schema(as_dictionaries(&self.metadata, Some(&names)));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)
            .map_err(|error| wrong(&error))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_batch_size(BATCH);
        let mask = |names: &[&str]| {
            ProjectionMask::columns(builder.parquet_schema(), names.iter().copied())
        };
        let mut groups: Vec<usize> = self
            .least_times(column)
            .enumerate()
            .filter(|(_, least)| least.is_none_or(|least| least < before))
            .map(|(group, _)| group)
            .collect();
        for one in &wanted {
            if let Wanted::Whole(name, number) = one {
                groups.retain(|group| self.may_have(*group, name, *number));
            }
        }
        let tests: Vec<Box<dyn ArrowPredicate>> = wanted
            .into_iter()
            .map(|wanted| -> Box<dyn ArrowPredicate> {
                let mask = mask(&[wanted.column()]);
                match wanted {
                    Wanted::Text(_, test) => Box::new(ArrowPredicateFn::new(mask, move |batch| {
                        Ok(holding(batch.column(0), &*test))
                    })),
                    Wanted::Whole(name, number) => {
                        Box::new(ArrowPredicateFn::new(mask, move |batch| {
                            let values = whole(&batch, name);
                            Ok(values.map(|value| Some(value == Some(number))).collect())
                        }))
                    }
                }
            })
            .collect();
        let mask = mask(&columns);
        let reader = builder
            .with_projection(mask)
            .with_row_groups(groups)
            .with_row_filter(RowFilter::new(tests))
            .build()
            .map_err(|error| wrong(&error))?;
        Ok(Batches { reader, path: self.path.clone() })
    }

    /// Whether a row group may have a number in a column; yes if the file does not say.
    fn may_have(&self, group: usize, column: &str, number: i64) -> bool {
        let metadata = self.metadata.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        let range = || {
            let place = columns.iter().position(|one| one.name() == column)?;
            match metadata.row_groups().get(group)?.columns().get(place)?.statistics()? {
                Statistics::Int64(values) => Some(*values.min_opt()?..=*values.max_opt()?),
                _ => None,
            }
        };
        range().is_none_or(|range| range.contains(&number))
    }

    /// The runs of a file of `processed`, with what tells whether they have changed: all, or those of
    /// certain jobs and those whose number is not their own.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn runs(&self, of: Option<&RoaringBitmap>) -> Result<RunList<Known>, ArchiveError> {
        const COLUMNS: [&str; 5] =
            ["job_id_raw", "submit_time", "row_digest", "agent_coverage", "gpu_used_seconds"];
        let is_wanted = |job| of.is_none_or(|jobs| stand_in::is(job) || jobs.contains(job));
        let rows = usize::try_from(self.rows()).unwrap_or(0);
        let mut runs = Vec::with_capacity(if of.is_none() { rows } else { 0 });
        for batch in self.batches(Some(&COLUMNS), false)? {
            let batch = batch?;
            let (jobs, submits) = (whole(&batch, "job_id_raw"), times(&batch, "submit_time"));
            let shares = real(&batch, "agent_coverage").zip(real(&batch, "gpu_used_seconds"));
            let marks = whole(&batch, "row_digest").zip(shares);
            for ((job, submit), (digest, (coverage, gpu))) in jobs.zip(submits).zip(marks) {
                if let (Some(job), Some(submit), Some(digest)) = (job, submit, digest) {
                    let job = u32::try_from(job).unwrap_or(0);
                    if !is_wanted(job) {
                        continue;
                    }
                    let digest = i32::try_from(digest).unwrap_or(0);
                    #[allow(clippy::cast_possible_truncation, reason = "a share, to compare")]
                    let coverage = coverage.map(|share| share as f32);
                    let has_gpu_time = gpu.is_some();
                    runs.push(((job, submit), Known { digest, coverage, has_gpu_time }));
                }
            }
        }
        Ok(RunList::of(runs))
    }
}

/// For each row, whether its text is wanted; one without a text is not.
fn holding(column: &dyn Array, test: &dyn Fn(&str) -> bool) -> BooleanArray {
    let nothing = || BooleanArray::from(vec![false; column.len()]);
    let Some(texts) = column.as_dictionary_opt::<Int32Type>() else { return nothing() };
    let Some(values) = texts.values().as_string_opt::<i32>() else { return nothing() };
    let wanted: Vec<bool> = values.iter().map(|text| text.is_some_and(test)).collect();
    let is_wanted = |key: Option<usize>| key.and_then(|key| wanted.get(key).copied());
    texts.keys_iter().map(|key| Some(is_wanted(key).unwrap_or(false))).collect()
}

/// The same schema, with these texts, or all, as dictionaries: a name that stands in a million rows
/// is then one text and a million numbers.
fn as_dictionaries(
    metadata: &ArrowReaderMetadata,
    only: Option<&[&str]>,
) -> arrow_schema::SchemaRef {
    use arrow_schema::{DataType, Field, Schema};

    let fields: Vec<Field> = metadata
        .schema()
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 if only.is_none_or(|only| only.contains(&field.name().as_str())) => {
                let keys = Box::new(DataType::Int32);
                let kind = DataType::Dictionary(keys, Box::new(DataType::Utf8));
                Field::new(field.name(), kind, true)
            }
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()))
}

/// Rows of a file, some thousand at a time.
pub struct Batches {
    reader: ParquetRecordBatchReader,
    path: PathBuf,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.next()?.map_err(|error| content(&self.path, &error)))
    }
}

/// A file that cannot be read at the moment may be whole; one that ends too early is not.
fn unread(path: &Path, error: ParquetError) -> ArchiveError {
    let is_io = |error: &std::io::Error| error.kind() != std::io::ErrorKind::UnexpectedEof;
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) if is_io(&error) => super::shelf::at(path)(*error),
            Ok(error) => content(path, &error),
            Err(error) => content(path, &error),
        },
        error => content(path, &error),
    }
}

fn content(path: &Path, error: &dyn std::fmt::Display) -> ArchiveError {
    ArchiveError::Content { path: path.to_owned(), why: error.to_string() }
}
