//! Times that Slurm prints as text.
//!
//! The same text has two meanings. In a time *limit* a bare number is minutes (`90`) and a day
//! may stand with hours alone (`1-12`). In a time that was *used* (Elapsed, TotalCPU, the `cpu` of
//! a TRES usage) there is always a colon, and `90` is nothing that Slurm prints.

use std::time::Duration;

use super::ParseError;
use super::number::{digits, small};
use crate::limit::Limit;

/// What a job's time limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeLimit {
    /// The job has its own.
    Own(Limit<Duration>),
    /// The job has none of its own: the limit of its partition holds.
    OfPartition,
}

impl TimeLimit {
    /// So many minutes of its own, as TimelimitRaw says it of nearly every job.
    pub(crate) fn minutes(minutes: u32) -> TimeLimit {
        TimeLimit::Own(Limit::At(Duration::from_secs(u64::from(minutes) * 60)))
    }
}

const LIMIT: &str = "a time limit such as 90, 90:00, 1:30:00, 1-12, 1-12:30 or UNLIMITED";
const USED: &str = "a time such as 02:17.926, 00:00:12 or 1-02:03:04";

/// Reads a time limit: Timelimit, TimelimitRaw, `%l`, `--time`. Empty and `NOT_SET` are `None`.
///
/// As in `sbatch --time`, a part may be larger than usual: `0:90:00` is an hour and a half.
///
/// # Errors
/// If the text is no time limit.
pub fn limit(text: &str) -> Result<Option<TimeLimit>, ParseError> {
    // What TimelimitRaw is for nearly every job.
    if let Some(seconds) = digits(text).and_then(|minutes| minutes.checked_mul(60)) {
        return Ok(Some(TimeLimit::Own(Limit::At(Duration::from_secs(seconds)))));
    }
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if text.is_empty() || is("NOT_SET") {
        return Ok(None);
    }
    if is("UNLIMITED") || is("INFINITE") {
        return Ok(Some(TimeLimit::Own(Limit::Unlimited)));
    }
    if is("Partition_Limit") {
        return Ok(Some(TimeLimit::OfPartition));
    }
    match limit_seconds(text) {
        Some(seconds) => Ok(Some(TimeLimit::Own(Limit::At(Duration::from_secs(seconds))))),
        None => Err(ParseError::new("time limit", text, LIMIT)),
    }
}

fn limit_seconds(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(digits(days)?), rest),
        None => (None, text),
    };
    let parts = rest.split(':').map(digits).collect::<Option<Vec<_>>>()?;
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (Some(_), &[hours]) => (hours, 0, 0),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (None, &[minutes]) => (0, minutes, 0),
        (None, &[minutes, seconds]) => (0, minutes, seconds),
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        _ => return None,
    };
    total(days.unwrap_or(0), hours, minutes, seconds)
}

fn total(days: u64, hours: u64, minutes: u64, seconds: u64) -> Option<u64> {
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?
        .checked_add(seconds)
}

/// Reads a time that was used: Elapsed, TotalCPU, UserCPU, `%M`. Empty is `None`.
///
/// Slurm prints `INVALID` for a negative time; that is an error here, not an absence.
///
/// # Errors
/// If the text is no such time.
#[inline]
pub fn elapsed(text: &str) -> Result<Option<Duration>, ParseError> {
    match usual(text.as_bytes()) {
        Some(time) => Ok(Some(time)),
        None => any_elapsed(text),
    }
}

#[inline(never)]
fn any_elapsed(text: &str) -> Result<Option<Duration>, ParseError> {
    if text.is_empty() {
        return Ok(None);
    }
    match used(text) {
        Some(time) => Ok(Some(time)),
        None => Err(ParseError::new("elapsed time", text, USED)),
    }
}

/// `05:23:59`, `1-05:23:59` and `02:17.926`, which nearly all are: this is read for every step of
/// every job. `None` of others, whatever they are.
#[inline]
pub(crate) fn usual(text: &[u8]) -> Option<Duration> {
    if let Some((eight, [last])) = text.split_first_chunk()
        && let Some([minutes, seconds, hundredths]) = pairs(*eight, *b"00:00.00")
    {
        let last = last.wrapping_sub(b'0');
        let nanos = (hundredths * 10 + u32::from(last)) * 1_000_000;
        let time = || Duration::new(u64::from(minutes * 60 + seconds), nanos);
        return (seconds < 60 && last <= 9).then(time);
    }
    let (before, clock) = text.split_last_chunk()?;
    let [hours, minutes, seconds] = pairs(*clock, *b"00:00:00")?;
    let days = match before {
        [] => 0,
        [days @ .., b'-'] if hours < 24 && days.len() <= 2 => small(days)?,
        _ => return None,
    };
    let is_clock = minutes < 60 && seconds < 60;
    let seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    is_clock.then(|| Duration::from_secs(u64::from(seconds)))
}

