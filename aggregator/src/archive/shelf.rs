//! Where the archive's files are: a directory, or object storage. Files are always written whole
//! beside their place and then put there, and read from a file of this machine.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::ArchiveError;

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Its name, with slashes.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// What stood under a name when somebody looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file, with what tells it from any other, where the place says that.
    File(Option<String>),
}

/// A place that keeps files by name.
pub trait Shelf: Send + Sync {
    /// For messages: where a file of this name is.
    fn address(&self, name: &str) -> PathBuf;

    /// A file to be written, on the same disk as its place where that can be.
    ///
    /// # Errors
    /// If none can be made.
    fn scratch(&self) -> Result<NamedTempFile, ArchiveError>;

    /// Puts a written file in its place, for good: it is there after the power fails.
    ///
    /// # Errors
    /// If that cannot be done.
    fn put(&self, file: NamedTempFile, name: &str) -> Result<(), ArchiveError>;

    /// A file to read; `None` if there is none of this name.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, name: &str) -> Result<Option<File>, ArchiveError>;

    /// The same with what tells this file from any other that may come to have its name, where the
    /// place says that.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open_stamped(&self, name: &str) -> Result<Option<(File, Option<String>)>, ArchiveError> {
        Ok(self.open(name)?.map(|file| (file, None)))
    }

    /// Puts a file in the place of what was there before, and says what tells it from any other.
    ///
    /// # Errors
    /// If that cannot be done; [`ArchiveError::Overtaken`] if something else is there by now.
    fn replace(
        &self,
        file: NamedTempFile,
        name: &str,
        _before: &Before,
    ) -> Result<Option<String>, ArchiveError> {
        self.put(file, name)?;
        Ok(None)
    }

    /// Whether machines may write to it that do not see each other's locks.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether [`Shelf::replace`] sees that something else is there; tried out.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn keeps_apart(&self) -> Result<bool, ArchiveError> {
        Ok(true)
    }

    /// Gives a file another name, in place of one that has it. One that is gone has been renamed.
    ///
    /// # Errors
    /// If that cannot be done.
    fn rename(&self, from: &str, to: &str) -> Result<(), ArchiveError>;

    /// Takes a file away. One that is not there is no error.
    ///
    /// # Errors
    /// If that cannot be done.
    fn delete(&self, name: &str) -> Result<(), ArchiveError>;

    /// All files whose names begin with `prefix` and a slash.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn list(&self, prefix: &str) -> Result<Vec<Item>, ArchiveError>;

    /// Takes away directories below `prefix` that hold nothing, as a writer that died may leave
    /// them. They do no harm, so nothing is said if that cannot be done.
    fn drop_empty(&self, _prefix: &str) {}
}

/// A directory.
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The directory at `root`, which need not be there yet.
    #[must_use]
    pub fn new(root: &Path) -> Directory {
        Directory { root: root.to_owned() }
    }
}

/// Puts the path into an error.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> ArchiveError {
    move |source| ArchiveError::File { path: path.to_owned(), source }
}

/// Makes a directory with those above it. The archive has the names and command lines of everybody's
/// jobs: its owner and a group may read it, nobody else.
pub(super) fn make_directory(path: &Path) -> Result<(), ArchiveError> {
    DirBuilder::new().recursive(true).mode(0o750).create(path).map_err(at(path))
}

/// Makes a change of names in a directory last.
fn sync_directory(path: &Path) -> Result<(), ArchiveError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(at(path))
}

fn drop_empty(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            drop_empty(&entry.path());
        }
    }
    // One that is not empty stays.
    drop(fs::remove_dir(path));
}

impl Shelf for Directory {
    fn address(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn scratch(&self) -> Result<NamedTempFile, ArchiveError> {
        let directory = self.root.join(super::STAGING);
        make_directory(&directory)?;
        tempfile::Builder::new().prefix("new-").tempfile_in(&directory).map_err(at(&directory))
    }

    fn put(&self, file: NamedTempFile, name: &str) -> Result<(), ArchiveError> {
        let path = self.address(name);
        let directory = path.parent().unwrap_or(&self.root);
        make_directory(directory)?;
        // Temporary files are for their owner alone; the archive is for a group too.
        let readable = fs::Permissions::from_mode(0o640);
        file.as_file().set_permissions(readable).map_err(at(&path))?;
        file.as_file().sync_all().map_err(at(&path))?;
        file.persist(&path).map_err(|error| at(&path)(error.error))?;
        sync_directory(directory)
    }

    fn open(&self, name: &str) -> Result<Option<File>, ArchiveError> {
        let path = self.address(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), ArchiveError> {
        let (from, to) = (self.address(from), self.address(to));
        let directory = to.parent().unwrap_or(&self.root);
        make_directory(directory)?;
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && to.exists() => {}
            result => result.map_err(at(&from))?,
        }
        sync_directory(directory)
    }

    fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        let path = self.address(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        // Directories that this leaves empty go too, as in object storage.
        for parent in path.ancestors().skip(1) {
            if parent == self.root || fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Item>, ArchiveError> {
        let mut found = Vec::new();
        let mut waiting = vec![prefix.to_owned()];
        while let Some(name) = waiting.pop() {
            let path = self.address(&name);
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(at(&path))?,
            };
            for entry in entries {
                let entry = entry.map_err(at(&path))?;
                let Ok(file) = entry.file_name().into_string() else { continue };
                let name = format!("{name}/{file}");
                match entry.metadata() {
                    Ok(data) if data.is_dir() => waiting.push(name),
                    Ok(data) => found.push(Item { name, bytes: data.len() }),
                    // It went while we looked.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(at(&path)(error)),
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn drop_empty(&self, prefix: &str) {
        drop_empty(&self.address(prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_for_its_owner_and_a_group_and_nobody_else() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("lib/archive");
        let shelf = Directory::new(&root);
        shelf.put(shelf.scratch().unwrap(), "raw/cluster=c1/1.parquet").unwrap();
        shelf.rename("raw/cluster=c1/1.parquet", "processed/cluster=c1/2.parquet").unwrap();
        let file = "processed/cluster=c1/2.parquet";
        for above in Path::new(file).ancestors().skip(1).chain([Path::new("staging")]) {
            let mode = mode(&root.join(above));
            assert_eq!((mode & 0o007, mode & 0o700), (0, 0o700), "{}", above.display());
        }
        assert_eq!(mode(&root.join(file)), 0o640);
        // A directory that the site has made stays as it is.
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        Directory::new(&open).scratch().unwrap();
        assert_eq!(mode(&open), 0o755);
    }
}
