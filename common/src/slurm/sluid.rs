//! SLUIDs: names of job runs that sort by submission, in cgroup paths since Slurm 26.05.
//!
//! `s` and 13 digits in Crockford's base 32. From the top: 12 bits for the cluster, 42 bits for
//! the time in milliseconds, 10 bits to tell apart what came in the same millisecond. 13 digits
//! hold 65 bits, so the first digit is never above `F`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::ParseError;

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const EXPECTED: &str = "an s and 13 base-32 digits, the first of them at most F";

/// The name of one run of a job: a requeued job gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sluid(u64);

impl Sluid {
    /// The SLUID with these bits; `None` for zero, by which Slurm means that there is none.
    #[must_use]
    pub fn new(bits: u64) -> Option<Sluid> {
        (bits != 0).then_some(Sluid(bits))
    }

    /// The bits.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number of the cluster that the job was submitted to.
    #[must_use]
    pub fn cluster(self) -> u64 {
        self.0 >> 52
    }

    /// When this run was submitted, since the Unix epoch.
    ///
    /// Slurm takes the time from the controller's TAI clock, which is ahead of UTC by the leap
    /// seconds (37 s) if the controller's NTP service sets them, and equals UTC if it does not.
    #[must_use]
    pub fn submitted(self) -> Duration {
        Duration::from_millis((self.0 >> 10) & ((1 << 42) - 1))
    }

    /// Which of the runs submitted in the same millisecond.
    #[must_use]
    pub fn sequence(self) -> u64 {
        self.0 & ((1 << 10) - 1)
    }

    /// Reads the one spelling that Slurm writes: small `s`, capital digits. For names of
    /// directories, where the many other spellings would be other directories.
    #[must_use]
    pub fn from_canonical(text: &str) -> Option<Sluid> {
        let sluid: Sluid = text.parse().ok()?;
        (sluid.to_string() == text).then_some(sluid)
    }
}

/// Reads what Slurm's commands accept: any case, `O` for 0, `I` and `L` for 1.
impl FromStr for Sluid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Sluid, ParseError> {
        let bits = || {
            let digits = text.strip_prefix(['s', 'S'])?;
            if digits.len() != 13 {
                return None;
            }
            digits
                .bytes()
                .try_fold(0u64, |bits, byte| bits.checked_mul(32)?.checked_add(digit(byte)?))
        };
        bits().and_then(Sluid::new).ok_or_else(|| ParseError::new("SLUID", text, EXPECTED))
    }
}

fn digit(byte: u8) -> Option<u64> {
    let known = match byte.to_ascii_uppercase() {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        other => other,
    };
    let value = DIGITS.iter().position(|digit| *digit == known)?;
    u64::try_from(value).ok()
}

impl fmt::Display for Sluid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |place: u32| {
            let value = (self.0 >> (5 * place)) & 31;
            let digit = usize::try_from(value).ok().and_then(|at| DIGITS.get(at));
            digit.map(|byte| char::from(*byte))
        };
        let text: String = std::iter::once('s').chain((0..13).rev().filter_map(digit)).collect();
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Sluid;
    use proptest::prelude::*;

    #[test]
    fn known_sluids() {
        // 2026-03-17 16:44:29.741 and 2026-11-16 00:01:49.127 on the controllers' clocks
        let cases = [
            ("s5K1KKYAYG5D00", 1432, 1_773_765_869_741),
            ("sE1SM7GTHXJ700", 3598, 1_794_787_309_127),
        ];
        for (text, cluster, millis) in cases {
            let sluid: Sluid = text.parse().unwrap();
            assert_eq!(sluid.cluster(), cluster);
            assert_eq!(sluid.submitted(), Duration::from_millis(millis));
            assert_eq!(sluid.sequence(), 0);
            assert_eq!(sluid.to_string(), text);
        }
    }

    #[test]
    fn fields_do_not_overlap() {
        let full: Sluid = "sFZZZZZZZZZZZZ".parse().unwrap();
        assert_eq!(full.get(), u64::MAX);
        assert_eq!(full.cluster(), 4095);
        assert_eq!(full.submitted(), Duration::from_millis((1 << 42) - 1));
        assert_eq!(full.sequence(), 1023);
        let one = |shift: u32| Sluid::new(1 << shift).unwrap();
        assert_eq!(one(52).cluster(), 1);
        assert_eq!(one(52).submitted(), Duration::ZERO);
        assert_eq!(one(10).submitted(), Duration::from_millis(1));
        assert_eq!(one(10).sequence(), 0);
        assert_eq!(one(9).sequence(), 512);
    }

    #[test]
    fn spellings() {
        let sluid: Sluid = "s10K1KKYAYG5D0".parse().unwrap();
        for text in ["S10K1KKYAYG5D0", "s10k1kkyayg5d0", "sIOK1KKYAYG5D0", "slok1kkyayg5do"] {
            assert_eq!(text.parse::<Sluid>(), Ok(sluid), "{text}");
            assert_eq!(Sluid::from_canonical(text), None, "{text}");
        }
        assert_eq!(Sluid::from_canonical("s10K1KKYAYG5D0"), Some(sluid));
    }

    #[test]
    fn not_sluids() {
        for text in [
            "",
            "s",
            "5K1KKYAYG5D00",
            "s5K1KKYAYG5D0",
            "s5K1KKYAYG5D000",
            "j5K1KKYAYG5D00",
            "s5K1KKYAYG5DU0",
            "s5K1KKYAYG5D-0",
            "s5K1KKYAYG5Dé",
            "sG000000000000",
            "s0000000000000",
        ] {
            assert_eq!(text.parse::<Sluid>().unwrap_err().text, text, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bits in 1u64..) {
            let sluid = Sluid::new(bits).unwrap();
            let text = sluid.to_string();
            prop_assert_eq!(text.len(), 14);
            prop_assert_eq!(text.parse::<Sluid>(), Ok(sluid));
            prop_assert_eq!(Sluid::from_canonical(&text), Some(sluid));
        }

        #[test]
        fn text_sorts_as_the_bits(a in 1u64.., b in 1u64..) {
            let (a, b) = (Sluid::new(a).unwrap(), Sluid::new(b).unwrap());
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn never_panics(text in "\\PC*|[sS][0-9A-Za-z]{13}") {
            if let Err(error) = text.parse::<Sluid>() {
                prop_assert_eq!(error.text, text);
            }
        }
    }
}