/// The three numbers of two digits in a text that has digits where the example has zeros, and else the
/// same.
#[inline]
fn pairs(text: [u8; 8], example: [u8; 8]) -> Option<[u32; 3]> {
    const DIGITS: u64 = u64::from_le_bytes([0xff, 0xff, 0, 0xff, 0xff, 0, 0xff, 0xff]);
    const SIXES: u64 = u64::from_le_bytes([6; 8]);
    const UPPER: u64 = u64::from_le_bytes([0xf0; 8]);
    // Digits become what they stand for, what is as in the example becomes 0.
    let values = u64::from_le_bytes(text) ^ u64::from_le_bytes(example);
    // Of what is less than ten, the upper half is 0, and still is with 6 more.
    let others = (values | values.wrapping_add(SIXES)) & UPPER | values & !DIGITS;
    // Each byte has ten times its own value and that of the next.
    let [_, first, _, _, second, _, _, third] = values.wrapping_mul(10 << 8 | 1).to_le_bytes();
    (others == 0).then_some([u32::from(first), u32::from(second), u32::from(third)])
}

/// Any that Slurm may print.
fn used(text: &str) -> Option<Duration> {
    let (mut days, mut nanos) = (None, 0);
    // The numbers between colons, from the left, and how many there are.
    let mut parts = [0u64; 3];
    let mut at = 0;
    let mut has_digit = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let part = parts.get_mut(at)?;
                *part = part.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                has_digit = true;
                continue;
            }
            _ if !has_digit => return None,
            b':' => at += 1,
            b'-' if at == 0 && days.is_none() => {
                days = Some(parts[0]);
                parts[0] = 0;
            }
            b'.' => {
                nanos = nanoseconds(text.get(place + 1..)?)?;
                break;
            }
            _ => return None,
        }
        has_digit = false;
    }
    if !has_digit {
        return None;
    }
    let [first, second, third] = parts;
    let (hours, minutes, seconds) = match (days, at) {
        (Some(_), 2) if first < 24 && second < 60 => (first, second, third),
        (None, 2) if second < 60 => (first, second, third),
        (None, 1) => (0, first, second),
        _ => return None,
    };
    if seconds >= 60 {
        return None;
    }
    let seconds = total(days.unwrap_or(0), hours, minutes, seconds)?;
    Some(Duration::new(seconds, nanos))
}

fn nanoseconds(fraction: &str) -> Option<u32> {
    let places = u32::try_from(fraction.len()).ok()?;
    let scale = 10u32.checked_pow(9u32.checked_sub(places)?)?;
    u32::try_from(digits(fraction)?).ok()?.checked_mul(scale)
}

