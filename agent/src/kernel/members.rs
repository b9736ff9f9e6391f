//! The processes in a job's cgroup, over all its directories.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steward_common::slurm::cgroup_path::Version;

use super::cgroup::{JobPlace, Pid, pids};
use super::cgroup_v1;
use super::error::Errors;
use super::freezer;
use super::scope::{directories, has_subdirectories};
use crate::scheduler::{Scheduler, Share};

/// The processes in a job's cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Everything that may be the job's own.
    pub processes: BTreeSet<Pid>,
    /// Those of the extern step, whose placeholder is not the job's.
    pub of_extern: BTreeSet<Pid>,
    /// Those in the directory that Slurm keeps for its own daemon.
    pub stepds: BTreeSet<Pid>,
    /// Whether every list could be read.
    pub complete: bool,
    /// Whether every directory with a process of the job is frozen: the job is suspended. `None` if
    /// it has no process, or the kernel does not say.
    pub frozen: Option<bool>,
    /// The outermost directories of processes of the job, on v2: there the kernel tells that the
    /// last of them ended.
    pub outermost: Vec<PathBuf>,
}

/// Reads the processes of `place`.
#[must_use]
pub fn read(
    layout: Version,
    scheduler: &dyn Scheduler,
    place: &JobPlace,
    errors: &mut Errors,
) -> Members {
    let dir = match layout {
        Version::V1 => cgroup_v1::tracking_dir(place),
        Version::V2 => place.dirs.first().map(|(_, path)| path.as_path()),
    };
    let mut own = Errors::default();
    let mut walk = Walk { layout, scheduler, members: Members::default(), errors: &mut own };
    if let Some(dir) = dir {
        walk.enter(dir, &mut Vec::new(), false);
    }
    let mut members = walk.members;
    // What is missing is missing of this job; the others are as well as before.
    members.complete = !own.unlisted();
    errors.merge(own.as_part());
    members
}

struct Walk<'a> {
    layout: Version,
    scheduler: &'a dyn Scheduler,
    members: Members,
    errors: &'a mut Errors,
}

impl Walk<'_> {
    fn enter(&mut self, dir: &Path, names: &mut Vec<String>, inside: bool) {
        let path: Vec<&str> = names.iter().map(String::as_str).collect();
        let below = has_subdirectories(dir);
        let share = self.scheduler.share(self.layout, &path);
        let of_job = matches!(share, Some(Share::Job | Share::Extern));
        if of_job && !inside && self.layout == Version::V2 {
            self.members.outermost.push(dir.to_path_buf());
        }
        if let Some(share) = share {
            let into = match share {
                Share::Job => &mut self.members.processes,
                Share::Extern => &mut self.members.of_extern,
                Share::Daemon => &mut self.members.stepds,
            };
            let before = into.len();
            pids(dir, into, self.errors);
            let has_processes = into.len() > before;
            // One that runs is enough to say that the job is not suspended. The job's own directory
            // has only daemons in it where steps have theirs (v1).
            let counts = share == Share::Job && !(names.is_empty() && below);
            if counts && has_processes && self.members.frozen != Some(false) {
                let frozen = freezer::is_frozen(self.layout, dir, self.errors);
                self.members.frozen = frozen.or(self.members.frozen);
            }
        }
        if below {
            for (name, child) in directories(dir, self.errors) {
                names.push(name);
                self.enter(&child, names, inside || of_job);
                names.pop();
            }
        }
    }
}
