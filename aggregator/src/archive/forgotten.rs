//! `forgotten.json`: who was forgotten, a second time. A manifest that is lost is made anew from the
//! files that are there, but of those who were forgotten no file tells, and Slurm's database may
//! still have their jobs.

use std::io::{Read, Write};

use super::ArchiveError;
use super::manifest::Forgotten;
use super::shelf::{Shelf, at};

/// Its name.
const NAME: &str = "forgotten.json";

/// Those who were forgotten, as far as it is known without the manifest.
///
/// # Errors
/// If it is there and cannot be read.
pub(super) fn read(shelf: &dyn Shelf) -> Result<Vec<Forgotten>, ArchiveError> {
    let path = shelf.address(NAME);
    let Some(mut file) = shelf.open(NAME)? else { return Ok(Vec::new()) };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(at(&path))?;
    serde_json::from_str(&text).map_err(|error| ArchiveError::Manifest {
        path,
        why: format!(
            "{error}; put the right one back from a backup, or delete it and forget the users again"
        ),
    })
}

/// Writes them down, before the manifest does: rather once too early than not at all. Nobody who was
/// forgotten is ever taken off, so that there is nothing to do without any.
///
/// # Errors
/// If they cannot be written.
pub(super) fn keep(shelf: &dyn Shelf, list: &[Forgotten]) -> Result<(), ArchiveError> {
    if list.is_empty() || read(shelf).is_ok_and(|known| known == list) {
        return Ok(());
    }
    let text = serde_json::to_vec_pretty(list).map_err(|error| ArchiveError::Manifest {
        path: shelf.address(NAME),
        why: error.to_string(),
    })?;
    let mut file = shelf.scratch()?;
    let path = file.path().to_owned();
    file.write_all(&text).map_err(at(&path))?;
    shelf.put(file, NAME)
}
