//! Lengths of time as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, written `15s`, `500ms` or `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            || format!("expected a length of time such as 15s, 500ms or 2m, found {text:?}");
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let count: u64 = count.parse().map_err(|_| expected())?;
        let span = match unit {
            "ms" => Duration::from_millis(count),
            "s" => Duration::from_secs(count),
            "m" => Duration::from_secs(count.checked_mul(60).ok_or_else(expected)?),
            _ => return Err(expected()),
        };
        Ok(Self(span))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) {
            write!(f, "{}s", millis / 1000)
        } else {
            write!(f, "{millis}ms")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_write() {
        for (text, millis) in [("15s", 15_000), ("500ms", 500), ("2m", 120_000), ("0s", 0)] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0, Duration::from_millis(millis));
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        for bad in ["", "s", "15", "-1s", "1.5s", "15 s", "99999999999999999999s", "9h"] {
            assert!(bad.parse::<Span>().is_err(), "{bad:?}");
        }
    }
}
