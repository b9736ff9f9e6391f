//! The archive: every run of every job, for years, in Parquet files that anything can read.
//!
//! ```text
//! manifest.json                        what the archive holds; written last, so it decides
//! raw/cluster=C/date=D/G-….parquet     rows as sacct gave them; D is the UTC day they were asked for
//! processed/cluster=C/D.parquet        one row per run that ended on the UTC day D
//! processed/cluster=C/open.parquet     runs that have not ended
//! staging/G/…                          files of generation G that are not in their place yet
//! ```
//!
//! No other module knows Arrow or Parquet.

pub mod agent;
pub mod billed;
mod block;
pub mod bucket;
pub mod carry;
pub mod cells;
mod chunk;
pub mod column;
pub mod day;
mod dictionary;
pub mod facts;
pub mod files;
pub mod foreign;
mod forgotten;
mod group;
pub mod ids;
pub mod jobs;
pub mod lock;
pub mod manifest;
pub mod measured;
mod pack;
mod pages;
pub mod part;
pub mod processed;
pub mod ranks;
pub mod raw;
pub mod raw_filter;
pub mod raw_read;
pub mod read;
pub mod recover;
pub mod rows;
mod run_key;
pub mod shelf;
pub mod short;
pub mod stand_in;
pub mod store;
mod swap;
mod unpack;

use std::path::{Path, PathBuf};

pub use day::Day;
pub use store::{Archive, Change, Part};

use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::config::{Config, Location};

/// The archive at a place, which need not be the one of the configuration.
///
/// # Errors
/// If the place cannot be used.
pub fn open(place: &Location, config: &Config) -> Result<Archive, ArchiveError> {
    match place {
        Location::Directory(root) => {
            let shelf = Arc::new(shelf::Directory::new(root));
            Ok(Archive::new(shelf, root.join(LOCK)))
        }
        Location::S3 { bucket, prefix } => {
            let settings = &config.archive.s3;
            let shelf = Arc::new(bucket::Bucket::new(bucket, prefix, settings)?);
            // Object storage has no locks: this one is for this machine, and others are kept away
            // by the manifest, which says who is writing.
            let service = settings.endpoint.as_deref().unwrap_or_default();
            let digest = XxHash3_64::oneshot(format!("{service} {place}").as_bytes());
            let lock = config.serve.state.join(format!("archive-{digest:016x}.lock"));
            Ok(Archive::new(shelf, lock))
        }
    }
}

/// The name of the lock in the archive's directory.
pub const LOCK: &str = ".lock";

/// Where files wait to be put in their places.
const STAGING: &str = "staging";

/// What went wrong with the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {why}{}", path.display(), advice(path))]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The manifest is not what it should be.
    #[error("{}: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// Another writer is at work.
    #[error("another steward is changing the archive ({} is locked); try again later", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// Another machine is at work.
    #[error(
        "{}: {host} has been changing the archive for {minutes} min; try again later (if it died, \
         what it began is given up {limit} min after it began)",
        path.display()
    )]
    Elsewhere {
        /// The manifest.
        path: PathBuf,
        /// The other machine.
        host: String,
        /// For how long.
        minutes: i64,
        /// For how long it may.
        limit: i64,
    },
    /// Another machine was quicker.
    #[error(
        "{}: another machine has changed the archive meanwhile; nothing of this change is kept; \
         let one machine collect",
        path.display()
    )]
    Overtaken {
        /// The manifest.
        path: PathBuf,
    },
    /// A change counts, but what comes after it failed.
    #[error("{source}; all of it is kept, and the next collection or rebuild tidies up")]
    Kept {
        /// What failed.
        source: Box<ArchiveError>,
    },
    /// Parquet says no; where that was for want of space or rights, the text names the file.
    #[error("{0}")]
    Parquet(String),
    /// Arrow says no.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}

/// What to do about a file of the archive that is damaged.
fn advice(path: &Path) -> &'static str {
    let path = path.to_string_lossy();
    if path.contains("/processed/cluster=") {
        "; `steward archive rebuild` makes it anew from raw"
    } else if path.contains("/raw/cluster=") {
        "; put it back from a backup, or take it away: its jobs stay as they stand in processed"
    } else {
        ""
    }
}

impl ArchiveError {
    /// Whether somebody else may read it, and we may not.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        use std::io::ErrorKind::PermissionDenied;

        matches!(self, Self::File { source, .. } if source.kind() == PermissionDenied)
    }

    /// The same as an error that came when the change counted already.
    #[must_use]
    pub fn after_change(self) -> ArchiveError {
        ArchiveError::Kept { source: Box::new(self) }
    }
}

impl From<parquet::errors::ParquetError> for ArchiveError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError;

        match error {
            ParquetError::External(error) => ArchiveError::Parquet(error.to_string()),
            ParquetError::General(why) => {
                // What its writer makes of an error of the last bytes.
                let last = why.strip_prefix("fail to get inner writer: ");
                ArchiveError::Parquet(last.map_or(why.clone(), |why| why.replace('"', "")))
            }
            error => ArchiveError::Parquet(error.to_string()),
        }
    }
}
