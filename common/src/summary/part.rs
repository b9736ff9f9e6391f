//! The sums by one thing: by user, by account, … A row is added to each of a handful of such
//! tables, so a name is found by its number and the sums of one name lie together.

use std::collections::HashMap;

use super::cause::Cause;
use super::hours::{Alike, Took};
use super::quantile::Waits;
use super::report::{Line, Tally};
use crate::intern::{Name, Names};

/// What one run adds to a sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// How it ended; `None` if it has not.
    pub(super) cause: Option<Cause>,
    /// What it held and used in the window.
    pub(super) took: Took,
    /// Seconds that it waited, if it started in the window.
    pub(super) wait: Option<u32>,
}

/// Small numbers for the names of one kind, in the order in which they were seen.
#[derive(Debug, Default)]
struct Order {
    places: Vec<Option<u32>>,
    names: Vec<Name>,
}

impl Order {
    fn of(&mut self, name: Name) -> usize {
        if let Some(Some(place)) = self.places.get(name.index()) {
            return *place as usize;
        }
        if self.places.len() <= name.index() {
            self.places.resize(name.index() + 1, None);
        }
        let next = self.names.len();
        if let Some(place) = self.places.get_mut(name.index()) {
            *place = u32::try_from(next).ok();
        }
        self.names.push(name);
        next
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    pub(super) fn insert(&mut self, number: usize) {
        let (word, bit) = (number / 64, 1u64 << (number % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word).filter(|word| **word & bit == 0) {
            *word |= bit;
            self.count += 1;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn merge(&mut self, other: &Bits) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (ours, theirs) in self.words.iter_mut().zip(&other.words) {
            *ours |= theirs;
        }
        self.count = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
    }
}

/// One for each [`Cause`], and one for runs that have not ended.
const ENDS: usize = Cause::ALL.len() + 1;

/// The sums of one name.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    wait: Waits,
    users: Bits,
    ends: [Alike; ENDS],
}

impl Part {
    fn add(&mut self, run: &Run) {
        let end = run.cause.map_or(ENDS - 1, |cause| cause as usize);
        if let Some(alike) = self.ends.get_mut(end) {
            alike.add(&run.took);
        }
        if let Some(wait) = run.wait {
            self.wait.add(wait);
        }
    }

    pub(super) fn merge(&mut self, other: &Part) {
        for (ours, theirs) in self.ends.iter_mut().zip(&other.ends) {
            ours.merge(theirs);
        }
        self.wait.merge(&other.wait);
        self.users.merge(&other.users);
    }

    /// The line of a table.
    pub(super) fn line(self, name: &str) -> Line {
        let mut line = Line { name: name.to_owned(), users: self.users.count(), ..Line::default() };
        let causes = Cause::ALL.into_iter().map(Some).chain([None]);
        for (alike, cause) in self.ends.iter().zip(causes) {
            let tally: &mut Tally = &mut line.tally;
            tally.jobs += alike.jobs;
            let [cpu, memory, gpu] = &alike.hours(cause.is_some());
            tally.cpu.merge(cpu);
            tally.memory.merge(memory);
            tally.gpu.merge(gpu);
            if let Some(cause) = cause {
                line.waste.cpu.add(cause, cpu);
                line.waste.memory.add(cause, memory);
                line.waste.gpu.add(cause, gpu);
            }
        }
        line.tally.wait = self.wait;
        line
    }
}

/// The sums by one thing.
#[derive(Debug, Default)]
pub(super) struct Parts {
    order: Order,
    parts: Vec<Part>,
}

impl Parts {
    fn at(&mut self, name: Name) -> Option<&mut Part> {
        let place = self.order.of(name);
        if self.parts.len() <= place {
            self.parts.resize(place + 1, Part::default());
        }
        self.parts.get_mut(place)
    }

    /// Counts a run under a name; `user` is the small number of its user.
    pub(super) fn add(&mut self, name: Name, run: &Run, user: usize) {
        if let Some(part) = self.at(name) {
            part.add(run);
            part.users.insert(user);
        }
    }

    /// The small number of a user, where these are the sums by user.
    pub(super) fn user(&mut self, name: Name) -> usize {
        let user = self.order.of(name);
        if self.parts.len() <= user {
            self.parts.resize(user + 1, Part::default());
            if let Some(part) = self.parts.get_mut(user) {
                part.users.insert(user);
            }
        }
        user
    }

    /// Counts a run of the user of this number.
    pub(super) fn add_user(&mut self, user: usize, run: &Run) {
        if let Some(part) = self.parts.get_mut(user) {
            part.add(run);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Name, &Part)> {
        self.order.names.iter().copied().zip(&self.parts)
    }

    pub(super) fn lines(self, names: &Names) -> Vec<Line> {
        let all = self.order.names.into_iter().zip(self.parts);
        sorted(all.map(|(name, part)| part.line(names.text(name))).collect())
    }
}

/// What a run was queued for: cluster, partition, quality of service.
pub(super) type Queue = [Name; 3];

/// The sums by queue. There are few of them, so three tables cost a row one sum.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Apart from the sums, so that looking for one stays within a few lines of cache.
    queues: Vec<Queue>,
    parts: Vec<Part>,
    places: HashMap<Queue, usize>,
    last: usize,
}

impl Queues {
    pub(super) fn add(&mut self, queue: Queue, run: &Run, user: usize) {
        // Rows come in bunches.
        if self.queues.get(self.last) != Some(&queue) {
            self.last = self.find(queue);
        }
        if let Some(part) = self.parts.get_mut(self.last) {
            part.add(run);
            part.users.insert(user);
        }
    }

    /// Most sites have a dozen queues, for which a look at each is quicker than a hash.
    fn find(&mut self, queue: Queue) -> usize {
        if let Some(place) = self.queues.iter().take(32).position(|known| *known == queue) {
            return place;
        }
        let next = self.queues.len();
        let place = *self.places.entry(queue).or_insert(next);
        if place == next {
            self.queues.push(queue);
            self.parts.push(Part::default());
        }
        place
    }

    /// The sums by one of the three.
    pub(super) fn by(&self, which: fn(&Queue) -> Name) -> Parts {
        let mut parts = Parts::default();
        for (queue, part) in self.queues.iter().zip(&self.parts) {
            if let Some(sum) = parts.at(which(queue)) {
                sum.merge(part);
            }
        }
        parts
    }
}

/// Most CPU-hours first, and always in the same order.
pub(super) fn sorted(mut lines: Vec<Line>) -> Vec<Line> {
    lines.sort_by(|a, b| {
        let hours = b.tally.cpu.reserved.total_cmp(&a.tally.cpu.reserved);
        hours.then_with(|| b.tally.jobs.cmp(&a.tally.jobs)).then_with(|| a.name.cmp(&b.name))
    });
    lines
}
