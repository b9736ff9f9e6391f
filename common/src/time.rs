//! A moment, as Slurm's database and the archive keep it: whole seconds, UTC.

use std::fmt;
use std::time::Duration;

use crate::slurm::ParseError;
use crate::slurm::number::{digits, eight_digits};

const EXPECTED: &str = "seconds since 1970 such as 1794811575, or Unknown";

/// The first moment of the year 9999. What lies behind has no date that anybody could write, and is
/// damage.
const TOO_LATE: i64 = 253_370_764_800;

/// Seconds since 1970-01-01T00:00:00Z. How people read it (which day, which zone) is not its
/// business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment this many seconds after 1970 began.
    #[must_use]
    pub const fn new(seconds: i64) -> Timestamp {
        Timestamp(seconds)
    }

    /// The number of seconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Time from `earlier` to here; `None` if that is not earlier.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Option<Duration> {
        u64::try_from(self.0.checked_sub(earlier.0)?).ok().map(Duration::from_secs)
    }

    /// This much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)))
    }

    /// This much earlier.
    #[must_use]
    pub fn before(self, time: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)))
    }

    /// Reads a time that sacct printed with `SLURM_TIME_FORMAT=%s`. Empty, `Unknown`, `None`,
    /// `N/A` and `0` say that there is none.
    ///
    /// # Errors
    /// If the text is neither a time nor the statement that there is none.
    pub fn from_slurm(text: &str) -> Result<Option<Timestamp>, ParseError> {
        let seconds = digits(text).and_then(|seconds| i64::try_from(seconds).ok());
        match seconds.filter(|seconds| *seconds < TOO_LATE) {
            Some(_) if text == "0" => Ok(None),
            Some(seconds) => Ok(Some(Timestamp(seconds))),
            None if matches!(text, "" | "Unknown" | "None" | "N/A") => Ok(None),
            None => Err(ParseError::new("time", text, EXPECTED)),
        }
    }

    /// The same of ten digits, as all times are since 2001 and until 2286; `None` of others, whatever
    /// they are.
    #[inline]
    pub(crate) fn usual(text: &[u8]) -> Option<Timestamp> {
        let (eight, [tens, ones]) = text.split_first_chunk()? else { return None };
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        let (eight, two) = (eight_digits(*eight)?, i64::from(tens) * 10 + i64::from(ones));
        (tens <= 9 && ones <= 9).then(|| Timestamp(eight.cast_signed() * 100 + two))
    }
}

/// The number of seconds: what a person reads is written by whoever knows the person's time zone.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_says_in_many_words_that_there_is_no_time() {
        for text in ["", "Unknown", "None", "N/A", "0"] {
            assert_eq!(Timestamp::from_slurm(text), Ok(None), "{text:?}");
        }
        assert_eq!(Timestamp::from_slurm("1794811575"), Ok(Some(Timestamp(1_794_811_575))));
        assert_eq!(Timestamp::from_slurm("253370764799"), Ok(Some(Timestamp(TOO_LATE - 1))));
        for text in [
            "-1",
            "2026-11-16T00:00:00",
            "1.5",
            "99999999999999999999",
            "253370764800",
            "9300000000000000",
        ] {
            assert!(Timestamp::from_slurm(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_usual_time_is_what_any_is_read_as() {
        for text in ["0000000000", "0999999999", "1794811575", "9999999999"] {
            let time = Timestamp::usual(text.as_bytes());
            assert!(time.is_some(), "{text}");
            assert_eq!(Timestamp::from_slurm(text), Ok(time), "{text}");
        }
        for text in ["", "0", "179481157", "17948115750", "Unknown", "17948115:5", "179481157/"] {
            assert_eq!(Timestamp::usual(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn nothing_is_since_a_later_moment() {
        let (early, late) = (Timestamp(10), Timestamp(70));
        assert_eq!(late.since(early), Some(Duration::from_secs(60)));
        assert_eq!(early.since(late), None);
        assert_eq!(early.after(Duration::from_secs(60)), late);
        assert_eq!(late.before(Duration::from_secs(60)), early);
    }
}
