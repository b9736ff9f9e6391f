//! Pages of a column: what was packed, compressed and put in a row.

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

/// How hard is compressed: more takes twice the time for a tenth less.
const LEVEL: i32 = 1;

/// Places of the compressor's table, as a power of two: one that stays in the innermost cache is a
/// sixth quicker than the usual one, for three hundredths more.
const HASH_LOG: u32 = 12;

/// What a page is made of, which decides how it is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Matter {
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
    /// What is put together to be compressed.
    pub(super) page: Vec<u8>,
    pressed: Vec<u8>,
    /// Memory for numbers of values.
    pub(super) numbers: Vec<u16>,
}

impl Press {
    pub(super) fn new() -> Result<Press> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::HashLog(HASH_LOG))?;
        let (page, pressed, numbers) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Press { compressor, matter: Matter::Texts, page, pressed, numbers })
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
    pub(super) are_plain: bool,
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
    pub(super) fn dictionary(
        &mut self,
        press: &mut Press,
        matter: Matter,
        count: usize,
    ) -> Result<()> {
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
    pub(super) fn data(
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

    /// Adds them to the row group, as the next column, and begins anew.
    pub(super) fn append<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
        statistics: Option<Statistics>,
    ) -> Result<()> {
        let Pages { sink, are_plain, dictionary, data, encodings, values, unpressed, .. } =
            std::mem::take(self);
        let bytes = match sink {
            Some(sink) => Bytes::from(sink.into_inner()?),
            None => return Err(ParquetError::General(format!("{}: no page", column.name()))),
        };
        let size = bytes.len();
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(match are_plain {
                true => Compression::UNCOMPRESSED,
                false => Press::compression()?,
            })
            .set_encodings(encodings)
            .set_num_values(values)
            .set_total_compressed_size(i64::try_from(size).unwrap_or(i64::MAX))
            .set_total_uncompressed_size(unpressed)
            .set_data_page_offset(data.unwrap_or(0))
            .set_dictionary_page_offset(dictionary);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: size as u64,
            rows_written: u64::try_from(values).unwrap_or(0),
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&bytes, close)?;
        *self = Pages { spare: memory_of(bytes), are_plain, ..Pages::default() };
        Ok(())
    }
}
