//! Of several services on one state directory, one leads: the one that holds the lock on a file
//! there. The kernel takes the lock back when its holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::shutdown::Shutdown;

/// How often the lock is looked after: what a takeover may take.
const PERIOD: Duration = Duration::from_secs(1);

/// How long the file system may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether this service acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It does.
    Leader,
    /// Another one does.
    Standby,
    /// Nobody knows: the lock cannot be used.
    Trouble(String),
}

/// The lock and what has become of it.
#[derive(Debug)]
pub struct Leadership {
    path: PathBuf,
    role: Mutex<Role>,
    held: Mutex<Option<File>>,
}

impl Leadership {
    /// For the lock in `state`, which is made if it is missing. Nobody leads yet.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn new(state: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(state)?;
        Ok(Self {
            path: state.join("leader.lock"),
            role: Mutex::new(Role::Standby),
            held: Mutex::new(None),
        })
    }

    /// What this service is now.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether this service acts.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.role() == Role::Leader
    }

    fn turn(&self, role: Role) {
        let mut now = self.role.lock().unwrap_or_else(PoisonError::into_inner);
        if *now != role {
            match &role {
                Role::Leader => tracing::info!("this service leads"),
                Role::Standby => tracing::info!("another service leads; waiting"),
                Role::Trouble(why) => tracing::error!(why, "cannot tell who leads"),
            }
            *now = role;
        }
    }

    /// Takes the lock if it is free, and sees whether it is still ours if it was.
    fn look(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody who removes the file lets another service lock a new one.
        if held.as_ref().is_some_and(|file| !is_at(file, &self.path)) {
            *held = None;
        }
        if held.is_some() {
            return self.turn(Role::Leader);
        }
        match acquire(&self.path) {
            Ok(Some(file)) => {
                *held = Some(file);
                self.turn(Role::Leader);
            }
            Ok(None) => self.turn(Role::Standby),
            Err(error) => {
                self.turn(Role::Trouble(format!("{}: {error}", self.path.display())));
            }
        }
    }

    /// Looks after the lock until `shutdown`. It is kept then, for tasks that are still ending.
    pub async fn run(self: Arc<Self>, shutdown: Shutdown) {
        loop {
            let own = Arc::clone(&self);
            let mut look = tokio::task::spawn_blocking(move || own.look());
            if tokio::time::timeout(PATIENCE, &mut look).await.is_err() {
                let path = self.path.display();
                self.turn(Role::Trouble(format!("{path}: the file system does not answer")));
                // One look at a time: this one is waited for.
                if shutdown.or(look).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Lets another service lead.
    pub fn release(&self) {
        // A look that hangs in the file system holds it; the end of the process frees the lock.
        if let Ok(mut held) = self.held.try_lock() {
            *held = None;
        }
    }
}

/// The locked file; `None` if another has it.
fn acquire(path: &Path) -> io::Result<Option<File>> {
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) if is_at(&file, path) => {
            // For people who look: nobody reads it.
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())?;
            Ok(Some(file))
        }
        // The file was replaced between opening and locking.
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether `file` is the one that `path` names.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(named)) => (own.dev(), own.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_and_the_other_takes_over() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) =
            (Leadership::new(dir.path()).unwrap(), Leadership::new(dir.path()).unwrap());
        one.look();
        two.look();
        assert_eq!((one.role(), two.role()), (Role::Leader, Role::Standby));
        one.look();
        assert!(one.leads());
        one.release();
        two.look();
        assert!(two.leads());
    }

    #[test]
    fn a_leader_whose_lock_was_removed_does_not_lead_beside_another() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) =
            (Leadership::new(dir.path()).unwrap(), Leadership::new(dir.path()).unwrap());
        one.look();
        std::fs::remove_file(dir.path().join("leader.lock")).unwrap();
        two.look();
        one.look();
        assert_eq!((one.role(), two.role()), (Role::Standby, Role::Leader));
    }

    #[test]
    fn a_lock_that_cannot_be_used_is_trouble_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let one = Leadership::new(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("leader.lock")).unwrap();
        one.look();
        assert!(matches!(one.role(), Role::Trouble(why) if why.contains("leader.lock")));
    }
}
