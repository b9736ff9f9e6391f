//! What tells a row of sacct from text of users that looks like one.
//!
//! sacct prints times as `SLURM_TIME_FORMAT` says. Each call has another seal at the end of that
//! format, and so behind every time. Users cannot see a call's environment, as they could its
//! arguments, so what they wrote cannot have it.

use std::io;
use std::ops::Range;

/// The first byte of every seal: the record separator, which nobody types.
const MARK: u8 = 0x1e;

/// Of the 19 characters that sacct prints of a time, ten are the seconds since 1970.
pub const LENGTH: usize = 9;

/// From one seal to the next in a row of times: a delimiter and the seconds since 1970.
pub const STRIDE: usize = 11;

/// Three times with their delimiters, and their seals: a row has four times side by side.
pub const TOGETHER: usize = 3 * (STRIDE + LENGTH);

/// What stands in a seal: 64 characters.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What stands behind the times in one answer of sacct.
pub struct Seal([u8; LENGTH]);

impl Seal {
    /// One that nobody can guess.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> io::Result<Seal> {
        let mut bytes = [0; LENGTH - 1];
        let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        if got < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let letter = |byte: u8| ALPHABET.get(usize::from(byte % 64)).copied().unwrap_or(MARK);
        Ok(Seal::of(bytes.map(letter)))
    }

    /// The one with these characters.
    pub(super) fn of(text: [u8; LENGTH - 1]) -> Seal {
        let [a, b, c, d, e, f, g, h] = text;
        Seal([MARK, a, b, c, d, e, f, g, h])
    }

    /// Three times without their seals, if that is what it is.
    #[must_use]
    #[inline]
    pub fn times(&self, behind: &[u8; TOGETHER]) -> Option<[u8; 3 * STRIDE]> {
        let mut times = [0; 3 * STRIDE];
        let sealed = behind.as_chunks::<{ STRIDE + LENGTH }>().0.iter();
        for (place, sealed) in times.as_chunks_mut().0.iter_mut().zip(sealed) {
            let (time, seal): (&[u8; STRIDE], _) = sealed.split_first_chunk()?;
            if *seal != self.0 {
                return None;
            }
            *place = *time;
        }
        Some(times)
    }

    /// The place of the first of them in a part of the bytes, which begins behind the last.
    #[must_use]
    pub fn find(&self, bytes: &[u8], part: Range<usize>) -> Option<usize> {
        let mut from = part.start;
        loop {
            let at = from + memchr::memchr(MARK, bytes.get(from..part.end)?)?;
            if bytes.get(at..part.end)?.first_chunk() == Some(&self.0) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// The format of a time: its seconds since 1970, and the seal.
    #[must_use]
    pub fn time_format(&self) -> String {
        format!("%s{}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_another_each_time_and_fits_into_a_time() {
        let (one, other) = (Seal::random().unwrap(), Seal::random().unwrap());
        assert_ne!(one.0, other.0);
        let format = one.time_format();
        assert!(format.starts_with("%s\u{1e}") && format.len() == 11, "{format:?}");
        assert!(!format[2..].contains('%'));
    }

    #[test]
    fn three_times_with_their_seals_are_told_without_and_nothing_else_is() {
        let seal = Seal::of(*b"abcdefgh");
        let text = |seals: [&str; 3]| {
            let [one, two, three] = seals;
            format!("\x1f1794811575{one}\x1f1794811576{two}\x1f1794811577{three}")
        };
        let times = |text: &str| seal.times(text.as_bytes().first_chunk().unwrap());
        let (good, other) = ("\x1eabcdefgh", "\x1eabcdefgi");
        let expected = b"\x1f1794811575\x1f1794811576\x1f1794811577";
        assert_eq!(times(&text([good; 3])), Some(*expected));
        for seals in [[other, good, good], [good, other, good], [good, good, other]] {
            assert_eq!(times(&text(seals)), None);
        }
        assert_eq!(times(&"x".repeat(TOGETHER)), None);
    }
}
