//! Comparing short texts, which is done tens of times for each row.

/// Whether two texts are the same. Most are short, and most that differ, differ in length or at the
/// end: so a call to compare memory is saved.
#[inline]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        0 => true,
        1..4 => {
            let middle = one.len() / 2;
            one.first() == other.first()
                && one.last() == other.last()
                && one.get(middle) == other.get(middle)
        }
        4..8 => has_ends::<4>(one, other),
        8..=16 => has_ends::<8>(one, other),
        17..=32 => has_ends::<16>(one, other),
        33..=64 => has_ends::<32>(one, other),
        _ => one.last() == other.last() && one == other,
    }
}

/// What stands behind the beginning, if the text begins so.
#[inline]
#[must_use]
pub fn behind<'a>(text: &'a [u8], beginning: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(beginning.len())?;
    same(start, beginning).then_some(rest)
}

/// Whether two texts begin and end with the same bytes, so many of them.
#[inline]
fn has_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.last_chunk::<N>() == other.last_chunk() && one.first_chunk::<N>() == other.first_chunk()
}

#[cfg(test)]
mod tests {
    use super::{behind, same};

    #[test]
    fn what_stands_behind_is_told_of_texts_that_begin_so() {
        assert_eq!(behind(b"70.batch", b"70"), Some(&b".batch"[..]));
        assert_eq!(behind(b"70", b"70"), Some(&b""[..]));
        assert_eq!((behind(b"7", b"70"), behind(b"71.0", b"70")), (None, None));
    }

    #[test]
    fn texts_are_the_same_if_all_their_bytes_are() {
        for length in 0..140 {
            let one = vec![b'a'; length];
            assert!(same(&one, &one.clone()));
            assert!(!same(&one, &vec![b'a'; length + 1]));
            for at in 0..length {
                let mut other = one.clone();
                other[at] = b'b';
                assert!(!same(&one, &other) && !same(&other, &one), "{length} {at}");
            }
        }
    }
}