/// Writes a time as Slurm does: `00:01:40`, `1-03:46:40`; with a fraction only if there is one.
#[must_use]
pub fn format(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let day = if days == 0 { String::new() } else { format!("{days}-") };
    let fraction = if time.subsec_nanos() == 0 {
        String::new()
    } else {
        let nanos = format!(".{:09}", time.subsec_nanos());
        nanos.trim_end_matches('0').to_owned()
    };
    format!("{day}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{TimeLimit, elapsed, format, limit, used, usual};
    use crate::limit::Limit;
    use proptest::prelude::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    #[test]
    fn limits() {
        let cases = [
            ("bare number is minutes", "90", 90 * MINUTE),
            ("minutes and seconds", "90:00", 90 * MINUTE),
            ("seconds count", "1:30", 90),
            ("hours", "1:30:00", HOUR + 30 * MINUTE),
            ("sacct", "1-02:03:04", DAY + 2 * HOUR + 3 * MINUTE + 4),
            ("day and hours", "1-12", 36 * HOUR),
            ("day, hours, minutes", "1-12:30", 36 * HOUR + 30 * MINUTE),
            ("parts may be large, as in sbatch", "0:90:00", 90 * MINUTE),
            ("no time", "0", 0),
        ];
        for (case, text, seconds) in cases {
            let expected = TimeLimit::Own(Limit::At(Duration::from_secs(seconds)));
            assert_eq!(limit(text), Ok(Some(expected)), "{case}: {text:?}");
        }
    }

    #[test]
    fn limits_that_are_words() {
        let unlimited = Ok(Some(TimeLimit::Own(Limit::Unlimited)));
        for text in ["UNLIMITED", "INFINITE", "infinite", "Unlimited"] {
            assert_eq!(limit(text), unlimited, "{text}");
        }
        assert_eq!(limit("Partition_Limit"), Ok(Some(TimeLimit::OfPartition)));
        assert_eq!(limit("NOT_SET"), Ok(None));
        assert_eq!(limit(""), Ok(None));
    }

    #[test]
    fn limits_that_are_none() {
        for text in [
            "INVALID",
            "1.5",
            "-1",
            "1-",
            "-",
            ":",
            "1:",
            ":1",
            "1:2:3:4",
            "1-2-3",
            "1-2:3:4:5",
            "+5",
            " 5",
            "5 ",
            "5m",
            "18446744073709551616",
            "999999999999999999-00:00:00",
            "307445734561825861",
        ] {
            assert_eq!(limit(text).unwrap_err().text, text, "{text:?}");
        }
    }

    #[test]
    fn used_times() {
        let cases = [
            ("minutes and a fraction", "02:17.926", Duration::from_millis(137_926)),
            ("hours and a fraction", "12:34:56.789", Duration::from_millis(45_296_789)),
            ("short", "00:00.010", Duration::from_millis(10)),
            ("usage", "00:00:12", Duration::from_secs(12)),
            ("days", "1-02:03:04", Duration::from_secs(93_784)),
            ("many days", "24-12:52:11", Duration::from_secs(24 * DAY + 12 * HOUR + 52 * 60 + 11)),
            ("many minutes", "90:00", Duration::from_secs(90 * MINUTE)),
            ("many hours", "62:30:24", Duration::from_secs(62 * HOUR + 30 * MINUTE + 24)),
        ];
        for (case, text, expected) in cases {
            assert_eq!(elapsed(text), Ok(Some(expected)), "{case}: {text:?}");
        }
        assert_eq!(elapsed(""), Ok(None));
    }

    #[test]
    fn used_times_that_are_none() {
        for text in [
            "5",
            "59.999",
            "1-12",
            "1-12:30",
            "UNLIMITED",
            "INVALID",
            "Partition_Limit",
            "NOT_SET",
            "00:60",
            "00:60:00",
            "1-24:00:00",
            "00:00.",
            "00:00.0000000001",
            "00:-1",
            "-00:01",
            "00:00:00:00",
            "1-00:00:00:00",
            "a:b",
            "18446744073709551615:00:00",
        ] {
            assert_eq!(elapsed(text).unwrap_err().text, text, "{text:?}");
        }
    }

    #[test]
    fn a_byte_that_is_out_of_place_is_seen_wherever_it_stands() {
        for whole in ["02:17.926", "05:23:59", "9-05:23:59", "12-05:23:59"] {
            assert!(usual(whole.as_bytes()).is_some(), "{whole}");
            for at in 0..whole.len() {
                for byte in (0..0x80u8).map(char::from) {
                    let mut text = whole.to_owned();
                    text.replace_range(at..=at, &byte.to_string());
                    if let Some(time) = usual(text.as_bytes()) {
                        assert_eq!(used(&text), Some(time), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn format_as_slurm() {
        let cases = [
            (0, "00:00:00"),
            (100, "00:01:40"),
            (420, "00:07:00"),
            (1_000, "00:16:40"),
            (10_000, "02:46:40"),
            (42_003, "11:40:03"),
            (100_000, "1-03:46:40"),
            (420_002, "4-20:40:02"),
            (4_200_001, "48-14:40:01"),
            (1_440 * 60, "1-00:00:00"),
            (4_242 * 60, "2-22:42:00"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(format(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(format(Duration::from_millis(137_926)), "00:02:17.926");
    }

    proptest! {
        #[test]
        fn round_trip(seconds in 0..u64::MAX, nanos in 0u32..1_000_000_000) {
            let time = Duration::new(seconds, nanos);
            prop_assert_eq!(elapsed(&format(time)), Ok(Some(time)));
            let whole = Duration::from_secs(seconds);
            let own = TimeLimit::Own(Limit::At(whole));
            prop_assert_eq!(limit(&format(whole)), Ok(Some(own)));
        }

        #[test]
        fn the_usual_ones_are_read_as_all_are(text in "([0-9]{0,3}-)?([0-9]{2}[:.]){1,2}[0-9]{1,3}") {
            if let Some(time) = usual(text.as_bytes()) {
                prop_assert_eq!(used(&text), Some(time));
            }
        }

        #[test]
        fn bare_minutes_scale(minutes in 0..u64::MAX / 60) {
            let own = TimeLimit::Own(Limit::At(Duration::from_secs(minutes * 60)));
            prop_assert_eq!(limit(&minutes.to_string()), Ok(Some(own)));
        }

        #[test]
        fn never_panics(text in "\\PC*|[-0-9:.]{0,24}") {
            if let Err(error) = limit(&text) {
                prop_assert_eq!(&error.text, &text);
            }
            if let Err(error) = elapsed(&text) {
                prop_assert_eq!(&error.text, &text);
            }
        }
    }
}
