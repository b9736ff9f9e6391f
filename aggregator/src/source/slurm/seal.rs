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

    /// The place of the first of them in a part of the bytes, which begins behind the last.
    #[must_use]
    #[inline]
    pub fn find(&self, bytes: &[u8], part: Range<usize>) -> Option<usize> {
        let part_end = part.end;
        let is_here = |at: usize| {
            let end = at + LENGTH;
            end <= part_end && bytes.get(at..end).and_then(<[u8]>::first_chunk) == Some(&self.0)
        };
        // Most times follow another.
        if is_here(part.start + STRIDE) {
            return Some(part.start + STRIDE);
        }
        let mut from = part.start;
        loop {
            let at = from + memchr::memchr(MARK, bytes.get(from..part_end)?)?;
            if is_here(at) {
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
}
