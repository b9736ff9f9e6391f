//! Which run of which job of a cluster, and sets of them.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use steward_common::time::Timestamp;

/// Which run of which job of a cluster.
pub type RunKey = (u32, Timestamp);

/// A set of runs.
pub type RunSet = HashSet<RunKey, BuildHasherDefault<RunHasher>>;

/// Something about each of some runs: in their order, which takes half the room of a map, for many days
/// may be looked at together.
#[derive(Debug)]
pub struct RunList<T>(Vec<(RunKey, T)>);

impl<T> Default for RunList<T> {
    fn default() -> Self {
        RunList(Vec::new())
    }
}

impl<T> RunList<T> {
    /// Those of these runs, each of which is there once.
    #[must_use]
    pub fn of(mut runs: Vec<(RunKey, T)>) -> RunList<T> {
        runs.sort_unstable_by_key(|(run, _)| *run);
        RunList(runs)
    }

    /// What is known of a run.
    #[must_use]
    pub fn get(&self, run: RunKey) -> Option<&T> {
        let place = self.0.binary_search_by_key(&run, |(run, _)| *run).ok()?;
        self.0.get(place).map(|(_, known)| known)
    }

    /// The runs.
    pub fn keys(&self) -> impl Iterator<Item = RunKey> {
        self.0.iter().map(|(run, _)| *run)
    }
}

/// Runs that have come: only whether. sacct tells of most in the order of their numbers, so they need no
/// more than a list, in a fifth of the room of a [`RunSet`], for a day may have very many.
#[derive(Debug, Default)]
pub struct Seen {
    /// Those behind which only larger ones were added, in their order.
    in_order: Vec<u64>,
    others: HashSet<u64, BuildHasherDefault<RunHasher>>,
}

/// As many runs as a day of a busy cluster has.
const BUSY_DAY: usize = 1 << 15;

impl Seen {
    /// Nothing has come, and there is room for a day: what grows step by step leaves as much behind as
    /// it has in the end.
    #[must_use]
    pub fn of_a_day() -> Seen {
        Seen { in_order: Vec::with_capacity(BUSY_DAY), others: HashSet::default() }
    }

    /// The job and the lower half of the time: two runs of a job are not 136 years apart.
    fn packed((job, submit): RunKey) -> u64 {
        u64::from(job) << 32 | submit.get().cast_unsigned() & u64::from(u32::MAX)
    }

    /// Adds a run; whether it had not come yet.
    pub fn insert(&mut self, run: RunKey) -> bool {
        let run = Self::packed(run);
        if self.in_order.last().is_none_or(|last| *last < run) {
            // None of the others is larger than the last of these was when it came.
            self.in_order.push(run);
            return true;
        }
        self.in_order.binary_search(&run).is_err() && self.others.insert(run)
    }

    /// Whether a run has come.
    #[must_use]
    pub fn contains(&self, run: RunKey) -> bool {
        let run = Self::packed(run);
        self.in_order.binary_search(&run).is_ok() || self.others.contains(&run)
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // What comes first is in order.
        self.in_order.is_empty()
    }
}

impl<'a> Extend<&'a RunKey> for Seen {
    fn extend<T: IntoIterator<Item = &'a RunKey>>(&mut self, runs: T) {
        for run in runs {
            self.insert(*run);
        }
    }
}

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

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
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
    fn a_run_has_come_once_it_was_added() {
        let mut seen = Seen::default();
        let run = |job, submit| (job, Timestamp::new(submit));
        assert!(seen.is_empty() && seen.insert(run(7, 1_794_811_575)));
        assert!(!seen.insert(run(7, 1_794_811_575)) && seen.insert(run(7, 1_794_811_576)));
        seen.extend(&[run(8, 1)]);
        assert!(seen.contains(run(8, 1)) && !seen.contains(run(1, 8)) && !seen.contains(run(8, 2)));
    }

    #[test]
    fn in_which_order_runs_come_does_not_matter() {
        let mut seen = Seen::default();
        // Backwards, forwards, and back and forth.
        let jobs = (0..50_u32).rev().chain(50..100).chain((128..192).map(|job| job ^ 0x15));
        for job in jobs.clone() {
            let run = (job, Timestamp::new(7));
            assert!(!seen.contains(run) && seen.insert(run) && seen.contains(run), "{job}");
        }
        assert!(jobs.clone().all(|job| !seen.insert((job, Timestamp::new(7)))));
        assert!(
            !seen.contains((50, Timestamp::new(8))) && !seen.contains((999, Timestamp::new(7)))
        );
    }

    #[test]
    fn what_is_known_of_a_run_is_found() {
        let run = |job, submit| (job, Timestamp::new(submit));
        let list = RunList::of(vec![(run(7, 5), 'a'), (run(3, 9), 'b'), (run(7, 4), 'c')]);
        assert_eq!(list.get(run(7, 4)).zip(list.get(run(3, 9))), Some((&'c', &'b')));
        assert_eq!((list.get(run(7, 6)), RunList::<char>::default().get(run(7, 5))), (None, None));
        assert!(list.keys().eq([run(3, 9), run(7, 4), run(7, 5)]));
    }

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
