//! A row that is gone through from the front, and what is done with parts of its text.
//!
//! Each is done tens of times for each row, mostly with a few bytes: it is the number of instructions
//! that counts. So as many bytes are taken together as most fields have, whether they are needed or
//! not, and a general way is left for the others.

use std::ops::Range;

use steward_common::alike::same;
use steward_common::slurm::sacct::Row;
use wide::u8x16;

/// Bytes of fields that are copied together.
const TOGETHER: usize = 48;

/// Bytes of fields that are compared together.
const COMPARED: usize = 32;

/// Bytes of a figure that are copied together.
pub const FIGURE: usize = 16;

/// A part of a text. Asked for in two steps, of which each is but one comparison.
#[inline]
pub fn part(bytes: &[u8], at: Range<usize>) -> &[u8] {
    let length = at.end.wrapping_sub(at.start);
    let part = bytes.get(at.start..).and_then(|rest| rest.get(..length));
    // A branch, where `unwrap_or_default` would have both outcomes worked out and one chosen.
    part.unwrap_or_else(nothing)
}

/// What stands where there is nothing: no row has such places.
#[cold]
#[inline(never)]
fn nothing<'b>() -> &'b [u8] {
    &[]
}

/// Appends a part of a text. For as few bytes as most parts have, to copy more than are needed takes
/// less time than to copy so many.
#[inline]
pub fn put<const FEW: usize>(bytes: &[u8], at: Range<usize>, out: &mut Vec<u8>) {
    let length = at.end.wrapping_sub(at.start);
    match bytes.get(at.start..).and_then(<[u8]>::first_chunk::<FEW>) {
        Some(bytes) if length <= FEW => {
            let behind = out.len() + length;
            out.extend_from_slice(bytes);
            out.truncate(behind);
        }
        _ => out.extend_from_slice(part(bytes, at)),
    }
}

/// Whether so many bytes are the same from two places on.
#[inline]
pub fn is_same(bytes: &[u8], one: usize, other: usize, length: usize) -> bool {
    let few = |start: usize| bytes.get(start..).and_then(<[u8]>::first_chunk::<COMPARED>);
    if length <= COMPARED
        && let (Some(one), Some(other)) = (few(one), few(other))
    {
        let ([one, one_more], _) = one.as_chunks() else { return false };
        let ([other, other_more], _) = other.as_chunks() else { return false };
        let are_same = |one: &[u8; 16], other: &[u8; 16]| {
            u8x16::new(*one).simd_eq(u8x16::new(*other)).to_bitmask()
        };
        let same = are_same(one, other) | are_same(one_more, other_more) << 16;
        return same.trailing_ones() as usize >= length;
    }
    is_long_same(part(bytes, one..one + length), part(bytes, other..other + length))
}

/// Not written out for each caller.
#[inline(never)]
fn is_long_same(one: &[u8], other: &[u8]) -> bool {
    same(one, other)
}

/// A row that is gone through from the front.
#[derive(Clone, Copy)]
pub struct Line<'b> {
    bytes: &'b [u8],
    ends: &'b [u32],
    /// Where the row begins.
    pub start: usize,
    /// Where the next field begins.
    pub next: usize,
}

