//! The lists of what a step used, and the figures in them.

use steward_common::slurm::tres::comma;
use wide::u8x16;

use super::line::{FIGURE, part, put};

/// A figure of a list, and what follows in the text.
#[derive(Clone, Copy)]
pub struct Figure<'b> {
    /// From its first character on.
    pub text: &'b [u8],
    /// How many of them are its own.
    pub length: usize,
}

impl<'b> Figure<'b> {
    /// The figure that begins behind this word, and what follows behind it: it ends at a comma.
    #[inline]
    pub fn behind<const N: usize>(
        text: &'b [u8],
        word: &'static [u8; N],
    ) -> Option<(Figure<'b>, &'b [u8])> {
        let (head, text) = text.split_first_chunk::<N>()?;
        let length = if head == word { comma_in(text)? } else { 0 };
        let rest = text.get(length..)?;
        (length > 0).then_some((Figure { text, length }, rest))
    }

    /// The figure alone.
    #[inline]
    pub fn said(&self) -> &'b [u8] {
        part(self.text, 0..self.length)
    }

    /// Whether it is two or more.
    #[inline]
    pub fn has_comma(&self) -> bool {
        match commas(self.text) {
            Some(commas) if self.length <= FIGURE => {
                (commas.trailing_zeros() as usize) < self.length
            }
            _ => far_comma(self.said()).is_some(),
        }
    }

    /// Appends it with the comma or the delimiter behind it.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        put::<FIGURE>(self.text, 0..self.length + 1, out);
    }
}

/// The figures of a list of what a step used, which is so long and is
/// `cpu=…,energy=0,fs/disk=…,mem=…,pages=…,vmem=…`; `None` if it is another.
#[inline]
pub fn usage(list: &[u8], length: usize) -> Option<[Figure<'_>; 5]> {
    let (cpu, rest) = Figure::behind(list, b"cpu=")?;
    let (disk, rest) = Figure::behind(rest, b",energy=0,fs/disk=")?;
    let (memory, rest) = Figure::behind(rest, b",mem=")?;
    let (pages, rest) = Figure::behind(rest, b",pages=")?;
    let (word, text) = rest.split_first_chunk()?;
    // If one of them stood behind the end of the list, nothing is left of it here.
    let length = length.checked_sub(list.len() - text.len())?;
    let virtual_memory = Figure { text, length };
    let is_usual = word == b",vmem=" && length > 0 && !virtual_memory.has_comma();
    is_usual.then_some([cpu, disk, memory, pages, virtual_memory])
}

/// Where the first comma is. It mostly is near.
#[inline]
pub fn comma_in(text: &[u8]) -> Option<usize> {
    match commas(text) {
        Some(commas) if commas != 0 => Some(commas.trailing_zeros() as usize),
        _ => far_comma(text),
    }
}

/// Where commas are in as many bytes as most figures have, the first byte's bit lowest.
#[inline]
fn commas(text: &[u8]) -> Option<u32> {
    let few = text.first_chunk::<FIGURE>()?;
    Some(u8x16::new(*few).simd_eq(u8x16::splat(b',')).to_bitmask())
}

/// Not written out for each caller.
#[cold]
#[inline(never)]
fn far_comma(text: &[u8]) -> Option<usize> {
    comma(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_found_near_and_far() {
        for length in 0..50 {
            for behind in [0, 1, 20] {
                let text = [&vec![b'1'; length][..], b",", &vec![b'2'; behind]].concat();
                assert_eq!(comma_in(&text), Some(length));
                let has_comma = |length| Figure { text: &text, length }.has_comma();
                assert!(!has_comma(length) && has_comma(length + 1), "{length} {behind}");
            }
            assert_eq!(comma_in(&vec![b'1'; length]), None);
        }
    }
}
