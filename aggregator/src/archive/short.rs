//! The rows of a run without what they say twice, and without what others say too.
//!
//! They repeat each other: cluster, account, times, state. A row repeats itself: what was given is
//! what was asked for, what all tasks used is what the greediest used. And they repeat what rows of
//! other runs say: who, how it ended, how much was asked for. So a run becomes a few [`Phrase`]s,
//! which it has in common with others and of which a file keeps each once, and a text of its own:
//! the figures and names that no other run has.
//!
//! A phrase has something for each field, with the delimiter behind it: what it says, or a mark.
//! [`ABOVE`] stands for the fields that say the same as in the row above, with their number behind it
//! if they are several; [`FIRST`] for what the job's own row says; [`LEFT`] for what the field to the
//! left says; [`OWN`] for the next field of the run's own, also with a number; [`KEY`] for what
//! follows from elsewhere ([`Known`]). What is a run's own are words, which stand in its text, and
//! [`figures`], which are packed; those of a run of which one is a word stand all in its text. The id with which a row ends is left out. A run needs no other,
//! so runs can be read, and forgotten, by themselves.

mod figures;
mod line;
pub mod places;
mod read;
#[cfg(test)]
mod tests;
mod usage;
mod write;

pub use places::{Known, Places};
pub use read::{own, read};
pub use write::{Scratch, has_marks, write};

/// Stands for fields that say the same as the row above: the record separator.
pub const ABOVE: u8 = 0x1e;

/// Stands for a field that says the same as the field to its left: the group separator.
pub const LEFT: u8 = 0x1d;

/// Stands for what follows from elsewhere: the file separator.
pub const KEY: u8 = 0x1c;

/// Behind each row of a step.
pub const ROW: u8 = 0x1b;

/// Stands for fields that the run says for itself: the substitute.
pub const OWN: u8 = 0x1a;

/// Stands for a field that says the same as in the job's own row: the end of medium.
pub const FIRST: u8 = 0x19;

/// What the usual list of what a step wrote begins with; a figure follows.
const WROTE: &[u8] = b"energy=0,fs/disk=";

/// The character behind a mark that stands for no field; the next one stands for one, and so on.
const NONE: u8 = b'0';

/// The most fields that one mark stands for.
const MOST: usize = 64;

/// What runs have in common. Apart from each other, because who asks and what is asked for have
/// little to do with each other: together there would be as many as runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phrase {
    /// Whose the job is.
    Who,
    /// How it went, and all that is said of nearly all jobs.
    How,
    /// What was asked for and given.
    Asked,
    /// All of its steps, one after the other.
    Steps,
}

/// Their number.
pub const PHRASES: usize = 4;

impl Phrase {
    /// The columns that have them, in their order.
    pub const COLUMNS: [&'static str; PHRASES] = ["who", "how", "asked", "steps"];
}

/// The phrases of a run, in their order.
pub type Phrases<'a> = [&'a [u8]; PHRASES];

/// A run that is written short.
#[derive(Clone, Copy, Debug)]
pub struct Short<'a> {
    /// What it has in common with others.
    pub phrases: Phrases<'a>,
    /// Its own figures, packed; `None` if they stand in its text.
    pub figures: Option<&'a [u8]>,
    /// Its own text.
    pub text: &'a [u8],
}
