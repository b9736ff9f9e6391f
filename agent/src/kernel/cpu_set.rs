//! A set of CPUs: a bit each, since thousands of threads have one.

use std::path::Path;

use super::error::ReadError;

/// One more than the highest CPU number: no kernel is built for more.
pub const MOST: u32 = 8192;

/// A set of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// The last word is never 0, so that equal sets are equal.
    words: Vec<u64>,
}

impl CpuSet {
    /// Reads a list such as `0-3,8`, as the kernel writes it; an empty list is the empty set.
    /// `path` is for messages.
    ///
    /// # Errors
    /// If it is anything else, or holds a CPU beyond [`MOST`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ReadError> {
        let mut set = Self::default();
        for item in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => {
                    for cpu in first..=last {
                        set.insert(cpu);
                    }
                }
                _ => return Err(ReadError::malformed(path, "a list of CPUs such as 0-3,8", text)),
            }
        }
        Ok(set)
    }

    fn insert(&mut self, cpu: u32) {
        let Ok(word) = usize::try_from(cpu / u64::BITS) else { return };
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (cpu % u64::BITS);
        }
    }

    /// Whether `cpu` is one of them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        let word = usize::try_from(cpu / u64::BITS).ok().and_then(|word| self.words.get(word));
        word.is_some_and(|word| word & (1 << (cpu % u64::BITS)) != 0)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own |= other;
        }
    }

    /// Whether `other` has all of these and more.
    #[must_use]
    pub fn is_part_of(&self, other: &Self) -> bool {
        self != other
            && self.words.len() <= other.words.len()
            && self.words.iter().zip(&other.words).all(|(own, other)| own & !other == 0)
    }
}

/// Numbers from [`MOST`] on are left out: there are no such CPUs.
impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::default();
        for cpu in cpus.into_iter().filter(|cpu| *cpu < MOST) {
            set.insert(cpu);
        }
        set
    }
}

/// Digits and nothing else.
fn number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|cpu| plain && *cpu < MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn parse(text: &str) -> Result<CpuSet, ReadError> {
        CpuSet::parse(Path::new("/proc/1/status"), text)
    }

    #[test]
    fn lists_as_the_kernel_writes_them() {
        let table: [(&str, &[u32]); 6] = [
            ("", &[]),
            ("0", &[0]),
            ("0-3,8", &[0, 1, 2, 3, 8]),
            ("63-64", &[63, 64]),
            ("2,4,6", &[2, 4, 6]),
            ("8191", &[8191]),
        ];
        for (text, cpus) in table {
            let set = parse(text).unwrap();
            assert_eq!(set, cpus.iter().copied().collect(), "{text}");
            assert_eq!(set.count(), cpus.len() as u64, "{text}");
        }
        assert_eq!(parse("0-8191").unwrap().count(), 8192);
    }

    #[test]
    fn anything_else_names_the_file() {
        for bad in ["max", "-1", "3-1", "0-", ",", "0,", "+1", "0 1", "8192", "0-4294967295", "0-x"]
        {
            let message = parse(bad).unwrap_err().to_string();
            assert!(message.starts_with("/proc/1/status"), "{bad:?}: {message}");
        }
    }

    #[test]
    fn a_part_is_smaller_than_the_whole() {
        let set = |text| parse(text).unwrap();
        for (part, whole, expected) in [
            ("0-1", "0-3", true),
            ("0-3", "0-3", false),
            ("0-3", "0-1", false),
            ("0,9", "0-3", false),
            ("0", "0,100", true),
            ("100", "0-3", false),
            ("", "0", true),
            ("", "", false),
        ] {
            assert_eq!(set(part).is_part_of(&set(whole)), expected, "{part:?} of {whole:?}");
        }
    }

    fn cpus() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0..200_u32, 0..30)
    }

    proptest! {
        #[test]
        fn it_is_a_set(a in cpus(), b in cpus()) {
            let set = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect::<CpuSet>();
            let list: Vec<String> = a.iter().map(u32::to_string).collect();
            prop_assert_eq!(parse(&list.join(",")).unwrap(), set(&a));
            prop_assert_eq!(set(&a) == set(&b), a == b);
            prop_assert!((0..256).all(|cpu| set(&a).contains(cpu) == a.contains(&cpu)));
            prop_assert_eq!(set(&a).is_part_of(&set(&b)), a != b && a.is_subset(&b));
            let mut both = set(&a);
            both.add(&set(&b));
            prop_assert_eq!(both.count(), a.union(&b).count() as u64);
            prop_assert_eq!(both, set(&a.union(&b).copied().collect()));
        }

        #[test]
        fn never_panics(text in "\\PC*|[0-9,-]{0,20}") {
            if let Ok(set) = parse(&text) {
                prop_assert_eq!(set.count() == 0, text.is_empty());
            }
        }
    }
}
