//! Finding scopes: the directories below which a scheduler keeps its jobs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_common::id::{NodeName, Uid};
use steward_common::slurm::cgroup_path::{JobDir, Version};

use super::error::{Errors, ReadError};
use crate::scheduler::{Directory, Scheduler};

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
#[derive(Clone, Debug)]
pub struct Scopes {
    root: PathBuf,
    version: Version,
    scheduler: Arc<dyn Scheduler>,
    known: BTreeSet<Scope>,
    holders: Vec<PathBuf>,
    until_search: u32,
}

impl Scopes {
    /// Nothing is read before the first [`Self::jobs`].
    #[must_use]
    pub fn new(root: &Path, version: Version, scheduler: Arc<dyn Scheduler>) -> Self {
        Self {
            root: root.to_path_buf(),
            version,
            scheduler,
            known: BTreeSet::new(),
            holders: Vec::new(),
            until_search: 0,
        }
    }

    /// The scopes of the last [`Self::jobs`].
    pub fn known(&self) -> impl Iterator<Item = &Scope> {
        self.known.iter()
    }

    /// The directories in which new jobs appear, as of the last [`Self::jobs`].
    #[must_use]
    pub fn holders(&self) -> &[PathBuf] {
        &self.holders
    }

    /// Every job directory below every scope; new scopes are looked for if it is a `full` look.
    pub fn jobs(&mut self, full: bool, errors: &mut Errors) -> Vec<Found> {
        if full {
            self.refresh(errors);
        }
        self.list(errors)
    }

    fn list(&mut self, errors: &mut Errors) -> Vec<Found> {
        self.holders.clear();
        let mut found = Vec::new();
        for scope in self.known.clone() {
            self.jobs_below(&scope, &scope.path, &mut found, errors);
        }
        found
    }

    /// Every job directory below the scopes that `leader` knows below its own mount.
    pub fn jobs_like(&mut self, leader: &Self, full: bool, errors: &mut Errors) -> Vec<Found> {
        let here = |scope: &Scope| {
            let path = self.root.join(scope.path.strip_prefix(&leader.root).ok()?);
            path.is_dir().then(|| Scope { path, node: scope.node.clone() })
        };
        let here: BTreeSet<Scope> = leader.known.iter().filter_map(here).collect();
        if !here.is_empty() {
            self.known = here;
        } else if self.known.is_empty() && self.until_search > 0 {
            // Slurm does not use this controller: it is searched seldom.
            self.until_search -= u32::from(full);
        } else if full {
            self.refresh(errors);
        }
        self.list(errors)
    }

    fn jobs_below(
        &mut self,
        scope: &Scope,
        dir: &Path,
        found: &mut Vec<Found>,
        errors: &mut Errors,
    ) {
        self.holders.push(dir.to_path_buf());
        for (_, path) in directories(dir, errors) {
            match self.look(&path) {
                Directory::Job(job, uid) => {
                    found.push(Found { path, node: scope.node.clone(), uid, job });
                }
                Directory::Above => self.jobs_below(scope, &path, found, errors),
                Directory::Scope(_) | Directory::Foreign => {}
            }
        }
    }

    fn look(&self, path: &Path) -> Directory {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
        names.map_or(Directory::Foreign, |names| self.scheduler.directory(self.version, &names))
    }

    fn refresh(&mut self, errors: &mut Errors) {
        self.known.retain(|scope| scope.path.is_dir());
        if self.known.is_empty() || self.until_search == 0 {
            self.until_search = SEARCH_EVERY;
            self.search(&self.root.clone(), DEPTH, errors);
            return;
        }
        self.until_search -= 1;
        let parents: BTreeSet<PathBuf> = self
            .known
            .iter()
            .filter_map(|scope| scope.path.parent().map(Path::to_path_buf))
            .collect();
        for parent in parents {
            self.search(&parent, 1, errors);
        }
    }

    fn search(&mut self, dir: &Path, depth: usize, errors: &mut Errors) {
        if depth == 0 {
            return;
        }
        for (_, path) in directories(dir, errors) {
            match self.look(&path) {
                Directory::Scope(node) => {
                    self.known.insert(Scope { path, node });
                }
                Directory::Above => self.search(&path, depth - 1, errors),
                Directory::Job(..) | Directory::Foreign => {}
            }
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
