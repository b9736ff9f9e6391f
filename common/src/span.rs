//! Lengths of time as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, written `500ms`, `15s`, `10m`, `6h`, `400d` or `5y`. A year counts 366 days:
/// what is to be kept for years must not go a day early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// The units and their milliseconds, the longest first.
const UNITS: [(&str, u64); 6] = [
    ("y", 366 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || {
            format!(
                "expected a length of time such as 15s, 500ms, 2m, 6h, 30d or 5y, found {text:?}"
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let count: u64 = count.parse().map_err(|_| expected())?;
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?;
        // In whole seconds where the unit allows: their number may be larger than that of
        // milliseconds can be.
        let span = if millis.is_multiple_of(1_000) {
            Duration::from_secs(count.checked_mul(millis / 1_000).ok_or_else(expected)?)
        } else {
            Duration::from_millis(count)
        };
        Ok(Self(span))
    }
}

/// In the longest unit that leaves no fraction.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let whole = |unit: u64| millis.is_multiple_of(u128::from(unit));
        match UNITS.iter().find(|(_, unit)| whole(*unit)) {
            Some((name, unit)) if millis > 0 => write!(f, "{}{name}", millis / u128::from(*unit)),
            _ => f.write_str("0s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_write() {
        for (text, millis) in [
            ("15s", 15_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("0s", 0),
            ("36h", 129_600_000),
            ("400d", 34_560_000_000),
            ("5y", 5 * 366 * 86_400_000),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0, Duration::from_millis(millis));
            assert_eq!(span.to_string(), text);
        }
        let same = [("60s", "1m"), ("1000ms", "1s"), ("24h", "1d"), ("366d", "1y"), ("0d", "0s")];
        for (text, shown) in same {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        let bad = ["", "s", "15", "-1s", "1.5s", "15 s", "99999999999999999999s", "9w", "5Y"];
        for bad in bad.into_iter().chain(["18446744073709551615y"]) {
            assert!(bad.parse::<Span>().is_err(), "{bad:?}");
        }
        assert!("18446744073709551615s".parse::<Span>().is_ok(), "senseless, not malformed");
    }
}
