//! Values that come again and again: each is kept once, in the order in which they came, and has a
//! small number.

use std::ops::Range;

use twox_hash::XxHash3_64;

/// Places at first; twice as many when half are taken.
const PLACES: usize = 64;

/// Finds the number of a value by its hash.
#[derive(Debug, Default)]
struct Index {
    /// At a value's place its number and one more; 0 where there is none.
    places: Vec<u32>,
    /// The hash of each value.
    hashes: Vec<u32>,
}

impl Index {
    /// The number of the value with this hash for which `is` holds, or the next one.
    #[inline]
    fn find(&mut self, hash: u32, is: impl Fn(usize) -> bool) -> (u32, bool) {
        if self.hashes.len() * 2 >= self.places.len() {
            self.grow();
        }
        let mask = self.places.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        loop {
            match self.places.get_mut(place) {
                Some(0) | None => break,
                Some(number) => {
                    let number = *number - 1;
                    let known = self.hashes.get(number as usize) == Some(&hash);
                    if known && is(number as usize) {
                        return (number, false);
                    }
                }
            }
            place = (place + 1) & mask;
        }
        self.hashes.push(hash);
        let count = self.hashes.len() as u32;
        if let Some(free) = self.places.get_mut(place) {
            *free = count;
        }
        (count - 1, true)
    }

    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(PLACES);
        self.places.clear();
        self.places.resize(size, 0);
        for (hash, number) in self.hashes.iter().zip(1..) {
            let mut place = *hash as usize & (size - 1);
            while self.places.get(place).is_some_and(|taken| *taken != 0) {
                place = (place + 1) & (size - 1);
            }
            if let Some(free) = self.places.get_mut(place) {
                *free = number;
            }
        }
    }

    fn clear(&mut self) {
        self.places.clear();
        self.hashes.clear();
    }
}

/// Texts, as a dictionary page has them: each with its length before it.
#[derive(Debug, Default)]
pub struct Texts {
    index: Index,
    plain: Vec<u8>,
    ends: Vec<u32>,
    /// The one that came last, and where it stands: often it comes again.
    last: Option<(u32, Range<usize>)>,
}

impl Texts {
    /// The number of a text.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "any 32 bits of a hash will do")]
    pub fn number(&mut self, text: &[u8]) -> u32 {
        let Texts { index, plain, ends, last } = self;
        if let Some((number, place)) = last
            && place.len() == text.len()
            && plain.get(place.clone()) == Some(text)
        {
            return *number;
        }
        let place = |number: usize, ends: &[u32]| {
            let end = |number: usize| ends.get(number).map(|end| *end as usize);
            let start = 4 + number.checked_sub(1).and_then(end).unwrap_or(0);
            start..end(number).unwrap_or(start)
        };
        let (number, is_new) = index.find(XxHash3_64::oneshot(text) as u32, |number| {
            plain.get(place(number, ends)) == Some(text)
        });
        if is_new {
            plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
            plain.extend_from_slice(text);
            ends.push(plain.len() as u32);
        }
        *last = Some((number, place(number as usize, ends)));
        number
    }

    /// All of them, and how many there are.
    pub fn plain(&self) -> (&[u8], usize) {
        (&self.plain, self.ends.len())
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.index.clear();
        self.plain.clear();
        self.ends.clear();
        self.last = None;
    }
}

/// Numbers of eight bytes.
#[derive(Debug, Default)]
pub struct Numbers {
    index: Index,
    values: Vec<u64>,
    /// The one that came last: often it comes again.
    last: Option<(u32, u64)>,
}

impl Numbers {
    /// The number of a value.
    #[inline]
    pub fn number(&mut self, value: u64) -> u32 {
        let Numbers { index, values, last } = self;
        if let Some((number, same)) = *last
            && same == value
        {
            return number;
        }
        let hash = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        let (number, is_new) = index.find(hash, |number| values.get(number) == Some(&value));
        if is_new {
            values.push(value);
        }
        *last = Some((number, value));
        number
    }

    /// All of them as a dictionary page has them.
    pub fn plain(&self, out: &mut Vec<u8>) -> usize {
        out.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        self.values.len()
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.index.clear();
        self.values.clear();
        self.last = None;
    }
}
