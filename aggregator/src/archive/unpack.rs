//! Columns of row groups, read whole and unpacked page by page, by one decompressor for all.
//!
//! Left to itself the `parquet` crate opens a compressor and a decompressor for each column of each
//! row group, and asks the file twice for every page: a quarter of what it costs to sum up a month.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

/// No page is larger: a file that says so is damaged.
const LARGEST: u64 = 1 << 31;

/// Row groups of a file.
pub(super) struct Groups {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// Which.
    pub(super) groups: Vec<usize>,
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        let rows = self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let Groups { file, metadata, groups } = self;
        Ok(Box::new(Chunks {
            file: Arc::clone(file),
            metadata: Arc::clone(metadata),
            groups: groups.clone().into_iter(),
            column,
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        let all = self.metadata.row_groups();
        Box::new(self.groups.iter().filter_map(|group| all.get(*group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// A column of row groups, one after the other.
struct Chunks {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    groups: std::vec::IntoIter<usize>,
    column: usize,
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.groups.next()?)?;
        let chunk = group.columns().get(self.column)?;
        let pages = Pages::new(&self.file, chunk, group.num_rows());
        Some(pages.map(|pages| Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for Chunks {}

/// The pages of a column of a row group.
struct Pages {
    /// As they are packed, if we can unpack them.
    pages: SerializedPageReader<Bytes>,
    is_packed: bool,
}

impl Pages {
    fn new(file: &File, chunk: &ColumnChunkMetaData, rows: i64) -> Result<Pages> {
        let number = |number: i64| {
            usize::try_from(number).map_err(|_| wrong("a place or a size that cannot be"))
        };
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let mut bytes = vec![0; number(chunk.compressed_size())?];
        file.read_exact_at(&mut bytes, number(start)? as u64)?;
        let is_packed = matches!(chunk.compression(), Compression::ZSTD(_));
        let mut own = chunk
            .clone()
            .into_builder()
            .set_data_page_offset(chunk.data_page_offset() - start)
            .set_dictionary_page_offset(chunk.dictionary_page_offset().map(|at| at - start));
        if is_packed {
            own = own.set_compression(Compression::UNCOMPRESSED);
        }
        let bytes = Arc::new(Bytes::from(bytes));
        let pages = SerializedPageReader::new(bytes, &own.build()?, number(rows)?, None)?;
        Ok(Pages { pages, is_packed })
    }

    fn unpacked(&self, page: Option<Page>) -> Result<Option<Page>> {
        match page {
            Some(page) if self.is_packed => Ok(Some(unpacked(page)?)),
            page => Ok(page),
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.unpacked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.unpacked(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// The same page with its bytes unpacked.
fn unpacked(mut page: Page) -> Result<Page> {
    match &mut page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => *buf = unpack(&[], buf)?,
        // Its levels stand before what is packed.
        Page::DataPageV2 {
            buf, def_levels_byte_len, rep_levels_byte_len, is_compressed, ..
        } => {
            let levels = (*def_levels_byte_len + *rep_levels_byte_len) as usize;
            if *is_compressed && levels < buf.len() {
                let values = buf.split_off(levels);
                *buf = unpack(buf, &values)?;
            }
        }
    }
    Ok(page)
}

thread_local! {
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// These bytes, and behind them those that are packed here.
fn unpack(before: &[u8], packed: &[u8]) -> Result<Bytes> {
    let damaged = || wrong("a page that is not packed by zstd");
    let size = match get_frame_content_size(packed).map_err(|_| damaged())? {
        Some(size) if size <= LARGEST => usize::try_from(size).map_err(|_| damaged())?,
        Some(_) => return Err(damaged()),
        // Who writes as it comes does not know the size before.
        None => {
            let values = zstd::stream::decode_all(packed)?;
            return Ok(Bytes::from([before, &values].concat()));
        }
    };
    let mut page = Vec::with_capacity(before.len() + size);
    page.extend_from_slice(before);
    DECOMPRESSOR.with_borrow_mut(|decompressor| -> io::Result<()> {
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            None => decompressor.insert(Decompressor::new()?),
        };
        let mut behind = io::Cursor::new(&mut page);
        behind.set_position(before.len() as u64);
        decompressor.decompress_to_buffer(packed, &mut behind)?;
        Ok(())
    })?;
    Ok(Bytes::from(page))
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(format!("there is {what}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::ZstdLevel;
    use parquet::file::properties::{WriterProperties, WriterVersion};

    use super::super::cells::{texts, whole};
    use super::super::read::Table;
    use super::*;

    fn batch() -> RecordBatch {
        let numbers = Int64Array::from_iter((0..5000).map(|n| (n % 3 != 0).then_some(n * 7919)));
        let words =
            StringArray::from_iter((0..5000).map(|n| (n % 5 != 0).then(|| format!("w{}", n % 40))));
        RecordBatch::try_from_iter_with_nullable([
            ("number", Arc::new(numbers) as _, true),
            ("word", Arc::new(words) as _, true),
        ])
        .unwrap()
    }

    fn read_again(properties: WriterProperties) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let batch = batch();
        let properties = Some(properties);
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), properties).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
        let (mut numbers, mut words) = (Vec::new(), Vec::new());
        for batch in table.batches(Some(&["number", "word"]), true).unwrap() {
            let batch = batch.unwrap();
            numbers.extend(whole(&batch, "number"));
            words.extend(texts(&batch, "word").map(|word| word.map(str::to_owned)));
        }
        assert!(numbers.into_iter().eq(whole(&batch, "number")));
        let words: Vec<Option<&str>> = words.iter().map(Option::as_deref).collect();
        assert!(words.into_iter().eq(texts(&batch, "word")));
    }

    #[test]
    fn pages_of_each_kind_are_unpacked() {
        let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for compression in [zstd, Compression::UNCOMPRESSED] {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(compression)
                    .set_max_row_group_row_count(Some(1900))
                    .set_data_page_row_count_limit(300)
                    .set_write_batch_size(100);
                read_again(properties.build());
            }
        }
    }

    #[test]
    fn a_page_of_unknown_size_is_unpacked() {
        let text = b"levels, then what is packed".repeat(100);
        let packed = zstd::stream::encode_all(&text[6..], 1).unwrap();
        assert_eq!(get_frame_content_size(&packed).unwrap(), None);
        assert_eq!(unpack(&text[..6], &packed).unwrap(), text);
        assert!(unpack(&[], b"no zstd at all").is_err());
    }
}
