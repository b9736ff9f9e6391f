//! The values of one column in one row group: gathered, packed into pages, compressed.

use std::io::Write;

use parquet::basic::Encoding;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::dictionary::{Numbers, Texts};
use super::pack;
use super::pages::{Matter, Pages, Press};

/// Rows of which one word says whether they have a value.
const WORD: usize = u64::BITS as usize;

/// Which rows have a value. Of most columns all have one, or none has: that needs no list.
#[derive(Default)]
struct Levels {
    /// What all rows have, as long as nothing is listed.
    alike: bool,
    /// A bit for each row, the lowest first, once not all are alike.
    listed: Vec<u64>,
}

impl Levels {
    /// Adds a row behind so many others.
    #[inline(always)]
    fn push(&mut self, rows: usize, there: bool) {
        if there != self.alike || !self.listed.is_empty() {
            self.list(rows, there);
        }
    }

    #[inline(never)]
    fn list(&mut self, rows: usize, there: bool) {
        if rows == 0 {
            self.alike = there;
            return;
        }
        if self.listed.is_empty() {
            self.list_before(rows);
        }
        match self.listed.last_mut() {
            Some(last) if !rows.is_multiple_of(WORD) => *last |= u64::from(there) << (rows % WORD),
            _ => self.listed.push(u64::from(there)),
        }
    }

    /// Adds so many rows, up to 64, behind others of which the last word is full.
    fn push_word(&mut self, rows: usize, there: u64, count: usize) {
        let all = u64::MAX.unbounded_shr((WORD - count) as u32);
        if rows == 0 && self.listed.is_empty() {
            self.alike = there != 0;
        }
        let alike = if self.alike { all } else { 0 };
        if there == alike && self.listed.is_empty() {
            return;
        }
        if self.listed.is_empty() {
            self.list_before(rows);
        }
        self.listed.push(there);
    }

    /// Lists so many rows that are alike.
    #[cold]
    fn list_before(&mut self, rows: usize) {
        let word = if self.alike { u64::MAX } else { 0 };
        self.listed.resize(rows / WORD, word);
        if !rows.is_multiple_of(WORD) {
            self.listed.push(word & !(u64::MAX << (rows % WORD)));
        }
    }

