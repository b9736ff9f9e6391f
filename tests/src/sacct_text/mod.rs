//! Text as sacct prints it, of jobs that never were: a million of them for the benchmark, a few
//! thousand for tests. The same recipe gives the same bytes.
//!
//! `steward-sacct-replay DIRECTORY` stands for sacct over it: a test gives Steward
//! `[env!("CARGO_BIN_EXE_steward-sacct-replay"), DIRECTORY]` as the sacct to call.

mod answer;
mod arguments;
mod comment;
mod job;
mod random;
mod row;
mod seal;
mod store;

use std::io;
use std::path::Path;

use steward_common::slurm::sacct::{Field, Layout};

pub use answer::{json, rows};
pub use arguments::{Request, help_format, request};
pub use random::Random;
pub use seal::of_format;
pub use store::Store;

const DAY: u64 = 86_400;

/// The cluster whose jobs they are.
pub const CLUSTER: &str = "bench";

/// Which jobs are made.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// How many.
    pub jobs: u64,
    /// Over how many days before `now` they were submitted.
    pub days: u64,
    /// Other seeds give other jobs.
    pub seed: u64,
    /// Seconds since 1970: what would end later is still running or waiting.
    pub now: u64,
    /// Whether Jobstats left a summary in the comment of each job that ran for a minute.
    pub comments: bool,
}

/// What came of a recipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Runs of jobs: more than jobs, for some were requeued.
    pub runs: u64,
    /// Rows: those of the runs and of their steps.
    pub rows: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// The layout of the text: all that Slurm 22.05 knows.
#[must_use]
pub fn layout() -> Layout {
    Layout::new(|field| field != Field::Restarts)
}

impl Recipe {
    /// Writes the jobs to a directory, which must be empty or not be there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<Written> {
        self.write_as_of(self.now, directory)
    }

    /// The same jobs as they stood at an earlier time.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_as_of(&self, at: u64, directory: &Path) -> io::Result<Written> {
        let layout = layout();
        let mut writer = store::Writer::new(directory)?;
        let mut jobs = job::Jobs::new(self.seed, self.now);
        let mut written = Written::default();
        let begin = self.now - self.days * DAY;
        let mut text = Vec::new();
        for number in 0..self.jobs {
            let submit = begin + self.days * DAY * number / self.jobs;
            for run in jobs.next(submit).into_iter().filter_map(|run| run.seen_at(at)) {
                text.clear();
                row::write(&layout, &run, self.comments, &mut text);
                writer.add(&run, &text)?;
                written.runs += 1;
                written.rows += 1 + run.steps.len() as u64;
                let seals = memchr::memmem::find_iter(&text, seal::SEAL).count();
                written.bytes += (text.len() - seals * seal::SEAL.len()) as u64;
            }
        }
        writer.finish()?;
        Store::new(directory).close(&layout)?;
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
