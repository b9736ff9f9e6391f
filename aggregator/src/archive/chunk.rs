//! The values of one column in one row group: gathered, packed into pages, compressed.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::dictionary::{Numbers, Texts};
use super::pack;

/// How hard is compressed: more takes twice the time for a tenth less.
const LEVEL: i32 = 1;

/// Places of the compressor's table, as a power of two: one that stays in the innermost cache is a
/// sixth quicker than the usual one, for three hundredths more.
const HASH_LOG: u32 = 12;

/// What a page is made of, which decides how it is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matter {
    /// Texts.
    Texts,
    /// Packed numbers: what does not repeat in them is left as it is. It would get a tenth smaller, in
    /// twice the time.
    Numbers,
    /// What would not get smaller, or not by enough: it is not compressed at all.
    Plain,
}

impl Matter {
    /// How far the compressor goes on where nothing repeats. With none, as is usual, it goes step by step
    /// and then writes what does not repeat with fewer bits; with any it does not.
    fn stride(self) -> u32 {
        match self {
            Matter::Texts | Matter::Plain => 0,
            Matter::Numbers => 2,
        }
    }
}

/// What compresses pages, one after the other.
pub(super) struct Press {
    compressor: Compressor<'static>,
    /// For what it is set.
    matter: Matter,
    page: Vec<u8>,
    pressed: Vec<u8>,
}

impl Press {
    pub(super) fn new() -> Result<Press> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::HashLog(HASH_LOG))?;
        Ok(Press { compressor, matter: Matter::Texts, page: Vec::new(), pressed: Vec::new() })
    }

    /// How it compresses, for those who do it otherwise.
    pub(super) fn compression() -> Result<Compression> {
        Ok(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
    }

    /// The page that was put together, compressed as such a one is.
    fn press(&mut self, matter: Matter) -> Result<Bytes> {
        let mut pressed = std::mem::take(&mut self.pressed);
        pressed.clear();
        if matter == Matter::Plain {
            pressed.extend_from_slice(&self.page);
            return Ok(Bytes::from(pressed));
        }
        if matter != self.matter {
            self.compressor.set_parameter(CParameter::TargetLength(matter.stride()))?;
            self.matter = matter;
        }
        pressed.reserve(zstd::zstd_safe::compress_bound(self.page.len()));
        self.compressor.compress_to_buffer(&self.page, &mut pressed)?;
        Ok(Bytes::from(pressed))
    }

    /// Takes back the memory of a page that nobody else has any more.
    fn reclaim(&mut self, page: Bytes) {
        self.pressed = memory_of(page);
    }
}

/// The memory of bytes that nobody else has, to be used again: fresh memory costs more than most of
/// what is done with it.
fn memory_of(bytes: Bytes) -> Vec<u8> {
    let mut memory = bytes.try_into_mut().map(Vec::from).unwrap_or_default();
    memory.clear();
    memory
}

/// Pages of one column.
#[derive(Default)]
pub(super) struct Pages {
    sink: Option<TrackedWrite<Vec<u8>>>,
    /// Whether they are not compressed.
    are_plain: bool,
    /// Memory for the next ones.
    spare: Vec<u8>,
    dictionary: Option<i64>,
    data: Option<i64>,
    encodings: Vec<Encoding>,
    values: i64,
    unpressed: i64,
}

impl Pages {
    fn write(&mut self, page: Page, size: usize) -> Result<i64> {
        let Pages { sink, spare, .. } = self;
        let sink = sink.get_or_insert_with(|| TrackedWrite::new(std::mem::take(spare)));
        let written =
            SerializedPageWriter::new(sink).write_page(CompressedPage::new(page, size))?;
        self.unpressed += i64::try_from(written.uncompressed_size).unwrap_or(0);
        Ok(i64::try_from(written.offset).unwrap_or(0))
    }

    /// What a page counts as.
    fn matter(&self, matter: Matter) -> Matter {
        if self.are_plain { Matter::Plain } else { matter }
    }

    /// Adds the dictionary that `press.page` holds, before all other pages.
    fn dictionary(&mut self, press: &mut Press, matter: Matter, count: usize) -> Result<()> {
        let (encoding, num_values) = (Encoding::PLAIN, count as u32);
        let buf = press.press(self.matter(matter))?;
        let pressed = buf.clone();
        let page = Page::DictionaryPage { buf, num_values, encoding, is_sorted: false };
        self.dictionary = Some(self.write(page, press.page.len())?);
        press.reclaim(pressed);
        self.encodings.push(encoding);
        Ok(())
    }

