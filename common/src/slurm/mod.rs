//! Slurm's text dialects: `&str` in, types out.
//!
//! Slurm prints one fact in several spellings and several facts in one spelling. Each file here
//! reads one dialect, says which, and refuses everything else with a [`ParseError`]. Text that
//! says "there is nothing" (empty, `(null)`, `None assigned`) is an `Option` or an empty list.

pub mod array;
pub mod cgroup_path;
pub mod conf;
pub mod duration;
pub mod gres;
pub mod hostlist;
pub mod memory;
pub mod number;
pub mod sacct;
pub mod sluid;
pub mod state;
pub mod stepd;
pub mod tres;

/// Text that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {text:?} is not {expected}")]
pub struct ParseError {
    /// What was being read, for example `job id`.
    pub what: &'static str,
    /// The offending text, as it came.
    pub text: String,
    /// What would have been right.
    pub expected: &'static str,
}

impl ParseError {
    /// An error about `text`.
    #[must_use]
    pub fn new(what: &'static str, text: &str, expected: &'static str) -> ParseError {
        ParseError { what, text: text.to_owned(), expected }
    }
}
