//! Numbers as Parquet packs them: runs and bits, differences, bytes apart.
//!
//! The `parquet` crate can all of this too, but builds an array of each column first, hashes each
//! value and opens a compressor for each column: two thirds of what it cost to write a run.

/// Differences that share their least one.
const BLOCK: usize = 128;

/// Differences of one width.
const MINI_BLOCK: usize = 32;

/// Equal values that are worth a run of their own, and values that are packed together.
const EIGHT: usize = 8;

/// Appends a number, seven bits to a byte.
pub fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number whose sign is its last bit.
fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

/// How many bits the numbers from 0 to this one need.
#[must_use]
pub fn width(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// Appends the lowest `width` bits of each number, from the lowest bit on.
#[inline]
fn bits(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut word, mut used) = (0_u64, 0);
    for number in numbers {
        word |= number << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // What of the number found no room; none of it if it ended with the word.
            word = number.checked_shr(width - used).unwrap_or(0);
        }
    }
    let rest = used.div_ceil(8) as usize;
    out.extend_from_slice(word.to_le_bytes().get(..rest).unwrap_or_default());
}

/// Appends the lowest `width` bits of each number, at most 16: four of them fit into a word.
#[inline]
fn eights(numbers: &[[u16; EIGHT]], width: u32, out: &mut Vec<u8>) {
    let bytes = width as usize;
    let start = out.len();
    // Each eight is written with more room than it needs; the next one begins where it ends.
    out.resize(start + numbers.len() * bytes + size_of::<u128>(), 0);
    let mut place = start;
    for [a, b, c, d, e, f, g, h] in numbers {
        let four = |numbers: [u16; 4]| {
            let [a, b, c, d] = numbers.map(u64::from);
            u128::from(a | b << width | (c | d << width) << (2 * width))
        };
        let all = four([*a, *b, *c, *d]) | four([*e, *f, *g, *h]) << (4 * width);
        if let Some(room) = out.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
            *room = all.to_le_bytes();
        }
        place += bytes;
    }
    out.truncate(place);
}

/// Appends so many equal numbers of this width.
pub fn run(number: impl Into<u32>, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    let bytes = number.into().to_le_bytes();
    out.extend_from_slice(bytes.get(..width.div_ceil(8) as usize).unwrap_or_default());
}

/// Appends so many numbers of one bit, which stand in words, the lowest bit first.
pub fn packed(words: &[u64], count: usize, out: &mut Vec<u8>) {
    let eights = count.div_ceil(EIGHT);
    varint((eights as u64) << 1 | 1, out);
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()).take(eights));
}

/// Appends numbers of this width, at most 16: runs of equal ones as one, the others by eights.
pub fn runs(numbers: &[u16], width: u32, out: &mut Vec<u8>) {
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let equal = equal(rest, *first);
        if equal >= EIGHT || equal == rest.len() {
            run(*first, equal, width, out);
            rest = rest.get(equal..).unwrap_or_default();
            continue;
        }
        let (all, few) = rest.as_chunks::<EIGHT>();
        let others = all.iter().skip(1).take_while(|eight| !is_run(eight)).count();
        let (here, behind) = all.split_at((1 + others).min(all.len()));
        let is_end = behind.is_empty() && !few.is_empty();
        varint(((here.len() + usize::from(is_end)) as u64) << 1 | 1, out);
        eights(here, width, out);
        if is_end {
            let mut last = [0; EIGHT];
            last.iter_mut().zip(few).for_each(|(place, number)| *place = *number);
            eights(&[last], width, out);
        }
        rest = if is_end { &[] } else { rest.get(here.len() * EIGHT..).unwrap_or_default() };
    }
}

/// Whether eight numbers are equal.
#[inline]
fn is_run(eight: &[u16; EIGHT]) -> bool {
    let [first, ..] = *eight;
    // Without stopping at the first that is not: all at once is quicker.
    eight.iter().fold(true, |equal, number| equal & (*number == first))
}

/// How many numbers from the first on are equal to it.
fn equal(numbers: &[u16], first: u16) -> usize {
    let eights = numbers.as_chunks::<EIGHT>().0.iter();
    let sure = eights.take_while(|eight| is_run(eight) && eight.first() == Some(&first)).count();
    let rest = numbers.get(sure * EIGHT..).unwrap_or_default();
    sure * EIGHT + rest.iter().take_while(|number| **number == first).count()
}

/// Appends numbers as differences (DELTA_BINARY_PACKED).
pub fn differences(numbers: &[i64], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint((BLOCK / MINI_BLOCK) as u64, out);
    varint(numbers.len() as u64, out);
    let Some((first, others)) = numbers.split_first() else { return varint(0, out) };
    varint(zigzag(*first), out);
    let mut before = *first;
    let mut block = [0_i64; BLOCK];
    for numbers in others.chunks(BLOCK) {
        for (difference, number) in block.iter_mut().zip(numbers) {
            *difference = number.wrapping_sub(before);
            before = *number;
        }
        let (here, none) = block.split_at_mut(numbers.len());
        let least = here.iter().copied().min().unwrap_or(0);
        // What fills up a miniblock makes none of its numbers wider.
        none.fill(least);
        varint(zigzag(least), out);
        let over = block.map(|difference| difference.wrapping_sub(least).cast_unsigned());
        let minis = over.as_chunks::<MINI_BLOCK>().0;
        let widths = minis.iter().map(|mini| width(mini.iter().fold(0, |all, over| all | over)));
        out.extend(widths.clone().map(|width| width as u8));
        let there = numbers.len().div_ceil(MINI_BLOCK);
        for (mini, width) in minis.iter().zip(widths).take(there) {
            bits(mini.iter().copied(), width, out);
        }
    }
}

/// Appends the first bytes of all numbers, then the second ones, … (BYTE_STREAM_SPLIT).
pub fn apart(numbers: &[f64], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + numbers.len() * 8, 0);
    let Some(out) = out.get_mut(start..) else { return };
    let (eights, rest) = numbers.as_chunks::<EIGHT>();
    for (place, eight) in eights.iter().enumerate() {
        let bytes = turned(eight.map(f64::to_bits));
        for (plane, bytes) in out.chunks_exact_mut(numbers.len()).zip(bytes) {
            if let Some(eight) = plane.as_chunks_mut().0.get_mut(place) {
                *eight = bytes.to_le_bytes();
            }
        }
    }
    let behind = numbers.len() - rest.len();
    for (byte, plane) in out.chunks_exact_mut(numbers.len().max(1)).enumerate() {
        for (number, place) in rest.iter().zip(plane.iter_mut().skip(behind)) {
            *place = (number.to_bits() >> (8 * byte)) as u8;
        }
    }
}

/// Eight numbers of eight bytes turned over: the first bytes of all, the second ones, …
fn turned(mut rows: [u64; 8]) -> [u64; 8] {
    // Halves change places with those across the diagonal, then quarters, then eighths.
    for (distance, mask) in
        [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
    {
        let bits = distance * 8;
        for at in 0..8 {
            if at & distance == 0
                && let Ok([one, other]) = rows.get_disjoint_mut([at, at + distance])
            {
                let swapped = (*one >> bits ^ *other) & mask;
                *one ^= swapped << bits;
                *other ^= swapped;
            }
        }
    }
    rows
}

/// Appends truths, eight to a byte.
pub fn truths(truths: &[bool], out: &mut Vec<u8>) {
    bits(truths.iter().map(|truth| u64::from(*truth)), 1, out);
}
