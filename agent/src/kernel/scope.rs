//! Finding Slurm's scopes: the directories below which it keeps its jobs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use steward_common::id::{NodeName, Uid};
use steward_common::slurm::cgroup_path::{self, JobDir, Version};

use super::error::{Errors, ReadError};

/// Slices and container prefixes nest; a pod with slurmd in it needs five levels.
const DEPTH: usize = 6;

/// A whole search costs a readdir for each cgroup of the host, so it is done this seldom once a
/// scope is known; in between only the neighbours of known scopes are looked at.
const SEARCH_EVERY: u32 = 20;

/// A scope directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Where it is.
    pub path: PathBuf,
    /// The node, on builds with several slurmd on a host.
    pub node: Option<NodeName>,
}

/// A job directory below a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// The node, where the scope names it.
    pub node: Option<NodeName>,
    /// The owner, where the path names it.
    pub uid: Option<Uid>,
    /// The job, as the directory names it.
    pub job: JobDir,
}

/// The scopes below one mount.
#[derive(Debug)]
pub struct Scopes {
    root: PathBuf,
    version: Version,
    known: BTreeSet<Scope>,
    until_search: u32,
}

impl Scopes {
    /// Nothing is read before the first [`Self::jobs`].
    #[must_use]
    pub fn new(root: &Path, version: Version) -> Self {
        Self { root: root.to_path_buf(), version, known: BTreeSet::new(), until_search: 0 }
    }

    /// The scopes of the last [`Self::jobs`].
    pub fn known(&self) -> impl Iterator<Item = &Scope> {
        self.known.iter()
    }

    /// Every job directory below every scope.
    pub fn jobs(&mut self, errors: &mut Errors) -> Vec<Found> {
        self.refresh(errors);
        let mut found = Vec::new();
        for scope in &self.known {
            for (name, path) in directories(&scope.path, errors) {
                if let Some(job) = cgroup_path::job_dir(&name) {
                    found.push(Found { path, node: scope.node.clone(), uid: None, job });
                } else if let Some(uid) = cgroup_path::uid_dir(&name) {
                    for (name, path) in directories(&path, errors) {
                        if let Some(job) = cgroup_path::job_dir(&name) {
                            let node = scope.node.clone();
                            found.push(Found { path, node, uid: Some(uid), job });
                        }
                    }
                }
            }
        }
        found
    }

    fn refresh(&mut self, errors: &mut Errors) {
        self.known.retain(|scope| scope.path.is_dir());
        if self.known.is_empty() || self.until_search == 0 {
            self.until_search = SEARCH_EVERY;
            search(&self.root, self.version, DEPTH, &mut self.known, errors);
            return;
        }
        self.until_search -= 1;
        let parents: BTreeSet<PathBuf> = self
            .known
            .iter()
            .filter_map(|scope| scope.path.parent().map(Path::to_path_buf))
            .collect();
        for parent in parents {
            search(&parent, self.version, 1, &mut self.known, errors);
        }
    }
}

/// Users own what is below this; a scope that they make there is not Slurm's.
const OF_USERS: &str = "user.slice";

fn search(
    dir: &Path,
    version: Version,
    depth: usize,
    known: &mut BTreeSet<Scope>,
    errors: &mut Errors,
) {
    if depth == 0 {
        return;
    }
    for (name, path) in directories(dir, errors) {
        match cgroup_path::scope_dir(&name) {
            // The other version's names mean nothing in this tree.
            Some(scope) if scope.version == version => {
                known.insert(Scope { path, node: scope.node });
            }
            _ if name == OF_USERS => {}
            _ => search(&path, version, depth - 1, known, errors),
        }
    }
}

/// Whether `dir` has subdirectories: a stat, where a list would be five calls.
pub fn has_subdirectories(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    // Each subdirectory links back to its parent; file systems that do not count links say 1.
    dir.metadata().is_ok_and(|metadata| metadata.nlink() != 2)
}

/// The subdirectories of `dir`; a directory that is gone has none.
pub fn directories(dir: &Path, errors: &mut Errors) -> Vec<(String, PathBuf)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(source) => {
            errors.add_unlisted(ReadError::from_io(dir, source));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => {
                // The type comes with the entry; following a link is never wanted here.
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && let Ok(name) = entry.file_name().into_string()
                {
                    found.push((name, entry.path()));
                }
            }
            Err(source) => errors.add_unlisted(ReadError::from_io(dir, source)),
        }
    }
    found
}
