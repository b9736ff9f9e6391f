//! How much a collection has seen.

/// What a part of a collection has seen. A part that is gathered again begins from nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Rows that sacct gave.
    pub rows: u64,
    /// Runs that were new or had changed.
    pub runs: u64,
    /// Values that could not be read; their runs stand without them.
    pub odd: u64,
    /// Runs to which agents' figures were added.
    pub measured: u64,
}

impl Counts {
    /// Adds what another part has seen.
    pub fn add(&mut self, other: Counts) {
        self.rows += other.rows;
        self.runs += other.runs;
        self.odd += other.odd;
        self.measured += other.measured;
    }
}
