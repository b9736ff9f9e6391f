//! Which run of which job of a cluster, and sets of them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use steward_common::time::Timestamp;

/// Which run of which job of a cluster.
pub type RunKey = (u32, Timestamp);

/// A set of runs.
pub type RunSet = HashSet<RunKey, BuildHasherDefault<RunHasher>>;

/// Something about each of some runs.
pub type RunMap<T> = HashMap<RunKey, T, BuildHasherDefault<RunHasher>>;

/// Spreads the numbers and times that slurmctld gives, which nobody else chooses: a third of the
/// time that a hash takes against which nobody can choose them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunHasher(u64);

impl RunHasher {
    fn mix(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for RunHasher {
    fn finish(&self) -> u64 {
        // The table looks at the lowest and at the highest bits; a product's best are the highest.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.mix(number.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn runs_that_follow_one_another_are_spread() {
        let hash = |job: u32, submit: i64| {
            BuildHasherDefault::<RunHasher>::default().hash_one((job, Timestamp::new(submit)))
        };
        let mut low = [0_u32; 256];
        let mut high = [0_u32; 128];
        for job in 0..25_600_u32 {
            let hash = hash(4_000_000 + job, 1_792_195_205 + i64::from(job / 3));
            low[usize::try_from(hash % 256).unwrap()] += 1;
            high[usize::try_from(hash >> 57).unwrap()] += 1;
        }
        assert!(low.iter().all(|count| (50..200).contains(count)), "{low:?}");
        assert!(high.iter().all(|count| (100..400).contains(count)), "{high:?}");
        assert_ne!(hash(1, 2), hash(2, 1));
    }
}
