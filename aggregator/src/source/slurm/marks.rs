//! Where the delimiters and line ends of a text are, found sixteen bytes at a time: this is the
//! one loop that every byte of sacct's answer goes through.

use steward_common::slurm::sacct::DELIMITER;
use wide::u8x16;

/// The first of the control characters that are separators; the delimiter is the eighth of them.
const FIRST: u8 = DELIMITER - 7;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Marks that are added together: one by one costs more.
const AT_ONCE: usize = 1024;

/// Adds the places of all delimiters and line ends in `bytes` from `from` on to `marks`. Whether there
/// are other separators in it, the control characters from 0x18 to 0x1e: hardly any text has them, and
/// who wants to use them as marks of its own need not look at each.
pub fn find(bytes: &[u8], from: usize, marks: &mut Vec<u32>) -> bool {
    let (delimiter, line_end) = (u8x16::splat(DELIMITER), u8x16::splat(b'\n'));
    let first = u8x16::splat(FIRST);
    let mut least = u8x16::splat(u8::MAX);
    let (blocks, tail) = bytes.get(from..).unwrap_or_default().as_chunks::<BLOCK>();
    let (mut buffer, mut count) = ([0; AT_ONCE], 0);
    let mut at = from as u32;
    for block in blocks {
        let mut found = 0u64;
        for (place, part) in block.as_chunks::<16>().0.iter().enumerate() {
            let part = u8x16::new(*part);
            least = least.min(part - first);
            let hit = part.simd_eq(delimiter) | part.simd_eq(line_end);
            found |= u64::from(hit.to_bitmask()) << (16 * place);
        }
        while found != 0 {
            // There is always room for a block; the remainder says so to the compiler.
            if let Some(mark) = buffer.get_mut(count % AT_ONCE) {
                *mark = at + found.trailing_zeros();
            }
            count += 1;
            found &= found - 1;
        }
        if count > AT_ONCE - BLOCK {
            marks.extend_from_slice(buffer.get(..count).unwrap_or_default());
            count = 0;
        }
        at += BLOCK as u32;
    }
    marks.extend_from_slice(buffer.get(..count).unwrap_or_default());
    let is_mark = |byte: &u8| *byte == DELIMITER || *byte == b'\n';
    let in_tail = tail.iter().zip(at..).filter(|(byte, _)| is_mark(byte));
    marks.extend(in_tail.map(|(_, at)| at));
    let is_separator = |over: u8| over < DELIMITER - FIRST;
    tail.iter().any(|byte| is_separator(byte.wrapping_sub(FIRST)))
        || least.to_array().into_iter().any(is_separator)
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