impl<'b> Line<'b> {
    /// A row, from its first field on.
    #[inline]
    pub fn of(bytes: &'b [u8], row: &Row<'b>) -> Line<'b> {
        let start = row.span().start;
        Line { bytes, ends: row.ends(), start, next: start }
    }

    /// Where the field at a place ends.
    #[inline]
    pub fn end_of(&self, place: usize) -> usize {
        self.ends.get(place).map_or(0, |end| *end as usize)
    }

    /// Of that many fields, of which it has no fewer.
    #[inline]
    pub fn of_width(self, width: usize) -> Line<'b> {
        Line { ends: self.ends.get(..width).unwrap_or_default(), ..self }
    }

    /// Where the fields at a place end, here and in another row.
    #[inline]
    pub fn ends_of(&self, other: &Line<'_>, place: usize) -> (usize, usize) {
        match (self.ends.get(place), other.ends.get(place)) {
            (Some(end), Some(other)) => (*end as usize, *other as usize),
            _ => (0, 0),
        }
    }

    /// What the row says at a place.
    #[inline]
    pub fn at(&self, place: Option<usize>) -> &'b [u8] {
        let Some(place) = place else { return &[] };
        let start = place.checked_sub(1).map_or(self.start, |before| self.end_of(before) + 1);
        part(self.bytes, start..self.end_of(place))
    }

    /// Whether the next field, which is at this place, says the same as the one to its left.
    #[inline]
    pub fn is_left(&self, end: usize, place: usize) -> bool {
        let start = place.checked_sub(2).map_or(self.start, |before| self.end_of(before) + 1);
        let length = end.wrapping_sub(self.next);
        start + length + 1 == self.next && is_same(self.bytes, start, self.next, length)
    }

    /// What the next fields say up to that end.
    #[inline]
    pub fn text(&self, end: usize) -> &'b [u8] {
        part(self.bytes, self.next..end)
    }

    /// What the next fields say up to that end, and a little of what follows: a figure at their end can be
    /// taken together with as many bytes as most have, and nobody searches further.
    #[inline]
    pub fn beyond(&self, end: usize) -> &'b [u8] {
        part(self.bytes, self.next..self.bytes.len().min(end + 1 + FIGURE))
    }

    /// Whether the next fields, up to their ends, are the same in two rows. Most are not as long.
    #[inline]
    pub fn is_alike(&self, end: usize, other: &Line<'_>, end_of_other: usize) -> bool {
        let length = end.wrapping_sub(self.next);
        length == end_of_other.wrapping_sub(other.next)
            && is_same(self.bytes, self.next, other.next, length)
    }

    /// Appends what the next fields say up to that end, with the delimiter behind them.
    #[inline]
    pub fn put(&self, end: usize, out: &mut Vec<u8>) {
        put::<TOGETHER>(self.bytes, self.next..end + 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_same_if_all_their_bytes_are_wherever_they_stand() {
        for length in 0..100 {
            for behind in [0, 1, 15, 16, 31, 32, 40] {
                let mut bytes = vec![b'a'; 2 * length + 1 + behind];
                let other = length + 1;
                assert!(is_same(&bytes, 0, other, length), "{length} {behind}");
                for at in [0, length / 2, length.saturating_sub(1)] {
                    bytes[other + at.min(length)..].fill(b'b');
                    let expected = bytes[..length] == bytes[other..other + length];
                    assert_eq!(
                        is_same(&bytes, 0, other, length),
                        expected,
                        "{length} {behind} {at}"
                    );
                    bytes[other..].fill(b'a');
                }
            }
        }
    }

    #[test]
    fn of_what_follows_a_field_only_a_little_is_looked_at() {
        let bytes = vec![b'1'; 100];
        let line = Line { bytes: &bytes, ends: &[], start: 0, next: 10 };
        assert_eq!(line.beyond(20).len(), 11 + FIGURE);
        assert_eq!((line.beyond(90).len(), line.beyond(99).len()), (90, 90));
    }

    #[test]
    fn of_a_part_so_much_is_put_as_it_has_and_what_is_no_part_is_empty() {
        let bytes: Vec<u8> = (0..100).collect();
        for length in 0..60 {
            for start in [0, 30, 100 - length] {
                let mut out = b"before".to_vec();
                put::<FIGURE>(&bytes, start..start + length, &mut out);
                put::<TOGETHER>(&bytes, start..start + length, &mut out);
                let expected = &bytes[start..start + length];
                assert_eq!(out, [b"before", expected, expected].concat());
                assert_eq!(part(&bytes, start..start + length), expected);
            }
        }
        assert!(
            [90..101, 101..102, Range { start: 5, end: 4 }]
                .into_iter()
                .all(|at| part(&bytes, at).is_empty())
        );
    }
}
