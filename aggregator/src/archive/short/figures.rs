//! Figures in half the room: digits, and the few characters that stand among them, in four bits each.
//!
//! Figures are hardly ever the same in two runs, so looking for what repeats costs much and finds
//! little.

use steward_common::slurm::sacct::DELIMITER;
use wide::{i16x8, u8x16};

/// The characters. The lower half of each is its place here.
const CHARACTERS: &[u8; 16] = b"0123456789:K,-.\x1f";

/// Characters that are packed together.
const TOGETHER: usize = 32;

/// Puts the packed text in place of what is in `out`; behind an odd number of characters there is a
/// delimiter more. `false` if the text has another character, and then `out` is of no use. The text
/// may have more delimiters behind it afterwards.
#[must_use]
pub fn pack(text: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    let length = text.len().div_ceil(2);
    text.resize(text.len().next_multiple_of(TOGETHER), DELIMITER);
    out.clear();
    out.resize(text.len() / 2, 0);
    let mut are_characters = u8x16::splat(u8::MAX);
    let (texts, _) = text.as_chunks::<TOGETHER>();
    let (places, _) = out.as_chunks_mut::<{ TOGETHER / 2 }>();
    for (text, place) in texts.iter().zip(places) {
        let ([one, other], _) = text.as_chunks() else { continue };
        are_characters &= characters(u8x16::new(*one)) & characters(u8x16::new(*other));
        *place = u8x16::narrow_i16x8(halves(one), halves(other)).to_array();
    }
    out.truncate(length);
    are_characters.to_bitmask() == u32::from(u16::MAX)
}

/// All bits of each byte that is one of the characters, of the others none.
#[inline]
fn characters(bytes: u8x16) -> u8x16 {
    let is_from = |first: u8, last: u8| {
        let over = bytes - u8x16::splat(first);
        over.simd_eq(over.min(u8x16::splat(last - first)))
    };
    let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    is_from(b'0', b':') | is_from(b',', b'.') | is(DELIMITER) | is(b'K')
}

/// The lower halves of two bytes each, put together.
#[inline]
fn halves(bytes: &[u8; 16]) -> i16x8 {
    let (twos, _) = bytes.as_chunks();
    let [a, b, c, d, e, f, g, h] = twos else { return i16x8::ZERO };
    let twos = i16x8::new([a, b, c, d, e, f, g, h].map(|two| i16::from_le_bytes(*two)));
    let twos = twos & i16x8::splat(0x0f0f);
    (twos | twos >> 4) & i16x8::splat(0x00ff)
}

/// The text that was packed.
#[must_use]
pub fn unpack(packed: &[u8]) -> Vec<u8> {
    let character = |half: u8| CHARACTERS.get(usize::from(half)).copied().unwrap_or(DELIMITER);
    packed.iter().flat_map(|byte| [character(byte & 0x0f), character(byte >> 4)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_figures_come_back() {
        for (place, character) in CHARACTERS.iter().enumerate() {
            assert_eq!(usize::from(character & 0x0f), place);
        }
        let mut out = b"before".to_vec();
        for length in 0..100 {
            let text: Vec<u8> = CHARACTERS.iter().rev().cycle().take(length).copied().collect();
            assert!(pack(&mut text.clone(), &mut out));
            assert_eq!(out.len(), length.div_ceil(2));
            let mut expected = text;
            expected.resize(length.next_multiple_of(2), DELIMITER);
            assert_eq!(unpack(&out), expected);
        }
    }

    #[test]
    fn other_characters_are_seen_wherever_they_stand() {
        let mut out = Vec::new();
        for length in [1, 31, 32, 33, 70] {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'7'; length];
                    text[at] = byte;
                    let is_packed = pack(&mut text, &mut out);
                    assert_eq!(is_packed, CHARACTERS.contains(&byte), "{length} {at} {byte}");
                }
            }
        }
    }
}
