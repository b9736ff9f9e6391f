//! Values that come again and again: each is kept once, in the order in which they came, and has a
//! small number.
//!
//! A row group has tens of these, which together fit into no cache: what is needed to know a value
//! stands in as few places as can be.

use std::num::NonZeroU32;

use steward_common::alike::same;
use twox_hash::XxHash3_64;

/// Places at first; twice as many when half are taken.
const PLACES: usize = 64;

/// The number of a value and one more, so that a free place needs no room to say so.
#[derive(Debug, Clone, Copy)]
struct Number(NonZeroU32);

impl Number {
    /// That of a value before which there are so many.
    fn behind(count: usize) -> Number {
        Number(NonZeroU32::MIN.saturating_add(count as u32))
    }

    #[inline]
    fn get(self) -> u32 {
        self.0.get() - 1
    }
}

/// Values by their hash.
#[derive(Debug)]
struct Table<T> {
    places: Vec<Option<T>>,
    taken: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { places: Vec::new(), taken: 0 }
    }
}

impl<T: Copy> Table<T> {
    /// The value with this hash for which `is` holds, or the new one, before which there are so many,
    /// and whether it is that.
    #[inline]
    fn find(
        &mut self,
        hash: u32,
        hash_of: impl Fn(&T) -> u32,
        is: impl Fn(&T) -> bool,
        new: impl FnOnce(usize) -> T,
    ) -> (T, bool) {
        if self.taken * 2 >= self.places.len() {
            self.grow(hash_of);
        }
        let mask = self.places.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(Some(entry)) = self.places.get(place) {
            if is(entry) {
                return (*entry, false);
            }
            place = (place + 1) & mask;
        }
        let entry = new(self.taken);
        if let Some(free) = self.places.get_mut(place) {
            *free = Some(entry);
        }
        self.taken += 1;
        (entry, true)
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(&T) -> u32) {
        let size = (self.places.len() * 2).max(PLACES);
        let before = std::mem::replace(&mut self.places, vec![None; size]);
        for entry in before.into_iter().flatten() {
            let mut place = hash_of(&entry) as usize & (size - 1);
            while self.places.get(place).is_some_and(Option::is_some) {
                place = (place + 1) & (size - 1);
            }
            if let Some(free) = self.places.get_mut(place) {
                *free = Some(entry);
            }
        }
    }

    /// Frees all places; the next values are about as many.
    fn clear(&mut self) {
        self.places.fill(None);
        self.taken = 0;
    }
}

/// A text of a dictionary, in as little room as can be: most of the work is to wait for the memory that
/// holds it.
#[derive(Debug, Clone, Copy)]
struct Word {
    /// Where it begins; its length stands before it.
    start: NonZeroU32,
    number: u16,
    /// A part of its hash.
    tag: u16,
}

impl Word {
    /// The text, in a page that holds it.
    fn text<'p>(&self, plain: &'p [u8]) -> &'p [u8] {
        let start = self.start.get() as usize;
        let length = plain.get(start - 4..).and_then(<[u8]>::first_chunk);
        let length = length.map_or(0, |length| u32::from_le_bytes(*length) as usize);
        plain.get(start..start + length).unwrap_or_default()
    }

    /// Whether it is this text, in a page that holds it.
    #[inline]
    fn is(&self, text: &[u8], plain: &[u8]) -> bool {
        let start = self.start.get() as usize;
        let known = plain.get(start - 4..start + text.len()).and_then(<[u8]>::split_first_chunk);
        known.is_some_and(|(length, known)| {
            u32::from_le_bytes(*length) as usize == text.len() && same(known, text)
        })
    }
}

/// Texts, as a dictionary page has them: each with its length before it. There are no more than rows in a
/// row group ([`MOST_ROWS`](super::chunk::MOST_ROWS)).
#[derive(Debug, Default)]
pub struct Texts {
    words: Table<Word>,
    plain: Vec<u8>,
    /// The one that came last: often it comes again.
    last: Option<Word>,
}

impl Texts {
    /// The number of a text.
    #[inline(always)]
    pub fn number(&mut self, text: &[u8]) -> u16 {
        match self.last.filter(|last| last.is(text, &self.plain)) {
            Some(last) => last.number,
            None => self.look_up(text),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, text: &[u8]) -> u16 {
        let Texts { words, plain, last } = self;
        let hash = hash_of_text(text);
        let tag = (hash >> 16) as u16;
        let start = NonZeroU32::MIN.saturating_add(plain.len() as u32 + 3);
        let new = |count| Word { start, number: count as u16, tag };
        let is = |word: &Word| word.tag == tag && word.is(text, plain);
        let (word, is_new) = words.find(hash, |word| hash_of_text(word.text(plain)), is, new);
        if is_new {
            plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
            plain.extend_from_slice(text);
        }
        *last = Some(word);
        word.number
    }

    /// All of them, and how many there are.
    pub fn plain(&self) -> (&[u8], usize) {
        (&self.plain, self.words.taken)
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.words.clear();
        self.plain.clear();
        self.last = None;
    }
}

/// Most texts are names, for which the usual hash takes longer than all the rest.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "any 32 bits of a hash will do")]
fn hash_of_text(text: &[u8]) -> u32 {
    let (first, last) = match text.len() {
        8..=16 => (text.first_chunk().copied(), text.last_chunk().copied()),
        4..8 => {
            let wide = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four)).to_le_bytes();
            (text.first_chunk().map(wide), text.last_chunk().map(wide))
        }
        1..4 => {
            let wide = |one: &u8| u64::from(*one).to_le_bytes();
            let middle = text.get(text.len() / 2..).and_then(|rest| rest.first());
            let ends = text.first().zip(text.last());
            (ends.map(|(first, last)| [*first, *last, 0, 0, 0, 0, 0, 0]), middle.map(wide))
        }
        _ => (None, None),
    };
    match (first.map(u64::from_le_bytes), last.map(u64::from_le_bytes)) {
        (Some(first), Some(last)) => {
            let mixed = u128::from(first ^ FIRST) * u128::from(last ^ LAST ^ text.len() as u64);
            ((mixed >> 64) as u64 ^ mixed as u64) as u32
        }
        _ => XxHash3_64::oneshot(text) as u32,
    }
}

/// Any numbers with about as many ones as zeros.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const LAST: u64 = 0xd1b5_4a32_d192_ed03;

/// Numbers of eight bytes. There are no more than rows in a row group.
#[derive(Debug, Default)]
pub struct Numbers {
    numbers: Table<Number>,
    values: Vec<u64>,
}

#[inline]
fn hash_of(value: u64) -> u32 {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Numbers {
    /// Appends the number of each of these values.
    pub fn number_all(&mut self, all: &[u64], out: &mut Vec<u16>) {
        let Numbers { numbers, values } = self;
        let mut last = None;
        out.extend(all.iter().map(|value| match last {
            // Often the one before comes again.
            Some((before, number)) if before == *value => number,
            _ => {
                let known = |number: &Number| values.get(number.get() as usize).copied();
                let (number, is_new) = numbers.find(
                    hash_of(*value),
                    |number| known(number).map_or(0, hash_of),
                    |number| known(number) == Some(*value),
                    Number::behind,
                );
                if is_new {
                    values.push(*value);
                }
                let number = number.get() as u16;
                last = Some((*value, number));
                number
            }
        }));
    }

    /// All of them as a dictionary page has them.
    pub fn plain(&self, out: &mut Vec<u8>) -> usize {
        out.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        self.values.len()
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.values.clear();
    }
}
