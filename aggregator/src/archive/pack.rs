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
    let (mut word, mut used) = (0_u128, 0);
    for number in numbers {
        word |= u128::from(number) << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= u64::BITS;
            used -= u64::BITS;
        }
    }
    let rest = used.div_ceil(8) as usize;
    out.extend_from_slice(word.to_le_bytes().get(..rest).unwrap_or_default());
}

/// Appends so many equal numbers of this width.
pub fn run(number: impl Into<u32>, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    let bytes = number.into().to_le_bytes();
    out.extend_from_slice(bytes.get(..width.div_ceil(8) as usize).unwrap_or_default());
}

/// Appends numbers of this width: runs of equal ones as one, the others by eights.
pub fn runs<T: Copy + PartialEq + Into<u32>>(numbers: &[T], width: u32, out: &mut Vec<u8>) {
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let equal = rest.iter().take_while(|number| *number == first).count();
        if equal >= EIGHT || equal == rest.len() {
            run(*first, equal, width, out);
            rest = rest.get(equal..).unwrap_or_default();
            continue;
        }
        let is_run = |eight: &&[T]| {
            eight.len() == EIGHT && eight.iter().all(|number| Some(number) == eight.first())
        };
        let eights = 1 + rest.chunks(EIGHT).skip(1).take_while(|eight| !is_run(eight)).count();
        let (packed, behind) = rest.split_at(rest.len().min(eights * EIGHT));
        varint((eights as u64) << 1 | 1, out);
        let none = std::iter::repeat_n(0, eights * EIGHT - packed.len());
        bits(packed.iter().map(|number| u64::from((*number).into())).chain(none), width, out);
        rest = behind;
    }
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
        let block = block.get(..numbers.len()).unwrap_or_default();
        let least = block.iter().copied().min().unwrap_or(0);
        varint(zigzag(least), out);
        let over = |difference: &i64| difference.wrapping_sub(least).cast_unsigned();
        let mut widths = [0_u32; BLOCK / MINI_BLOCK];
        for (bits, mini) in widths.iter_mut().zip(block.chunks(MINI_BLOCK)) {
            *bits = width(mini.iter().map(over).fold(0, |all, over| all | over));
        }
        out.extend(widths.iter().map(|width| *width as u8));
        for (width, mini) in widths.iter().zip(block.chunks(MINI_BLOCK)) {
            let none = std::iter::repeat_n(0, MINI_BLOCK - mini.len());
            bits(mini.iter().map(over).chain(none), *width, out);
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
