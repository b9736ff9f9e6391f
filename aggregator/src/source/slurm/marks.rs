//! Where the delimiters and line ends of a text are, found sixteen bytes at a time: this is the
//! one loop that every byte of sacct's answer goes through.

use steward_common::slurm::sacct::DELIMITER;
use wide::u8x16;

/// The first of the control characters that are separators; the delimiter is the eighth of them.
const FIRST: u8 = DELIMITER - 7;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Marks that are written together, however many of them there are: to ask for each whether it is the
/// last costs more.
const AT_ONCE: usize = 4;

/// The places of all marks of a text.
#[derive(Default)]
pub struct Marks {
    /// Longer than is needed; it stays so, because to clear it would cost as much as to fill it.
    places: Vec<u32>,
    count: usize,
}

impl Marks {
    /// The places, in their order.
    #[must_use]
    pub fn places(&self) -> &[u32] {
        self.places.get(..self.count).unwrap_or_default()
    }

    /// Takes in the places of all delimiters and line ends of the text, instead of those that are there.
    /// Whether there are other separators in it, the control characters from 0x18 to 0x1e: hardly any
    /// text has them, and who wants to use them as marks of its own need not look at each.
    pub fn find(&mut self, text: &[u8]) -> bool {
        let (delimiter, line_end) = (u8x16::splat(DELIMITER), u8x16::splat(b'\n'));
        let first = u8x16::splat(FIRST);
        let mut least = u8x16::splat(u8::MAX);
        self.count = 0;
        let (blocks, tail) = text.as_chunks::<BLOCK>();
        let mut at = 0;
        for block in blocks {
            self.make_room();
            let mut found = 0u64;
            for (place, part) in block.as_chunks::<16>().0.iter().enumerate() {
                let part = u8x16::new(*part);
                least = least.min(part - first);
                let hit = part.simd_eq(delimiter) | part.simd_eq(line_end);
                found |= u64::from(hit.to_bitmask()) << (16 * place);
            }
            self.add(at, found);
            at += BLOCK as u32;
        }
        self.make_room();
        let is_mark = |byte: &u8| u64::from(*byte == DELIMITER || *byte == b'\n');
        self.add(at, tail.iter().rev().fold(0, |found, byte| found << 1 | is_mark(byte)));
        let is_separator = |over: u8| over < DELIMITER - FIRST;
        tail.iter().any(|byte| is_separator(byte.wrapping_sub(FIRST)))
            || least.to_array().into_iter().any(is_separator)
    }

    /// Makes room for a block, of which every byte may be a mark.
    #[inline]
    fn make_room(&mut self) {
        if self.places.len() < self.count + BLOCK {
            self.places.resize(self.places.len() * 2 + BLOCK, 0);
        }
    }

    /// Adds the marks of a block that begins at a place: those of which the bit is set.
    #[inline]
    fn add(&mut self, at: u32, found: u64) {
        let mut rest = found;
        let mut free = self.places.get_mut(self.count..).unwrap_or_default();
        while let Some((group, behind)) = free.split_first_chunk_mut::<AT_ONCE>() {
            for place in group {
                // Of nothing the number of zeros is of no use, but must be one.
                *place = at + (rest | 1 << (BLOCK - 1)).trailing_zeros();
                rest &= rest.wrapping_sub(1);
            }
            if rest == 0 {
                break;
            }
            free = behind;
        }
        self.count += found.count_ones() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_seen_wherever_they_stand() {
        let mut marks = Marks::default();
        for length in [1, 63, 64, 65, 200] {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = [b'x', DELIMITER, b'\n', 0x17, 0x20].repeat(40);
                    text.truncate(length);
                    text[at] = byte;
                    let expected = (0x18..=0x1e).contains(&byte);
                    assert_eq!(marks.find(&text), expected, "{length} {at} {byte}");
                }
            }
        }
    }

    #[test]
    fn every_mark_is_found_wherever_it_stands() {
        let mut marks = Marks::default();
        for length in 0..200usize {
            for step in 1..9usize {
                let text: Vec<u8> = (0..length)
                    .map(|i| match i % step {
                        0 if i % 2 == 0 => DELIMITER,
                        0 => b'\n',
                        _ => 0x9f,
                    })
                    .collect();
                let expected: Vec<u32> =
                    (0..length).filter(|i| i % step == 0).map(|i| i as u32).collect();
                marks.find(&text);
                assert_eq!(marks.places(), expected, "{length} {step}");
            }
        }
    }
}
