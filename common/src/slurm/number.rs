//! Numbers as Slurm writes them.

/// A decimal number in its one canonical spelling: no sign, no padding, nothing around it.
pub(crate) fn canonical_u32(text: &str) -> Option<u32> {
    let padded = text.len() > 1 && text.starts_with('0');
    if padded {
        return None;
    }
    small(text.as_bytes()).or_else(|| digits(text)?.try_into().ok())
}

/// A number of so many digits fits into 32 bits, whatever they are.
const ALWAYS_SMALL: usize = 9;

/// A number of one to nine digits, as nearly all numbers of sacct are; `None` of others, which may be
/// larger numbers.
#[inline]
pub(crate) fn small(text: &[u8]) -> Option<u32> {
    if let (4..=8, Some(first), Some(last)) = (text.len(), text.first_chunk(), text.last_chunk()) {
        // Its two halves, which may overlap, at the end of eight bytes.
        let free = 64 - 8 * text.len();
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        let bytes = u64::from(last) << 32 | u64::from(first) << free;
        return (not_digits(bytes) >> free == 0).then(|| sum_of_eight(bytes) as u32);
    }
    if text.is_empty() || text.len() > ALWAYS_SMALL {
        return None;
    }
    text.iter().try_fold(0, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| sum * 10 + u32::from(digit))
    })
}

/// A number of so many digits fits into 64 bits, whatever they are.
const NEVER_TOO_MANY: usize = 19;

/// A run of ASCII digits; padding is allowed.
#[must_use]
#[inline]
pub fn digits(text: impl AsRef<[u8]>) -> Option<u64> {
    let text = text.as_ref();
    if text.is_empty() {
        return None;
    }
    // Eight at a time, for this is read for tens of fields of every row of sacct.
    if text.len() <= NEVER_TOO_MANY {
        let (mut sum, mut rest) = (0, text);
        while let Some((eight, others)) = rest.split_first_chunk() {
            sum = sum * 100_000_000 + eight_digits(*eight)?;
            rest = others;
        }
        return rest.iter().try_fold(sum, |sum, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then(|| sum * 10 + u64::from(digit))
        });
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The number that eight digits are.
#[inline]
pub(crate) fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let bytes = u64::from_le_bytes(text);
    (not_digits(bytes) == 0).then(|| sum_of_eight(bytes))
}

/// Bits in the first byte that is no digit, and none in those before it.
#[inline]
fn not_digits(bytes: u64) -> u64 {
    // A digit has 3 in its upper half, and still has it with 6 more.
    let more = bytes.wrapping_add(each(6));
    ((bytes ^ each(0x30)) | (more ^ each(0x30))) & each(0xf0)
}

/// The number that the lower halves of eight bytes are, of which each is less than ten.
#[inline]
fn sum_of_eight(bytes: u64) -> u64 {
    // Neighbours become numbers of two digits, those of four, those of eight; the first of them is
    // the lowest byte.
    let twos = (bytes & each(0x0f)).wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = twos.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The number that the text begins with, and what stands behind it. `None` if it has more than fifteen
/// digits or the text no eight bytes more: for lists in which neither is so.
#[inline]
pub(crate) fn leading(text: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = text.split_first_chunk()?;
    let (sum, count) = leading_digits(*first);
    if count < 8 {
        return (count > 0).then_some((sum, text.get(count..)?));
    }
    let (more, count) = leading_digits(*rest.first_chunk()?);
    let scale = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000].get(count)?;
    Some((sum * scale + more, rest.get(count..)?))
}

/// The number that the digits are with which the bytes begin, and how many those are.
#[inline]
fn leading_digits(text: [u8; 8]) -> (u64, usize) {
    let bytes = u64::from_le_bytes(text);
    let others = not_digits(bytes);
    let count = others.trailing_zeros() as usize / 8;
    // As many zeros before them as others are behind.
    let padded = if count == 0 { 0 } else { bytes << (64 - 8 * count) };
    (sum_of_eight(padded), count)
}

/// `12`, `500M`, `1.50K`: a decimal number, and a letter for a power of 1024.
///
/// Without a letter the number counts `bare`s. Computed in whole numbers: `1.5T` is exact, and
/// what is not a whole number (`1.33G`) is rounded to the nearest.
#[inline]
pub(crate) fn binary(text: &str, bare: u64) -> Option<u64> {
    // By far the most amounts are whole numbers without a letter.
    if let Some(whole) = digits(text) {
        return whole.checked_mul(bare);
    }
    let (number, unit) = match text.as_bytes().split_last() {
        Some((letter, number)) if letter.is_ascii_alphabetic() => (number, power(*letter)?),
        _ => (text.as_bytes(), bare),
    };
    // And of the others most are whole numbers, too.
    if let Some(whole) = digits(number) {
        return whole.checked_mul(unit);
    }
    let (whole, fraction) = text.get(..number.len())?.split_once('.')?;
    let unit = u128::from(unit);
    let whole = u128::from(digits(whole)?).checked_mul(unit)?;
    let scale = 10u128.checked_pow(fraction.len().try_into().ok()?)?;
    let numerator = u128::from(digits(fraction)?).checked_mul(unit)?;
    let rest = numerator.checked_add(scale / 2)? / scale;
    whole.checked_add(rest)?.try_into().ok()
}

