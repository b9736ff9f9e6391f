//! What is packed here is read again by the decoders of the `parquet` crate.

use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterProperties;

use super::super::group::Groups;
use super::*;

/// A small generator of its own.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % below
    }

    fn wide(&mut self) -> i64 {
        let bits = self.below(64);
        let number = (self.below(1 << 31) << 33) | (self.below(1 << 31) << 2) | self.below(4);
        (number >> bits).cast_signed() * if self.below(2) == 0 { 1 } else { -1 }
    }
}

/// One row: a word, a text, a figure, a whole number, a real one, a truth.
type Line = (Option<String>, Option<String>, Option<i64>, Option<i64>, Option<f64>, Option<bool>);

fn chunks() -> Vec<Chunk> {
    vec![
        Chunk::new(Values::Words(Vec::new(), Texts::default()), 100, true, false),
        Chunk::new(Values::Texts(Vec::new(), Vec::new()), 100, true, false),
        Chunk::new(Values::Figures(Vec::new(), Numbers::default()), 100, true, false),
        Chunk::new(Values::Wholes(Vec::new()), 100, true, true),
        Chunk::new(Values::Reals(Vec::new()), 100, true, false),
        Chunk::new(Values::Truths(Vec::new()), 100, true, false),
    ]
}

fn written(groups: &[Vec<Line>]) -> File {
    written_by(groups, chunks(), usize::MAX)
}

/// A file that has such columns.
fn file() -> Groups<File> {
    let field = |name, kind| Field::new(name, kind, true);
    let schema = Arc::new(Schema::new(vec![
        field("word", DataType::Utf8),
        field("text", DataType::Utf8),
        field("figure", DataType::Int64),
        field("whole", DataType::Int64),
        field("real", DataType::Float64),
        field("truth", DataType::Boolean),
    ]));
    let properties = WriterProperties::builder().build();
    Groups::new(tempfile::tempfile().unwrap(), schema, properties).unwrap()
}

/// The groups, with pages of the texts and numbers that need no dictionary after so many rows.
fn written_by(groups: &[Vec<Line>], mut chunks: Vec<Chunk>, page: usize) -> File {
    let (mut file, mut press) = (file(), Press::new().unwrap());
    for lines in groups {
        for (count, lines) in lines.chunks(page.min(lines.len())).enumerate() {
            if count > 0 {
                // The others wait for the end of the group.
                for place in [1, 3, 4, 5] {
                    chunks[place].page(&mut press).unwrap();
                }
            }
            add(&mut chunks, lines);
        }
        file.pack(chunks.iter_mut(), &mut press, None).unwrap();
    }
    file.finish().unwrap()
}

/// Adds rows: texts and figures one by one, the other numbers by blocks.
fn add(chunks: &mut [Chunk], lines: &[Line]) {
    let [word, text, figure, whole, real, truth] = chunks else { panic!() };
    for line in lines {
        word.text(line.0.as_deref().map(str::as_bytes));
        text.text(line.1.as_deref().map(str::as_bytes));
        figure.whole(line.2);
    }
    for block in lines.chunks(WORD) {
        let put = |chunk: &mut Chunk, bits: &dyn Fn(&Line) -> Option<u64>| {
            let there =
                block.iter().rev().fold(0, |there, l| there << 1 | u64::from(bits(l).is_some()));
            let bits: Vec<u64> = block.iter().map(|line| bits(line).unwrap_or(7)).collect();
            chunk.numbers(there, &bits);
        };
        put(whole, &|line| line.3.map(i64::cast_unsigned));
        put(real, &|line| line.4.map(f64::to_bits));
        put(truth, &|line| line.5.map(u64::from));
    }
}

fn read(file: File) -> Vec<Line> {
    let mut lines = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let text = |place: usize| batch.column(place).as_string::<i32>().iter();
        let whole = |place: usize| batch.column(place).as_primitive::<Int64Type>().iter();
        let texts = text(0).zip(text(1)).zip(whole(2)).zip(whole(3));
        let reals = batch.column(4).as_primitive::<Float64Type>().iter();
        let rest = reals.zip(batch.column(5).as_boolean().iter());
        for ((((word, text), figure), whole), (real, truth)) in texts.zip(rest) {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            lines.push((owned(word), owned(text), figure, whole, real, truth));
        }
    }
    lines
}