    /// Adds the values that `press.page` holds, with their levels if there are any.
    fn data(
        &mut self,
        press: &mut Press,
        matter: Matter,
        encoding: Encoding,
        rows: usize,
    ) -> Result<()> {
        let pressed = press.press(self.matter(matter))?;
        let page = Page::DataPage {
            buf: pressed.clone(),
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let offset = self.write(page, press.page.len())?;
        press.reclaim(pressed);
        self.data.get_or_insert(offset);
        self.values += i64::try_from(rows).unwrap_or(0);
        for encoding in [encoding, Encoding::RLE] {
            if !self.encodings.contains(&encoding) {
                self.encodings.push(encoding);
            }
        }
        Ok(())
    }

    /// Adds them to the row group, as the next column. Their memory comes back.
    pub(super) fn append<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
        statistics: Option<Statistics>,
    ) -> Result<Vec<u8>> {
        let bytes = match self.sink {
            Some(sink) => Bytes::from(sink.into_inner()?),
            None => return Err(ParquetError::General(format!("{}: no page", column.name()))),
        };
        let size = bytes.len();
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(match self.are_plain {
                true => Compression::UNCOMPRESSED,
                false => Press::compression()?,
            })
            .set_encodings(self.encodings)
            .set_num_values(self.values)
            .set_total_compressed_size(i64::try_from(size).unwrap_or(i64::MAX))
            .set_total_uncompressed_size(self.unpressed)
            .set_data_page_offset(self.data.unwrap_or(0))
            .set_dictionary_page_offset(self.dictionary);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: size as u64,
            rows_written: u64::try_from(self.values).unwrap_or(0),
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&bytes, close)?;
        Ok(memory_of(bytes))
    }
}

/// Which rows have a value. Of most columns all have one, or none has: that needs no list.
#[derive(Default)]
struct Levels {
    /// What all rows have, as long as nothing is listed.
    alike: u8,
    /// One for each row, once not all are alike.
    listed: Vec<u8>,
}

impl Levels {
    /// Adds a row behind so many others.
    #[inline]
    fn push(&mut self, rows: usize, there: bool) {
        let there = u8::from(there);
        if there == self.alike && self.listed.is_empty() {
            return;
        }
        if rows == 0 {
            self.alike = there;
            return;
        }
        // Those before it, if they are not there yet.
        self.listed.resize(rows, self.alike);
        self.listed.push(there);
    }