/// The power of 1024 that a letter stands for.
#[inline]
pub(crate) fn power(letter: u8) -> Option<u64> {
    let shift = match letter.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        b'P' => 50,
        b'E' => 60,
        _ => return None,
    };
    Some(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::{binary, canonical_u32, digits, leading, small};
    use proptest::prelude::*;

    #[test]
    fn a_number_that_something_follows() {
        for number in [0, 7, 42, 1_234_567, 12_345_678, 123_456_789, 123_456_789_012_345] {
            let text = format!("{number},pages=0,vmem=1");
            assert_eq!(leading(text.as_bytes()), Some((number, &b",pages=0,vmem=1"[..])), "{text}");
        }
        assert_eq!(leading(b"007K,more than that"), Some((7, &b"K,more than that"[..])));
        for text in
            ["", "12", ",pages=0", "x1234567", "1234567890123456,pages=0,vmem=1", "12345678,"]
        {
            assert_eq!(leading(text.as_bytes()), None, "{text}");
        }
        assert_eq!(leading("1\u{e9}\u{fffd}789".as_bytes()).map(|(number, _)| number), Some(1));
    }

    #[test]
    fn binary_numbers() {
        let cases = [
            ("plain", "12", Some(12)),
            ("kibi", "512K", Some(512 * 1024)),
            ("lower case", "512k", Some(512 * 1024)),
            ("fraction of tebi", "1.5T", Some(3 * (1 << 39))),
            ("two decimals", "1.50K", Some(1536)),
            // 1.33 * 2^30 = 1428076625.92
            ("no whole number", "1.33G", Some(1_428_076_626)),
            ("0.1 is exact in decimal", "0.1K", Some(102)),
            ("largest", "18446744073709551615", Some(u64::MAX)),
            ("one too many", "18446744073709551616", None),
            ("too many exbi", "16E", None),
            ("fifteen exbi", "15E", Some(15 << 60)),
            ("empty", "", None),
            ("unit alone", "K", None),
            ("no whole part", ".5K", None),
            ("no fraction", "1.K", None),
            ("two points", "1.2.3K", None),
            ("minus", "-1", None),
            ("plus", "+1", None),
            ("unit of bytes", "4GB", None),
            ("unknown unit", "16?", None),
            ("inner blank", "1 K", None),
            ("arabic digits", "\u{661}", None),
            ("long fraction", "1.0000000000000000000000000000000000000000001K", None),
        ];
        for (case, text, expected) in cases {
            assert_eq!(binary(text, 1), expected, "{case}: {text:?}");
        }
    }

    #[test]
    fn canonical_numbers() {
        assert_eq!(canonical_u32("0"), Some(0));
        assert_eq!(canonical_u32("4294967295"), Some(u32::MAX));
        for text in ["", "00", "01", "+1", "-1", "4294967296", " 1", "1 ", "0x1"] {
            assert_eq!(canonical_u32(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_byte_that_is_no_digit_is_seen_wherever_it_stands() {
        for length in 1..=19 {
            for at in 0..length {
                for byte in (0..0x80u8).map(char::from) {
                    let mut text = "1234567890123456789"[..length].to_owned();
                    text.replace_range(at..=at, &byte.to_string());
                    let expected = if byte.is_ascii_digit() { text.parse().ok() } else { None };
                    assert_eq!(digits(&text), expected, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn a_small_number_is_what_any_number_is_read_as() {
        for length in 0..=12 {
            let whole = "987654321098"[..length].to_owned();
            let any = digits(&whole).filter(|_| length <= 9).map(|number| number as u32);
            assert_eq!(small(whole.as_bytes()), any, "{whole}");
            assert_eq!(any.is_some(), (1..=9).contains(&length));
            for at in 0..length {
                for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                    let mut text = whole.clone().into_bytes();
                    text[at] = byte;
                    assert_eq!(small(&text), None, "{text:?}");
                }
            }
        }
        assert_eq!((small(b"0"), small(b"007"), small(b"00042")), (Some(0), Some(7), Some(42)));
    }

    proptest! {
        #[test]
        fn digits_are_what_the_library_reads(number: u64, padding in 0usize..20) {
            let text = format!("{}{number}", "0".repeat(padding));
            prop_assert_eq!(digits(&text), Some(number));
        }

        #[test]
        fn units_scale(number in 0u64..1 << 20, bare in 1u64..1 << 20) {
            for (letter, power) in [('K', 1), ('M', 2), ('G', 3), ('T', 4)] {
                let expected = number * 1024u64.pow(power);
                prop_assert_eq!(binary(&format!("{number}{letter}"), bare), Some(expected));
            }
            prop_assert_eq!(binary(&number.to_string(), bare), Some(number * bare));
        }

        #[test]
        fn hundredths_are_within_half_a_byte(whole in 0u64..4096, hundredths in 0u64..100) {
            let read = binary(&format!("{whole}.{hundredths:02}M"), 1).unwrap();
            let exact = u128::from(whole * 100 + hundredths) << 20;
            prop_assert!((u128::from(read) * 100).abs_diff(exact) <= 50);
        }

        #[test]
        fn never_panics(text in any::<String>(), bare: u64) {
            let _ = binary(&text, bare);
            let _ = canonical_u32(&text);
        }
    }
}
