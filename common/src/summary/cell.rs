//! The sums of all runs that are alike in everything that a table is made by. There are thousands
//! of such cells for a million runs, so a run is added once, and every table is made of the cells.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::hours::Hours;
use super::quantile::Waits;
use super::row::Row;
use crate::intern::Name;

/// What the runs of a cell have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) cluster: Name,
    pub(super) user: Name,
    pub(super) account: Name,
    pub(super) partition: Name,
    pub(super) qos: Name,
    pub(super) state: Name,
}

impl Key {
    pub(super) fn of(row: &Row) -> Key {
        Key {
            cluster: row.cluster,
            user: row.user,
            account: row.account,
            partition: row.partition,
            qos: row.qos,
            state: row.state,
        }
    }
}

/// Three numbers instead of six: it is done for every run.
impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let pair = |a: Name, b: Name| (a.index() as u64) << 32 | b.index() as u64;
        hasher.write_u64(pair(self.cluster, self.user));
        hasher.write_u64(pair(self.account, self.partition));
        hasher.write_u64(pair(self.qos, self.state));
    }
}

/// A quick hash for numbers that nobody outside chooses.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

pub(super) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// What some runs held and used, and how long they waited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Runs that held resources in the window, or, never started, ended or were submitted in it.
    pub jobs: u64,
    /// CPU-hours.
    pub cpu: Hours,
    /// GiB-hours of memory: asked for, and the peak for all the time.
    pub memory: Hours,
    /// GPU-hours.
    pub gpu: Hours,
    /// From submission to start, of the runs that started in the window.
    pub wait: Waits,
}

impl Tally {
    pub(super) fn merge(&mut self, other: &Tally) {
        self.jobs += other.jobs;
        self.cpu.merge(&other.cpu);
        self.memory.merge(&other.memory);
        self.gpu.merge(&other.gpu);
        self.wait.merge(&other.wait);
    }
}

/// All cells.
#[derive(Debug, Default)]
pub(super) struct Cells {
    places: QuickMap<Key, usize>,
    cells: Vec<(Key, Tally)>,
    last: usize,
}

impl Cells {
    /// The cell of this run. Runs come in bunches, arrays above all, so the last one is tried
    /// first.
    pub(super) fn of(&mut self, row: &Row) -> Option<&mut Tally> {
        let key = Key::of(row);
        if self.cells.get(self.last).is_none_or(|(last, _)| *last != key) {
            let next = self.cells.len();
            self.last = *self.places.entry(key).or_insert(next);
            if self.last == next {
                self.cells.push((key, Tally::default()));
            }
        }
        self.cells.get_mut(self.last).map(|(_, tally)| tally)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Tally)> {
        self.cells.iter().map(|(key, tally)| (key, tally))
    }
}
