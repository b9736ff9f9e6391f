//! What can go wrong while a kernel file is read, and how often it did.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use nix::libc;

/// A read that gave no value; it names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The process or directory ended between list and read: ordinary.
    #[error("{} is gone: it ended while it was read", path.display())]
    Vanished {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// The agent may not read it.
    #[error(
        "{}: permission denied: run steward-agent as root or give it CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
        path.display()
    )]
    Denied {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// The text is not what this file holds on any kernel we know.
    #[error("{}: expected {expected}, found {found:?}", path.display())]
    Malformed {
        /// The file that was read.
        path: PathBuf,
        /// What should have been there.
        expected: &'static str,
        /// What was there, cut to a readable length.
        found: String,
    },
    /// The cgroup holds processes that have no number here.
    #[error(
        "{}: holds processes of another pid namespace: run steward-agent in the host's own",
        path.display()
    )]
    Foreign {
        /// The list of processes.
        path: PathBuf,
    },
    /// A read that did not come back; nobody tries the same again.
    #[error("{}: no answer: the process hangs in the kernel, most often on a dead file server", path.display())]
    Stuck {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// Anything else the kernel said.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file that was asked for.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl ReadError {
    /// Sorts the kernel's answer for `path`.
    #[must_use]
    pub fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.raw_os_error() {
            // ENODEV: a cgroup file whose directory was removed; ESRCH: a /proc file of a dead process.
            Some(libc::ENOENT | libc::ENODEV | libc::ESRCH) => Self::Vanished { path },
            Some(libc::EACCES | libc::EPERM) => Self::Denied { path },
            _ => Self::Io { path, source },
        }
    }

    /// A text that could not be understood.
    #[must_use]
    pub fn malformed(path: &Path, expected: &'static str, found: &str) -> Self {
        let found = found.chars().take(80).collect();
        Self::Malformed { path: path.to_path_buf(), expected, found }
    }

    /// The word under which this failure is counted.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Vanished { .. } => Reason::Vanished,
            Self::Denied { .. } => Reason::Permission,
            Self::Malformed { .. } => Reason::Malformed,
            Self::Foreign { .. } => Reason::Namespace,
            Self::Stuck { .. } => Reason::Stuck,
            Self::Io { .. } => Reason::Io,
        }
    }
}

/// Why something is missing, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Two sources disagree on which job a directory is.
    Identity,
    /// The kernel answered with another error.
    Io,
    /// A text was not understood.
    Malformed,
    /// A user name could not be looked up in time.
    Names,
    /// Processes of another pid namespace.
    Namespace,
    /// The agent may not read it.
    Permission,
    /// The Pushgateway did not take a request.
    Push,
    /// A read did not come back in time.
    Stuck,
    /// It ended while it was read.
    Vanished,
}

impl Reason {
    /// Every reason; all are exported from the start so that a rate has a first point.
    pub const ALL: [Self; 9] = [
        Self::Identity,
        Self::Io,
        Self::Malformed,
        Self::Names,
        Self::Namespace,
        Self::Permission,
        Self::Push,
        Self::Stuck,
        Self::Vanished,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identity => "identity",
            Self::Io => "io",
            Self::Malformed => "malformed",
            Self::Names => "names",
            Self::Namespace => "namespace",
            Self::Permission => "permission",
            Self::Push => "push",
            Self::Stuck => "stuck",
            Self::Vanished => "vanished",
        })
    }
}

/// The failures of one scan: all are counted, a few are kept to be logged.
#[derive(Debug, Default)]
pub struct Errors {
    counts: BTreeMap<Reason, u64>,
    worth_logging: Vec<ReadError>,
    unlisted: bool,
}

/// More lines than this about one scan help nobody.
const KEPT: usize = 8;

impl Errors {
    /// Counts a failure.
    pub fn add(&mut self, error: ReadError) {
        let reason = error.reason();
        self.count(reason);
        if reason != Reason::Vanished && self.worth_logging.len() < KEPT {
            self.worth_logging.push(error);
        }
    }

    /// Counts a directory that could not be listed. What was in it is not known, so that nothing
    /// may be called gone.
    pub fn add_unlisted(&mut self, error: ReadError) {
        self.unlisted |= error.reason() != Reason::Vanished;
        self.add(error);
    }

    /// The failures of one job: what could not be listed there makes no other job unknown.
    #[must_use]
    pub fn as_part(self) -> Self {
        Self { unlisted: false, ..self }
    }

    /// Takes over the failures of a part of the scan.
    pub fn merge(&mut self, part: Self) {
        for (reason, count) in part.counts {
            *self.counts.entry(reason).or_insert(0) += count;
        }
        let room = KEPT.saturating_sub(self.worth_logging.len());
        self.worth_logging.extend(part.worth_logging.into_iter().take(room));
        self.unlisted |= part.unlisted;
    }

    /// Whether some directory could not be listed.
    #[must_use]
    pub const fn unlisted(&self) -> bool {
        self.unlisted
    }

    /// Counts a failure that has no file.
    pub fn count(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_insert(0) += 1;
    }

    /// The value, or nothing and a count.
    pub fn take<T>(&mut self, result: Result<T, ReadError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(error);
                None
            }
        }
    }

    /// Like [`Self::take`], for a file that not every kernel has.
    pub fn take_optional<T>(&mut self, result: Result<Option<T>, ReadError>) -> Option<T> {
        self.take(result).flatten()
    }

    /// How often each reason came up.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.counts.iter().map(|(reason, count)| (*reason, *count))
    }

    /// The failures that an administrator should see.
    #[must_use]
    pub fn worth_logging(&self) -> &[ReadError] {
        &self.worth_logging
    }
}
