//! Of every run the version that counts: the newest. Kept small, for there may be many millions.

use std::cmp::Reverse;
use std::collections::HashMap;

use steward_common::time::Timestamp;

use crate::archive::read::RunKey;
use crate::archive::{Day, Part, stand_in};

/// Instead of the number of a file: the run stands in `processed` only.
pub const PROCESSED: u32 = u32::MAX;

/// Instead of the number of a day: the run has not ended.
const OPEN: i32 = i32::MAX;

/// Versions that are gathered before those that do not count are thrown away.
const SLACK: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Where a version of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    submit: Timestamp,
    job: u32,
    /// The number of its raw file.
    pub file: u32,
    /// The place of its first row.
    pub row: u32,
    day: i32,
}

impl Place {
    /// That of a run that ended then, or has not.
    #[must_use]
    pub fn new(run: RunKey, end: Option<Timestamp>, file: u32, row: u32) -> Place {
        // A day beyond the calendar is none of which a job was.
        let number = |end| i32::try_from(Day::of(end).number()).unwrap_or(OPEN - 1);
        let (job, submit) = run;
        Place { submit, job, file, row, day: end.map_or(OPEN, number) }
    }

    /// Which run it is of.
    #[must_use]
    pub fn run(&self) -> RunKey {
        (self.job, self.submit)
    }

    /// The part of `processed` it belongs to.
    #[must_use]
    pub fn part(&self) -> Part {
        match self.day {
            OPEN => Part::Open,
            day => Part::Day(Day::new(i64::from(day))),
        }
    }
}

/// Versions of runs while they are gathered.
#[derive(Default)]
pub struct Winners {
    /// The generation of each file.
    generations: Vec<u64>,
    places: Vec<Place>,
    settled: usize,
}

impl Winners {
    /// Begins the next file, written in this generation; its number. Files come oldest first.
    pub fn file(&mut self, generation: u64) -> u32 {
        self.generations.push(generation);
        u32::try_from(self.generations.len() - 1).unwrap_or(PROCESSED - 1)
    }

    /// Adds a version.
    pub fn add(&mut self, place: Place) {
        self.places.push(place);
        if self.places.len() > self.settled.saturating_mul(2).saturating_add(SLACK) {
            self.settle();
        }
    }

    /// Throws away what does not count. What is left is in the order of jobs and submission.
    fn settle(&mut self) {
        let generation = |place: &Place| {
            usize::try_from(place.file).ok().and_then(|file| self.generations.get(file)).copied()
        };
        // In one generation a run that has ended counts more than one that has not, as when it is
        // collected.
        let order = |place: &Place| {
            let worth = (generation(place), place.day != OPEN, Reverse(place.day), place.file);
            (place.job, place.submit, Reverse(worth), place.row)
        };
        self.places.sort_unstable_by_key(order);
        self.places.dedup_by_key(|place| place.run());
        self.settled = self.places.len();
    }

    /// The versions that count, in the order of jobs and submission.
    #[must_use]
    pub fn finish(mut self) -> Vec<Place> {
        self.settle();
        self.places
    }
}

/// Which run of its job each is, from 0; only those that are not the first.
#[must_use]
pub fn ranks(places: &[Place]) -> HashMap<RunKey, u32> {
    let mut ranks = HashMap::new();
    for runs in places.chunk_by(|one, next| one.job == next.job) {
        for (rank, place) in (0..).zip(runs).skip(1) {
            ranks.insert(place.run(), rank);
        }
    }
    ranks
}

/// Puts them in the order in which they are written: by part, file and place; in each part runs
/// under numbers that are not their own come last.
pub fn by_part(places: &mut [Place]) {
    places
        .sort_unstable_by_key(|place| (place.day, stand_in::is(place.job), place.file, place.row));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn run(job: u32, submit: i64) -> RunKey {
        (job, Timestamp::new(submit))
    }

    #[test]
    fn the_newest_version_counts() {
        let mut winners = Winners::default();
        let (old, new) = (winners.file(3), winners.file(4));
        let ended = |day: i64| Some(Timestamp::new(day * DAY));
        winners.add(Place::new(run(1, 5), None, new, 0));
        winners.add(Place::new(run(1, 5), ended(9), old, 7));
        winners.add(Place::new(run(2, 5), ended(9), old, 0));
        winners.add(Place::new(run(1, 4), ended(8), old, 3));
        let mut places = winners.finish();
        assert_eq!(
            places.iter().map(|p| (p.run(), p.file)).collect::<Vec<_>>(),
            [(run(1, 4), old), (run(1, 5), new), (run(2, 5), old),]
        );
        assert_eq!(ranks(&places), HashMap::from([(run(1, 5), 1)]));
        by_part(&mut places);
        assert_eq!(places.iter().map(|p| p.run().0).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(places.last().unwrap().part(), Part::Open);
    }

    #[test]
    fn in_one_generation_what_has_ended_counts_and_of_two_ends_the_first() {
        let mut winners = Winners::default();
        let (one, two) = (winners.file(3), winners.file(3));
        winners.add(Place::new(run(1, 5), Some(Timestamp::new(DAY)), one, 0));
        winners.add(Place::new(run(1, 5), Some(Timestamp::new(2 * DAY)), two, 0));
        winners.add(Place::new(run(1, 5), None, two, 4));
        let places = winners.finish();
        assert_eq!(places.len(), 1);
        assert_eq!((places[0].file, places[0].row), (one, 0));
    }

    #[test]
    fn memory_is_that_of_the_runs_and_not_of_their_versions() {
        let mut winners = Winners::default();
        for generation in 1..=5 {
            let file = winners.file(generation);
            for job in 0..SLACK as u32 / 2 {
                winners.add(Place::new(run(job, 1), None, file, job));
            }
        }
        assert!(winners.places.len() <= 2 * SLACK);
        assert!(winners.finish().iter().all(|place| place.file == 4));
    }
}
