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
        _ => one.last() == other.last() && one == other,
    }
}

/// Whether two texts begin and end with the same bytes, so many of them.
#[inline]
fn has_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.last_chunk::<N>() == other.last_chunk() && one.first_chunk::<N>() == other.first_chunk()
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn texts_are_the_same_if_all_their_bytes_are() {
        for length in 0..80 {
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
