//! The numbers of a few runs, before they go to their columns: those of one column side by side, so that
//! a column takes in many with one look at what it is, and not each with one.

use steward_common::time::Timestamp;

use super::chunk::Chunk;
use super::column::{COLUMNS, Kind};

/// Runs of a block: one word says which of them have a value.
pub(super) const RUNS: usize = u64::BITS as usize;

/// Columns of numbers.
const NUMBERS: usize = {
    let (mut numbers, mut place) = (0, 0);
    while place < COLUMNS.len() {
        // There is no other way to go through a list here.
        #[allow(clippy::indexing_slicing, reason = "the compiler does it, and sees if it is wrong")]
        let kind = COLUMNS[place].kind;
        numbers += !matches!(kind, Kind::Text) as usize;
        place += 1;
    }
    numbers
};

/// The numbers of up to [`RUNS`] runs.
pub(super) struct Block {
    /// Of each column which runs have a value, the first in the lowest bit.
    there: [u64; NUMBERS],
    values: Box<[[u64; RUNS]; NUMBERS]>,
    runs: usize,
}

impl Block {
    pub(super) fn new() -> Block {
        let none = || Box::new([[0; RUNS]; NUMBERS]);
        Block { there: [0; NUMBERS], values: none(), runs: 0 }
    }

    /// Begins the next run.
    #[inline]
    pub(super) fn run(&mut self) -> Run<'_> {
        let run = self.runs;
        debug_assert!(run < RUNS, "a full block is settled");
        self.runs = run + 1;
        Run { block: self, run, column: 0 }
    }

    /// Whether there is no room for another run.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.runs == RUNS
    }

    /// Gives all numbers to their columns, and begins anew.
    pub(super) fn settle<'c>(&mut self, columns: impl Iterator<Item = &'c mut Chunk>) {
        let runs = std::mem::take(&mut self.runs);
        if runs == 0 {
            return;
        }
        let there = std::mem::replace(&mut self.there, [0; NUMBERS]);
        for ((column, there), values) in columns.zip(there).zip(self.values.iter()) {
            column.numbers(there, values.get(..runs).unwrap_or_default());
        }
    }
}

/// Takes the numbers of one run, column by column.
pub(super) struct Run<'b> {
    block: &'b mut Block,
    run: usize,
    column: usize,
}

impl Run<'_> {
    /// Takes the next one, by its bits.
    #[inline(always)]
    pub(super) fn bits(&mut self, value: Option<u64>) {
        let places = self.block.values.get_mut(self.column);
        if let Some(place) = places.and_then(|column| column.get_mut(self.run)) {
            *place = value.unwrap_or(0);
        }
        if let Some(there) = self.block.there.get_mut(self.column) {
            *there |= u64::from(value.is_some()) << self.run;
        }
        self.column += 1;
    }

    /// Takes the next one, a whole number.
    #[inline(always)]
    pub(super) fn whole(&mut self, value: Option<i64>) {
        self.bits(value.map(i64::cast_unsigned));
    }

    /// Takes the next one, a moment.
    #[inline(always)]
    pub(super) fn time(&mut self, value: Option<Timestamp>) {
        self.whole(value.map(|time| time.get().saturating_mul(1000)));
    }
}
