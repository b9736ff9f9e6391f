//! What is done with an archive beside collecting into it: rebuilding one layer from the other,
//! forgetting a user, letting go of what is old, taking over the archive of another program.

pub mod forget;
pub mod import;
pub mod rebuild;
pub mod retention;
pub mod told;
pub mod winners;

use crate::archive::ArchiveError;

/// Why it was not done. Nothing of it counts then.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// We were told to stop.
    #[error("interrupted")]
    Stopped,
}

#[cfg(test)]
mod tests;