fn lines(random: &mut Random, rows: u64, absent: u64, words: u64) -> Vec<Line> {
    let some = |random: &mut Random| random.below(100) >= absent;
    (0..rows)
        .map(|row| {
            let word = format!("w{}", random.below(words) * random.below(2));
            let text = "x".repeat(usize::try_from(random.below(40)).unwrap());
            let number = random.wide();
            (
                some(random).then_some(word),
                some(random).then_some(text),
                some(random).then_some(number % 7),
                some(random).then_some(if row % 3 == 0 { number } else { 1_792_195_205_000 }),
                some(random).then_some(f64::from_bits(number.cast_unsigned() >> 2)),
                some(random).then_some(row % 5 == 0),
            )
        })
        .collect()
}

#[test]
fn whatever_is_packed_is_read_again() {
    let mut random = Random(11);
    for rows in [1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 1000, 5000] {
        for (absent, words) in [(0, 1), (0, 300), (30, 5), (97, 5000), (100, 2)] {
            let first = lines(&mut random, rows, absent, words);
            let second = lines(&mut random, rows, 100 - absent, words);
            let expected = [first.clone(), second.clone()].concat();
            let case = format!("{rows} rows, {absent} % absent, {words} words");
            assert_eq!(read(written(&[first, second])), expected, "{case}");
        }
    }
}

#[test]
fn pages_and_columns_that_are_not_compressed_are_read_again() {
    let mut random = Random(5);
    for (page, absent) in [(1, 30), (7, 0), (64, 97), (100, 100)] {
        let first = lines(&mut random, 500, absent, 40);
        let second = lines(&mut random, 300, 100 - absent, 40);
        let expected = [first.clone(), second.clone()].concat();
        let plain = chunks().into_iter().map(Chunk::plain).collect();
        let file = written_by(&[first, second], plain, page);
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.try_clone().unwrap()).unwrap();
        for group in reader.metadata().row_groups() {
            let of_column = |column: &ColumnChunkMetaData| column.compression();
            assert!(group.columns().iter().map(of_column).all(|c| c == Compression::UNCOMPRESSED));
        }
        assert_eq!(read(file), expected, "{page} rows a page, {absent} % absent");
    }
}

#[test]
fn the_largest_and_the_smallest_numbers_are_packed_too() {
    let numbers = [0, i64::MIN, i64::MAX, -1, i64::MAX, i64::MIN, 1, 0];
    let line = |number: i64| (None, None, Some(number), Some(number), Some(f64::MAX), None);
    let all: Vec<Line> = numbers.map(line).to_vec();
    assert_eq!(read(written(std::slice::from_ref(&all))), all);
}

#[test]
fn a_word_that_ends_like_another_is_a_word_of_its_own() {
    let mut texts = Texts::default();
    let words: [&[u8]; 6] = [b"abc", b"bc", b"", b"c", b"\x01\x00\x00\x00c", b"abc"];
    let numbers = words.map(|word| texts.number(word));
    assert_eq!(numbers, [0, 1, 2, 3, 4, 0]);
}

#[test]
fn readers_are_told_the_range_and_how_many_have_none() {
    let line = |number: Option<i64>| (None, None, None, number, None, None);
    let file = written(&[vec![line(Some(5)), line(None), line(Some(-3))], vec![line(None)]]);
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let range = |group: usize| {
        let group = reader.metadata().row_group(group);
        match group.column(3).statistics().unwrap() {
            Statistics::Int64(range) => {
                (range.min_opt().copied(), range.max_opt().copied(), range.null_count_opt())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(range(0), (Some(-3), Some(5), Some(1)));
    assert_eq!(range(1), (None, None, Some(1)));
}

#[test]
fn figures_may_come_by_blocks() {
    let mut random = Random(3);
    for (rows, absent) in [(64, 0), (65, 0), (200, 30), (200, 99), (1000, 100)] {
        let figures: Vec<Option<i64>> =
            (0..rows).map(|_| (random.below(100) >= absent).then(|| random.wide() % 7)).collect();
        let mut chunks = chunks();
        for block in figures.chunks(WORD) {
            let there =
                block.iter().rev().fold(0, |there, one| there << 1 | u64::from(one.is_some()));
            let bits: Vec<u64> =
                block.iter().map(|one| one.map_or(7, i64::cast_unsigned)).collect();
            chunks[2].numbers(there, &bits);
            for (place, chunk) in chunks.iter_mut().enumerate().filter(|(place, _)| *place != 2) {
                match place {
                    0 | 1 => block.iter().for_each(|_| chunk.text(None)),
                    _ => chunk.numbers(0, &bits),
                }
            }
        }
        let expected: Vec<Line> =
            figures.iter().map(|figure| (None, None, *figure, None, None, None)).collect();
        let mut file = file();
        file.pack(chunks.iter_mut(), &mut Press::new().unwrap(), None).unwrap();
        assert_eq!(read(file.finish().unwrap()), expected, "{rows} rows, {absent} % absent");
    }
}
