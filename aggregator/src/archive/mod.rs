//! The archive: every run of every job, for years, in Parquet files that anything can read.
//!
//! ```text
//! manifest.json                        what the archive holds; written last, so it decides
//! raw/cluster=C/date=D/G-S.parquet     rows as sacct gave them; D is the UTC day they were asked for
//! processed/cluster=C/D.parquet        one row per run that ended on the UTC day D
//! processed/cluster=C/open.parquet     runs that have not ended
//! staging/G/…                          files of generation G that are not in their place yet
//! ```
//!
//! No other module knows Arrow or Parquet.

pub mod column;
pub mod processed;
pub mod raw;

use std::path::PathBuf;

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
    /// Parquet says no.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// Arrow says no.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}
