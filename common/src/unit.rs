//! Units as types. Times are [`std::time::Duration`].

use std::fmt;

const KIB: u64 = 1024;

/// An amount of memory or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// This many bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// This many KiB; `None` if that is more than 64 bits of bytes.
    #[must_use]
    pub const fn from_kib(kib: u64) -> Option<Bytes> {
        match kib.checked_mul(KIB) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In MiB.
    #[must_use]
    pub fn mib(self) -> f64 {
        self.0 as f64 / (KIB * KIB) as f64
    }

    /// In GiB.
    #[must_use]
    pub fn gib(self) -> f64 {
        self.0 as f64 / (KIB * KIB * KIB) as f64
    }

    /// The sum; `None` on overflow.
    #[must_use]
    pub fn checked_add(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_add(other.0).map(Bytes)
    }

    /// The difference; `None` if `other` is more.
    #[must_use]
    pub fn checked_sub(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_sub(other.0).map(Bytes)
    }

    /// This amount `times` over; `None` on overflow.
    #[must_use]
    pub fn checked_mul(self, times: u64) -> Option<Bytes> {
        self.0.checked_mul(times).map(Bytes)
    }
}

/// For people: `512 B`, `1.5 GiB`; to one decimal, for the size is what matters here.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < KIB {
            return write!(f, "{} B", self.0);
        }
        let mut tenths = 0;
        let mut name = "";
        for (power, unit) in (1..).zip(["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
            let size = 1u128 << (10 * power);
            tenths = (u128::from(self.0) * 10 + size / 2) / size;
            name = unit;
            if tenths < 10 * 1024 {
                break;
            }
        }
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            decimal => write!(f, "{}.{decimal} {name}", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;
    use proptest::prelude::*;

    #[test]
    fn display_in_iec_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (8 << 30, "8 GiB"),
            // 1023.96 KiB would read 1024.0: the next unit instead.
            (1_048_535, "1 MiB"),
            (1_048_524, "1023.9 KiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Bytes::new(bytes).to_string(), expected, "{bytes}");
        }
    }

    #[test]
    fn conversions() {
        assert_eq!(Bytes::from_kib(2), Some(Bytes::new(2048)));
        assert_eq!(Bytes::from_kib(u64::MAX / 1024 + 1), None);
        assert_eq!(Bytes::new(1 << 20).mib(), 1.0);
        assert_eq!(Bytes::new(3 << 29).gib(), 1.5);
    }

    #[test]
    fn overflow_is_none() {
        assert_eq!(Bytes::new(u64::MAX).checked_add(Bytes::new(1)), None);
        assert_eq!(Bytes::new(1).checked_sub(Bytes::new(2)), None);
        assert_eq!(Bytes::new(u64::MAX).checked_mul(2), None);
        assert_eq!(Bytes::new(2).checked_mul(3), Some(Bytes::new(6)));
    }

    proptest! {
        #[test]
        fn shown_value_is_within_half_a_tenth(bytes: u64) {
            let shown = Bytes::new(bytes).to_string();
            let (number, unit) = shown.split_once(' ').unwrap();
            let power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
                .iter()
                .position(|name| *name == unit)
                .unwrap();
            let size = 1024f64.powi(power as i32);
            let number: f64 = number.parse().unwrap();
            prop_assert!((number - bytes as f64 / size).abs() <= 0.050_001);
            prop_assert!(number < 1024.0);
        }
    }
}
