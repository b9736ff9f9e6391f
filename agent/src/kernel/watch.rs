//! Directories and files that tell when something in them changes: jobs that begin and end.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// The file of a v2 cgroup that changes when its last process ends, and when it is frozen.
pub const EVENTS: &str = "cgroup.events";

/// The kernel counts watches by user; a node with more jobs than this is sampled by the clock.
const MOST: usize = 4096;

/// Watches paths.
#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    paths: HashMap<PathBuf, WatchDescriptor>,
    by_descriptor: HashMap<WatchDescriptor, PathBuf>,
}

impl Watch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// If the kernel gives no more of these.
    pub fn new() -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        Ok(Self { inotify, paths: HashMap::new(), by_descriptor: HashMap::new() })
    }

    /// A descriptor that is readable when something changed.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn readiness(&self) -> std::io::Result<OwnedFd> {
        self.inotify.as_fd().try_clone_to_owned()
    }

    /// Watches these paths and no others; true if one was added, since something may have happened
    /// in it before it was watched.
    pub fn set(&mut self, wanted: &BTreeSet<PathBuf>) -> bool {
        let (inotify, by_descriptor) = (&self.inotify, &mut self.by_descriptor);
        self.paths.retain(|path, descriptor| {
            let keep = wanted.contains(path);
            if !keep {
                by_descriptor.remove(descriptor);
                // Gone with its directory: the kernel has taken it back already.
                let _unless_gone = inotify.rm_watch(*descriptor);
            }
            keep
        });
        // A directory would tell of every change of a file in it, and a job at its memory limit
        // changes one a hundred times a second.
        let in_directory =
            AddWatchFlags::IN_CREATE | AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_TO;
        let mut added = false;
        for path in wanted {
            if self.paths.len() >= MOST || self.paths.contains_key(path) {
                continue;
            }
            let is_file = path.file_name().is_some_and(|name| name == EVENTS);
            let flags = if is_file { AddWatchFlags::IN_MODIFY } else { in_directory };
            // One that is gone by now is nothing to watch.
            if let Ok(descriptor) = self.inotify.add_watch(path, flags) {
                self.paths.insert(path.clone(), descriptor);
                self.by_descriptor.insert(descriptor, path.clone());
                added = true;
            }
        }
        added
    }

    /// The watched paths in which something changed since the last call.
    pub fn changed(&mut self) -> BTreeSet<PathBuf> {
        let mut fired = BTreeSet::new();
        while let Ok(events) = self.inotify.read_events() {
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    // What was lost may have been anything.
                    fired.extend(self.paths.keys().cloned());
                    continue;
                }
                let Some(path) = self.by_descriptor.get(&event.wd).cloned() else { continue };
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.by_descriptor.remove(&event.wd);
                    self.paths.remove(&path);
                }
                fired.insert(path);
            }
        }
        fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_changed_and_removed_is_told_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_path_buf();
        let mut watch = Watch::new().unwrap();
        assert!(watch.set(&BTreeSet::from([path.clone(), path.join("absent")])));
        assert!(!watch.set(&BTreeSet::from([path.clone()])), "nothing new");
        assert!(watch.changed().is_empty());
        std::fs::create_dir(path.join("job_1")).unwrap();
        assert_eq!(watch.changed(), BTreeSet::from([path.clone()]));
        assert!(watch.set(&BTreeSet::from([path.clone(), path.join("job_1")])));
        std::fs::remove_dir(path.join("job_1")).unwrap();
        assert_eq!(watch.changed(), BTreeSet::from([path.clone(), path.join("job_1")]));
        // Made anew, it is another directory and is watched anew.
        std::fs::create_dir(path.join("job_1")).unwrap();
        assert!(watch.set(&BTreeSet::from([path.clone(), path.join("job_1")])));
        watch.set(&BTreeSet::new());
        std::fs::create_dir(path.join("job_2")).unwrap();
        assert!(watch.changed().is_empty());
    }
}
