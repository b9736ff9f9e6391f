//! Who may read the archive reads it; others are answered by the service, about themselves.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::archive::{self, Archive, ArchiveError};
use crate::config::{Config, Location};
use crate::serve::client::{AskError, ask};

/// There is no archive, or nothing in it.
#[derive(Debug, thiserror::Error)]
#[error("{0}: is not there, or nothing was collected yet")]
struct Empty(Location);

/// The archive at a place, if there is something in it. It may have to wait for an answer.
///
/// # Errors
/// If there is nothing, or it cannot be read.
pub fn open(place: &Location, config: &Config) -> anyhow::Result<Archive> {
    let archive = archive::open(place, config)?;
    let manifest = archive.manifest()?;
    if manifest.generation == 0 {
        archive.must_match(&manifest)?;
        return Err(Empty(place.clone()).into());
    }
    Ok(archive)
}

/// Whether the archive is not for us, so that the service may know more: its files, or the keys of
/// its bucket, are closed to us, or we see none.
pub fn is_closed(error: &anyhow::Error) -> bool {
    error.is::<Empty>() || error.downcast_ref::<ArchiveError>().is_some_and(ArchiveError::is_closed)
}

/// Asks the service what the archive did not tell us; `why` it did not.
///
/// # Errors
/// If the service does not answer, or refuses.
pub async fn instead<T: DeserializeOwned>(
    socket: &Path,
    command: &str,
    args: impl Serialize,
    why: &anyhow::Error,
) -> anyhow::Result<T> {
    ask(socket, command, args).await.map_err(|error| match error {
        AskError::NoService { .. } | AskError::Broken { .. } => anyhow::anyhow!(
            "neither the archive nor the service can be asked.\n  archive: {why}\n  \
             service: {error}\nAsk your administrator to run 'steward serve' on this machine \
             or to let you read the archive."
        ),
        // It was asked, and that is its answer.
        error => error.into(),
    })
}
