//! Where the delimiters and line ends of a text are, found sixteen bytes at a time: this is the
//! one loop that every byte of sacct's answer goes through.

use steward_common::slurm::sacct::DELIMITER;
use wide::u8x16;

/// The eight control characters of which the last is the delimiter.
const CONTROLS: u8 = DELIMITER & !7;

/// Adds the places of all delimiters and line ends in `bytes` from `from` on to `marks`. Whether there
/// are other separators in it, the control characters from 0x18 to 0x1e: hardly any text has them, and
/// who wants to use them as marks of its own need not look at each.
pub fn find(bytes: &[u8], from: usize, marks: &mut Vec<u32>) -> bool {
    let (delimiter, line_end) = (u8x16::splat(DELIMITER), u8x16::splat(b'\n'));
    let (high, controls) = (u8x16::splat(!7), u8x16::splat(CONTROLS));
    let mut separators = u8x16::splat(0);
    let rest = bytes.get(from..).unwrap_or_default();
    let (chunks, tail) = rest.as_chunks::<64>();
    let mut at = from;
    for chunk in chunks {
        let mut found = 0u64;
        let (parts, _) = chunk.as_chunks::<16>();
        for (place, part) in parts.iter().enumerate() {
            let part = u8x16::new(*part);
            let is_delimiter = part.simd_eq(delimiter);
            separators |= (part & high).simd_eq(controls) ^ is_delimiter;
            let hit = is_delimiter | part.simd_eq(line_end);
            found |= u64::from(hit.to_bitmask()) << (16 * place);
        }
        while found != 0 {
            marks.push((at + found.trailing_zeros() as usize) as u32);
            found &= found - 1;
        }
        at += 64;
    }
    let is_mark = |byte: &u8| *byte == DELIMITER || *byte == b'\n';
    let is_separator = |byte: &u8| byte & !7 == CONTROLS && *byte != DELIMITER;
    let in_tail = tail.iter().any(is_separator);
    let tail = tail.iter().enumerate().filter(|(_, byte)| is_mark(byte));
    marks.extend(tail.map(|(place, _)| (at + place) as u32));
    in_tail || separators.to_bitmask() != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_seen_wherever_they_stand() {
        let mut marks = Vec::new();
        for length in [1, 63, 64, 65, 200] {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = [b'x', DELIMITER, b'\n', 0x17, 0x20].repeat(40);
                    text.truncate(length);
                    text[at] = byte;
                    let expected = (0x18..=0x1e).contains(&byte);
                    assert_eq!(find(&text, 0, &mut marks), expected, "{length} {at} {byte}");
                }
            }
        }
    }

    #[test]
    fn every_mark_is_found_wherever_it_stands() {
        for length in 0..200usize {
            for step in 1..9usize {
                let text: Vec<u8> = (0..length)
                    .map(|i| match i % step {
                        0 if i % 2 == 0 => DELIMITER,
                        0 => b'\n',
                        _ => 0x9f,
                    })
                    .collect();
                let expected: Vec<u32> =
                    (0..length).filter(|i| i % step == 0).map(|i| i as u32).collect();
                for from in [0, length / 3, length] {
                    let mut marks = Vec::new();
                    find(&text, from, &mut marks);
                    let expected: Vec<u32> =
                        expected.iter().copied().filter(|at| *at as usize >= from).collect();
                    assert_eq!(marks, expected, "{length} {step} {from}");
                }
            }
        }
    }
}