    /// Appends those of so many rows, with their length before them.
    fn write(&self, rows: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.listed.is_empty() {
            true => pack::run(self.alike, rows, 1, out),
            false => pack::runs(&self.listed, 1, out),
        }
        let length = (out.len() - start - 4) as u32;
        if let Some(place) = out.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// Rows that a row group may have: so many different values have a number of sixteen bits.
pub(super) const MOST_ROWS: usize = 1 << 16;

/// The values of one column.
pub(super) enum Values {
    /// Texts of which there are few.
    Words(Vec<u16>, Texts),
    /// Texts that are mostly different.
    Texts(Vec<i64>, Vec<u8>),
    /// Numbers of which there are few, by their bits.
    Figures(Vec<u16>, Numbers),
    /// Whole numbers that are mostly different.
    Wholes(Vec<i64>),
    /// Numbers that are mostly different.
    Reals(Vec<f64>),
    /// Yes or no.
    Truths(Vec<bool>),
}

/// A column of a row group while its values come in.
pub(super) struct Chunk {
    levels: Option<Levels>,
    values: Values,
    rows: usize,
    /// Apart, so that what is needed for each row is close together.
    pages: Box<Pages>,
    /// Least, greatest and number of absent values, of columns by which is searched.
    range: Option<(Option<(i64, i64)>, u64)>,
}

impl Chunk {
    /// Begins one of about so many rows, whose values may be absent if `nullable`; its range is told
    /// if `ranged`. What grows step by step touches several times the memory that it needs.
    pub(super) fn new(mut values: Values, rows: usize, nullable: bool, ranged: bool) -> Chunk {
        let levels = nullable.then(Levels::default);
        match &mut values {
            Values::Words(numbers, _) | Values::Figures(numbers, _) => numbers.reserve(rows),
            Values::Texts(lengths, _) => lengths.reserve(rows),
            Values::Wholes(wholes) => wholes.reserve(rows),
            Values::Reals(reals) => reals.reserve(rows),
            Values::Truths(truths) => truths.reserve(rows),
        }
        Chunk { levels, values, rows: 0, pages: Box::default(), range: ranged.then_some((None, 0)) }
    }

    /// The same, but its pages are not compressed: they would not get much smaller.
    pub(super) fn plain(mut self) -> Chunk {
        self.pages.are_plain = true;
        self
    }

    #[inline]
    fn row(&mut self, there: bool) {
        if let Some(levels) = &mut self.levels {
            levels.push(self.rows, there);
        }
        self.rows += 1;
    }

    /// Adds a text, or that there is none.
    #[inline]
    pub(super) fn text(&mut self, text: Option<&[u8]>) {
        self.row(text.is_some());
        match (&mut self.values, text) {
            (Values::Words(numbers, words), Some(text)) => numbers.push(words.number(text) as u16),
            (Values::Texts(lengths, bytes), Some(text)) => {
                lengths.push(i64::try_from(text.len()).unwrap_or(0));
                bytes.extend_from_slice(text);
            }
            _ => {}
        }
    }

    /// Adds the text that `write` appends, unless that says no.
    #[inline]
    pub(super) fn written(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let Values::Texts(lengths, bytes) = &mut self.values else { return false };
        let before = bytes.len();
        if !write(bytes) {
            bytes.truncate(before);
            return false;
        }
        lengths.push(i64::try_from(bytes.len() - before).unwrap_or(0));
        self.row(true);
        true
    }

    /// Adds a whole number, or that there is none.
    #[inline]
    pub(super) fn whole(&mut self, number: Option<i64>) {
        self.row(number.is_some());
        match (&mut self.range, number) {
            (Some((range, _)), Some(number)) => {
                let (least, most) = range.unwrap_or((number, number));
                *range = Some((least.min(number), most.max(number)));
            }
            (Some((_, absent)), None) => *absent += 1,
            (None, _) => {}
        }
        match (&mut self.values, number) {
            (Values::Wholes(wholes), Some(number)) => wholes.push(number),
            (Values::Figures(numbers, figures), Some(number)) => {
                numbers.push(figures.number(number.cast_unsigned()) as u16);
            }
            _ => {}
        }
    }

    /// Adds a number, or that there is none.
    #[inline]
    pub(super) fn real(&mut self, number: Option<f64>) {
        self.row(number.is_some());
        match (&mut self.values, number) {
            (Values::Reals(reals), Some(number)) => reals.push(number),
            (Values::Figures(numbers, figures), Some(number)) => {
                numbers.push(figures.number(number.to_bits()) as u16);
            }
            _ => {}
        }
    }

    /// Adds a yes or no, or that there is none.
    #[inline]
    pub(super) fn truth(&mut self, truth: Option<bool>) {
        self.row(truth.is_some());
        if let (Values::Truths(truths), Some(truth)) = (&mut self.values, truth) {
            truths.push(truth);
        }
    }

    /// How many rows wait to be packed.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How much text waits to be packed.
    pub(super) fn text_size(&self) -> usize {
        match &self.values {
            Values::Texts(_, bytes) => bytes.len(),
            Values::Words(_, words) => words.plain().0.len(),
            _ => 0,
        }
    }

    /// Packs what has come in so far into a page. Those of few values wait for all of them.
    pub(super) fn page(&mut self, press: &mut Press) -> Result<()> {
        press.page.clear();
        let dictionary = match &self.values {
            Values::Words(_, words) => {
                let (plain, count) = words.plain();
                press.page.extend_from_slice(plain);
                Some(count)
            }
            Values::Figures(_, figures) => Some(figures.plain(&mut press.page)),
            _ => None,
        };
        // Nothing is known of nothing: such a page has only levels.
        let dictionary = dictionary.filter(|count| *count > 0);
        if let Some(count) = dictionary {
            let matter = match &self.values {
                Values::Words(..) => Matter::Texts,
                _ => Matter::Numbers,
            };
            self.pages.dictionary(press, matter, count)?;
            press.page.clear();
        }
        if let Some(levels) = &self.levels {
            levels.write(self.rows, &mut press.page);
        }
        let page = &mut press.page;
        let encoding = match &mut self.values {
            Values::Words(numbers, _) | Values::Figures(numbers, _) => match dictionary {
                Some(count) => {
                    let width = pack::width(count.saturating_sub(1) as u64);
                    page.push(width as u8);
                    pack::runs(numbers, width, page);
                    numbers.clear();
                    Encoding::RLE_DICTIONARY
                }
                None => Encoding::PLAIN,
            },
            Values::Texts(lengths, bytes) => {
                pack::differences(lengths, page);
                page.extend_from_slice(bytes);
                lengths.clear();
                bytes.clear();
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
            Values::Wholes(wholes) => {
                pack::differences(wholes, page);
                wholes.clear();
                Encoding::DELTA_BINARY_PACKED
            }
            Values::Reals(reals) => {
                pack::apart(reals, page);
                reals.clear();
                Encoding::BYTE_STREAM_SPLIT
            }
            Values::Truths(truths) => {
                pack::truths(truths, page);
                truths.clear();
                Encoding::PLAIN
            }
        };
        let matter = match &self.values {
            Values::Texts(..) => Matter::Texts,
            _ => Matter::Numbers,
        };
        self.pages.data(press, matter, encoding, std::mem::take(&mut self.rows))?;
        if let Some(levels) = &mut self.levels {
            levels.listed.clear();
        }
        Ok(())
    }

    /// Adds all of it to the row group, and begins anew.
    pub(super) fn append<W: Write + Send>(
        &mut self,
        press: &mut Press,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
    ) -> Result<()> {
        if self.rows > 0 {
            self.page(press)?;
        }
        let statistics = self.range.as_mut().map(|told| {
            let (range, absent) = std::mem::take(told);
            let (least, most) = range.unzip();
            Statistics::int64(least, most, None, Some(absent), false)
        });
        match &mut self.values {
            Values::Words(_, words) => words.clear(),
            Values::Figures(_, figures) => figures.clear(),
            _ => {}
        }
        let are_plain = self.pages.are_plain;
        let spare = std::mem::take(&mut *self.pages).append(group, column, statistics)?;
        *self.pages = Pages { spare, are_plain, ..Pages::default() };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
