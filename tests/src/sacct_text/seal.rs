//! What stands behind a time. The text on disk has [`SEAL`] there; whoever asks gets what is at the
//! end of `SLURM_TIME_FORMAT`.

use memchr::memmem::Finder;

/// Behind every time of the text on disk.
pub const SEAL: &str = "\x1e--------";

/// How many characters of a time Slurm 22.05 prints, of which ten are seconds since 1970.
const SHOWN: usize = 19;

/// What stands behind `%s` in `SLURM_TIME_FORMAT`, as much of it as is printed.
#[must_use]
pub fn of_format(format: &str) -> &str {
    let seal = format.strip_prefix("%s").unwrap_or_default();
    seal.get(..SHOWN - 10).unwrap_or(seal)
}

/// Puts another seal in the place of [`SEAL`].
#[must_use]
pub fn put(mut text: Vec<u8>, seal: &[u8]) -> Vec<u8> {
    let finder = Finder::new(SEAL);
    if seal.len() == SEAL.len() {
        let mut from = 0;
        while let Some(at) = finder.find(&text[from..]) {
            text[from + at..][..seal.len()].copy_from_slice(seal);
            from += at + seal.len();
        }
        return text;
    }
    let mut other = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while let Some(at) = finder.find(rest) {
        other.extend(&rest[..at]);
        other.extend(seal);
        rest = &rest[at + SEAL.len()..];
    }
    other.extend(rest);
    other
}
