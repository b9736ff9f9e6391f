//! The text that is collected, made once a day for each size and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use steward_tests::sacct_text::{Recipe, Store, layout};

const DAY: u64 = 86_400;

/// Text of a size.
pub struct Text {
    /// Where it lies.
    pub directory: PathBuf,
    /// How many jobs.
    pub jobs: u64,
}

impl Text {
    /// That of `jobs` jobs over the `days` days before today: the one in the cache if it is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn of(jobs: u64, days: u64, cache: &Path) -> Result<Text> {
        Self::with(jobs, days, false, cache)
    }

    /// The same, with or without Jobstats' summaries in the comments.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn with(jobs: u64, days: u64, comments: bool, cache: &Path) -> Result<Text> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / DAY * DAY;
        let name = format!("text-{jobs}-{days}");
        let directory = cache.join(format!("{name}-{}", now / DAY));
        if Store::new(&directory).layout() != Some(layout()) {
            // Of another day, of other fields, or not whole.
            for old in fs::read_dir(cache)? {
                let old = old?;
                if old.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
                    fs::remove_dir_all(old.path())?;
                }
            }
            let start = Instant::now();
            let recipe = Recipe { jobs, days, seed: 1, now, comments };
            let written =
                recipe.write(&directory).with_context(|| directory.display().to_string())?;
            println!(
                "  made {jobs} jobs over {days} days: {} rows, {:.2} GB of text, in {:.0} s",
                written.rows,
                written.bytes as f64 / 1e9,
                start.elapsed().as_secs_f64()
            );
        }
        Ok(Text { directory, jobs })
    }

    /// Its files.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(Store::new(&self.directory).files()?)
    }
}
