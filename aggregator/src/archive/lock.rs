//! One writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ArchiveError;
use super::shelf::{at, make_directory};

/// The right to change the archive; ends with the value, and with the process that has it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`; waits at most this long for another writer. `None` if `stop` said so
    /// meanwhile.
    ///
    /// # Errors
    /// If it is taken for longer, or cannot be had at all.
    pub fn take(
        path: &Path,
        patience: Duration,
        stop: &dyn Fn() -> bool,
        waiting: impl FnOnce(),
    ) -> Result<Option<Lock>, ArchiveError> {
        if let Some(directory) = path.parent() {
            make_directory(directory)?;
        }
        let mut options = OpenOptions::new();
        // As all files here: for the owner and a group.
        options.create(true).truncate(false).write(true).mode(0o640);
        let file = match options.open(path) {
            // Another user made it: to hold it, reading is enough.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => File::open(path),
            file => file,
        }
        .map_err(at(path))?;
        let until = Instant::now() + patience;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock { _file: file })),
                Err(TryLockError::WouldBlock) if stop() => return Ok(None),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    if let Some(waiting) = waiting.take() {
                        waiting();
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(ArchiveError::Busy { path: PathBuf::from(path) });
                }
                Err(TryLockError::Error(error)) => return Err(at(path)(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_for_its_owner_and_a_group() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        Lock::take(&path, Duration::ZERO, &|| false, || {}).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!((mode & 0o137, mode & 0o600), (0, 0o600), "{mode:o}");
    }

    #[test]
    fn who_waits_for_the_lock_hears_that_it_is_to_stop() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let hour = Duration::from_secs(3600);
        let take = |stop: bool| Lock::take(&path, hour, &|| stop, || {});
        let held = take(false).unwrap();
        assert!(held.is_some() && take(true).unwrap().is_none());
        drop(held);
        // What is free is taken all the same.
        assert!(take(true).unwrap().is_some());
    }
}
