//! Slurm's JSON, read from the pipe into the snapshot's own types: what is not asked for is
//! skipped, and no more than one record is held beside what comes out.
//!
//! Slurm changes its JSON from version to version: numbers become `{"set", "infinite", "number"}`,
//! words become lists. [`value`] reads all of them. To read a field more: its line in `narrow!`.

mod answer;
pub mod jobs;
mod legible;
pub mod nodes;
pub mod value;

pub use answer::JsonError;