    /// Appends those of so many rows, with their length before them, and begins anew.
    fn write(&mut self, rows: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.listed.is_empty() {
            true => pack::run(self.alike, rows, 1, out),
            false => pack::packed(&self.listed, rows, out),
        }
        self.listed.clear();
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
    /// Numbers of which there are few, by their bits. They are looked up when they are packed: one after
    /// the other, so that what is needed for that stays in the innermost cache.
    Figures(Vec<u64>, Numbers),
    /// Whole numbers that are mostly different.
    Wholes(Vec<i64>),
    /// Numbers that are mostly different.
    Reals(Vec<f64>),
    /// Yes or no.
    Truths(Vec<bool>),
}

impl Values {
    /// Adds numbers or truths by their bits.
    fn extend(&mut self, bits: impl Iterator<Item = u64>) {
        match self {
            Values::Figures(figures, _) => figures.extend(bits),
            Values::Wholes(wholes) => wholes.extend(bits.map(u64::cast_signed)),
            Values::Reals(reals) => reals.extend(bits.map(f64::from_bits)),
            Values::Truths(truths) => truths.extend(bits.map(|bits| bits != 0)),
            Values::Words(..) | Values::Texts(..) => {}
        }
    }
}

/// A column of a row group while its values come in.
pub(super) struct Chunk {
    levels: Option<Levels>,
    values: Values,
    rows: usize,
    /// Apart, so that what is needed for each row is close together.
    pages: Box<Pages>,
    /// Least, greatest and number of absent values of what was packed, of columns by which is searched.
    range: Option<(Option<(i64, i64)>, u64)>,
}

impl Chunk {
    /// Begins one of about so many rows, whose values may be absent if `nullable`; its range is told
    /// if they are whole numbers and `ranged`. What grows step by step touches several times the memory
    /// that it needs.
    pub(super) fn new(mut values: Values, rows: usize, nullable: bool, ranged: bool) -> Chunk {
        debug_assert!(!ranged || matches!(values, Values::Wholes(_)), "only theirs is known");
        let levels = nullable.then(Levels::default);
        match &mut values {
            Values::Words(numbers, _) => numbers.reserve(rows),
            Values::Figures(figures, _) => figures.reserve(rows),
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

    #[inline(always)]
    fn row(&mut self, there: bool) {
        if let Some(levels) = &mut self.levels {
            levels.push(self.rows, there);
        }
        self.rows += 1;
    }

    /// Adds a text, or that there is none.
    #[inline(always)]
    pub(super) fn text(&mut self, text: Option<&[u8]>) {
        self.row(text.is_some());
        match (&mut self.values, text) {
            (Values::Words(numbers, words), Some(text)) => numbers.push(words.number(text)),
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
        match (&mut self.values, number) {
            (Values::Wholes(wholes), Some(number)) => wholes.push(number),
            (Values::Figures(figures, _), Some(number)) => figures.push(number.cast_unsigned()),
            _ => {}
        }
    }

    /// Adds a number, or a truth, by its bits for each of 64 rows; those that have none have no bit in
    /// `there`. Only the last ones of a page may be fewer.
    pub(super) fn numbers(&mut self, there: u64, bits: &[u64]) {
        debug_assert!(self.rows.is_multiple_of(WORD), "behind whole blocks");
        let all = u64::MAX.unbounded_shr((WORD - bits.len()) as u32);
        if let Some(levels) = &mut self.levels {
            levels.push_word(self.rows, there, bits.len());
        }
        self.rows += bits.len();
        let values = &mut self.values;
        if there == all {
            values.extend(bits.iter().copied());
        } else if there != 0 {
            let is_there = |row: usize| there >> row & 1 == 1;
            values
                .extend(bits.iter().enumerate().filter(|(row, _)| is_there(*row)).map(|(_, b)| *b));
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
        let rows = std::mem::take(&mut self.rows);
        let numbers = match &mut self.values {
            Values::Words(numbers, _) => std::mem::take(numbers),
            Values::Figures(figures, known) => {
                let mut numbers = std::mem::take(&mut press.numbers);
                known.number_all(figures, &mut numbers);
                figures.clear();
                numbers
            }
            _ => Vec::new(),
        };
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
            let are_words = matches!(self.values, Values::Words(..));
            let matter = if are_words { Matter::Texts } else { Matter::Numbers };
            self.pages.dictionary(press, matter, count)?;
            press.page.clear();
        }
        if let Some(levels) = &mut self.levels {
            levels.write(rows, &mut press.page);
        }
        let page = &mut press.page;
        let are_texts = matches!(self.values, Values::Texts(..));
        let encoding = match &mut self.values {
            Values::Words(..) | Values::Figures(..) => match dictionary {
                Some(count) => {
                    let width = pack::width(count.saturating_sub(1) as u64);
                    page.push(width as u8);
                    pack::runs(&numbers, width, page);
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
                if let Some(range) = &mut self.range {
                    widen(range, wholes, rows);
                }
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
        self.take_back(numbers, press);
        let matter = if are_texts { Matter::Texts } else { Matter::Numbers };
        self.pages.data(press, matter, encoding, rows)
    }

    /// Takes the memory of numbers that were packed back to where it came from.
    fn take_back(&mut self, mut numbers: Vec<u16>, press: &mut Press) {
        numbers.clear();
        match &mut self.values {
            Values::Words(own, _) => *own = numbers,
            Values::Figures(..) => press.numbers = numbers,
            _ => {}
        }
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
        self.pages.append(group, column, statistics)
    }
}

/// Takes these numbers, of so many rows, into a range.
fn widen((range, absent): &mut (Option<(i64, i64)>, u64), numbers: &[i64], rows: usize) {
    let ends = numbers.iter().copied().min().zip(numbers.iter().copied().max());
    if let Some((least, most)) = ends {
        let (low, high) = range.unwrap_or((least, most));
        *range = Some((low.min(least), high.max(most)));
    }
    *absent += (rows - numbers.len()) as u64;
}

#[cfg(test)]
mod tests;
