//! What a job's cgroup says, whatever the hierarchy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steward_common::id::{NodeName, Uid};
use steward_common::limit::Limit;
use steward_common::slurm::cgroup_path::{self, JobDir, Version};
use steward_common::slurm::gres;
use steward_common::slurm::sluid::Sluid;
use steward_common::unit::Bytes;

use super::cgroup_v1::V1;
use super::cgroup_v2::V2;
use super::count::Counts;
use super::error::{Errors, ReadError};
use super::file;
use super::scope::directories;
use crate::scheduler::Scheduler;

/// Where the kernel mounts cgroups unless the configuration says otherwise.
pub const DEFAULT_ROOT: &str = "/sys/fs/cgroup";

/// A process id as the kernel writes it.
pub type Pid = u32;

/// CPU time of a job, all steps and processes, ended ones included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// The exact total.
    pub total: Option<Duration>,
    /// Outside the kernel.
    pub user: Option<Duration>,
    /// In the kernel.
    pub system: Option<Duration>,
    /// By core; only cgroup v1 counts it.
    pub cores: Option<Vec<(u32, Duration)>>,
}

/// Memory of a job; each field is defined in the metric catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the catalogue defines each word once")]
pub struct MemoryStats {
    pub usage: Option<Bytes>,
    pub peak: Option<Bytes>,
    pub anon: Option<Bytes>,
    pub file: Option<Bytes>,
    pub shmem: Option<Bytes>,
    pub kernel: Option<Bytes>,
    pub swap: Option<Bytes>,
    pub slurm: Option<Bytes>,
    pub limit: Option<Limit<Bytes>>,
}

/// All that the cgroup files of one job say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupStats {
    /// CPU time.
    pub cpu: CpuStats,
    /// Memory.
    pub memory: MemoryStats,
    /// CPUs that the job is confined to; `None` when it may use all of its parent's.
    pub cpuset: Option<Vec<u32>>,
    /// Other counters.
    pub counts: Counts,
    /// Tasks, as the pids controller counts them, where it is on.
    pub tasks: Option<u64>,
}

/// One making of a job's directory.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Generation {
    /// Whether it is that of v1's accounting controller: another's has other numbers.
    pub accounting: bool,
    /// The kernel's number of it.
    pub inode: u64,
}

/// One job's directories on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlace {
    /// The node, where the scope names it.
    pub node: Option<NodeName>,
    /// The owner, where the path names it.
    pub uid: Option<Uid>,
    /// The job, as the directory names it.
    pub job: JobDir,
    /// One directory by controller on v1 (`cpuacct`, `memory`, …), one in all on v2 (`unified`).
    pub dirs: Vec<(String, PathBuf)>,
}

impl JobPlace {
    /// The job's directory of `controller`.
    #[must_use]
    pub fn dir(&self, controller: &str) -> Option<&Path> {
        self.dirs.iter().find(|(name, _)| name == controller).map(|(_, path)| path.as_path())
    }

    /// The directory whose counters are the job's, or else any.
    fn accounting_dir(&self) -> Option<&Path> {
        self.dir("cpuacct").or_else(|| self.dirs.first().map(|(_, path)| path.as_path()))
    }

    /// Tells one making of the job's directory from the next: Slurm removes it when the last step
    /// ends and makes it anew for the next step.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        use std::os::unix::fs::MetadataExt;
        let inode = self.accounting_dir()?.metadata().ok()?.ino();
        Some(Generation { accounting: self.dir("cpuacct").is_some(), inode })
    }

    /// The name of the run in it, from Slurm 26.05 on.
    #[must_use]
    pub const fn sluid(&self) -> Option<Sluid> {
        match self.job {
            JobDir::Sluid(sluid) => Some(sluid),
            JobDir::Id(_) => None,
        }
    }

    /// Whether one of these paths is in it.
    #[must_use]
    pub fn holds_any(&self, paths: &BTreeSet<PathBuf>) -> bool {
        self.dirs.iter().any(|(_, dir)| paths.iter().any(|path| path.starts_with(dir)))
    }

    /// How long ago something was made or removed in it: it is no younger than that.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.accounting_dir()?.metadata().ok()?.modified().ok()?.elapsed().ok()
    }

    /// How many step and task directories it has; on v1 only accounting makes those of tasks.
    pub fn steps_and_tasks(&self, errors: &mut Errors) -> (usize, usize) {
        let dirs = self.accounting_dir().map_or_else(Vec::new, |dir| directories(dir, errors));
        let steps: Vec<PathBuf> = dirs
            .into_iter()
            .filter(|(name, _)| cgroup_path::step_dir(name).is_some())
            .map(|(_, path)| path)
            .collect();
        let tasks = steps
            .iter()
            .flat_map(|step| [step.clone(), step.join("user")])
            .filter(|dir| dir.is_dir())
            .flat_map(|dir| directories(&dir, errors))
            .filter(|(name, _)| cgroup_path::task_dir(name).is_some())
            .count();
        (steps.len(), tasks)
    }
}

/// The cgroup hierarchy of this host.
#[derive(Debug)]
pub enum Hierarchy {
    /// A directory by controller; hybrid hosts too, since Slurm uses v1 there.
    V1(V1),
    /// One tree.
    V2(V2),
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum NothingToRead {
    /// The root is not there.
    #[error("cgroup root {} does not exist: mount cgroups, or set paths.cgroup in the configuration", .0.display())]
    Missing(PathBuf),
    /// The root is there and holds no hierarchy.
    #[error(
        "cgroup root {} holds neither cgroup v2 nor a v1 controller (cpuacct, memory, freezer, …): set paths.cgroup to the mount",
        .0.display()
    )]
    Empty(PathBuf),
    /// A setting makes no sense.
    #[error("{0}: {1}")]
    Setting(&'static str, String),
    /// There are no processes.
    #[error("{} holds no processes: set paths.proc to the mount of proc", .0.display())]
    NoProcesses(PathBuf),
}

impl Hierarchy {
    /// Looks at `root` and decides; nothing else in the agent asks which version it is.
    ///
    /// # Errors
    /// If there is no hierarchy at `root`.
    pub fn detect(root: &Path, scheduler: &Arc<dyn Scheduler>) -> Result<Self, NothingToRead> {
        if !root.is_dir() {
            return Err(NothingToRead::Missing(root.to_path_buf()));
        }
        // cgroups-rs asks statfs, which is the kernel's own word, but knows one mount point only; a
        // recorded tree or a bind mount is told by the file that every v2 root has.
        let unified = if root == Path::new(DEFAULT_ROOT) {
            cgroups_rs::fs::hierarchies::is_cgroup2_unified_mode()
        } else {
            root.join("cgroup.controllers").is_file()
        };
        if unified {
            return Ok(Self::V2(V2::new(root, scheduler)));
        }
        V1::new(root, scheduler)
            .map(Self::V1)
            .ok_or_else(|| NothingToRead::Empty(root.to_path_buf()))
    }

    /// `v1` or `v2`.
    #[must_use]
    pub const fn version(&self) -> &'static str {
        match self {
            Self::V1(_) => "v1",
            Self::V2(_) => "v2",
        }
    }

    /// Every job directory of every scope; new scopes are looked for if it is a `full` look.
    pub fn jobs(&mut self, full: bool, errors: &mut Errors) -> Vec<JobPlace> {
        match self {
            Self::V1(v1) => v1.jobs(full, errors),
            Self::V2(v2) => v2.jobs(full, errors),
        }
    }

    /// The nodes whose scopes name them.
    #[must_use]
    pub fn named_nodes(&self) -> BTreeSet<NodeName> {
        match self {
            Self::V1(v1) => v1.named_nodes(),
            Self::V2(v2) => v2.named_nodes(),
        }
    }

    /// The directories in which new jobs appear.
    #[must_use]
    pub fn holders(&self) -> &[PathBuf] {
        match self {
            Self::V1(v1) => v1.holders(),
            Self::V2(v2) => v2.holders(),
        }
    }

    /// The scope directories that were found.
    #[must_use]
    pub fn scopes(&self) -> Vec<&Path> {
        match self {
            Self::V1(v1) => v1.scopes(),
            Self::V2(v2) => v2.scopes(),
        }
    }

    /// How it is laid out.
    #[must_use]
    pub const fn layout(&self) -> Version {
        match self {
            Self::V1(_) => Version::V1,
            Self::V2(_) => Version::V2,
        }
    }
}

/// What the files of `place` say.
#[must_use]
pub fn read(layout: Version, place: &JobPlace, errors: &mut Errors) -> CgroupStats {
    match layout {
        Version::V1 => super::cgroup_v1::read(place, errors),
        Version::V2 => super::cgroup_v2::read(place, errors),
    }
}

/// A list of CPUs such as `0-3,8`; an empty one says nothing.
pub(super) fn cpus(path: &Path, errors: &mut Errors) -> Option<Vec<u32>> {
    let text = errors.take_optional(file::optional_text(path))?;
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let list = gres::index_list(text)
        .map_err(|_| ReadError::malformed(path, "a list of CPUs such as 0-3,8", text));
    errors.take(list)
}

/// The processes of `dir` itself.
pub(super) fn pids(dir: &Path, into: &mut BTreeSet<Pid>, errors: &mut Errors) {
    let path = dir.join("cgroup.procs");
    let text = match file::list(&path) {
        Ok(text) => text,
        Err(error) => return errors.add_unlisted(error),
    };
    let mut foreign = false;
    for line in text.lines() {
        let pid = line.parse().map_err(|_| ReadError::malformed(&path, "a process number", line));
        match errors.take(pid) {
            // 0 stands for a process of another pid namespace: there is no /proc entry to read.
            Some(0) => foreign = true,
            Some(pid) => _ = into.insert(pid),
            None => {}
        }
    }
    if foreign {
        errors.add(ReadError::Foreign { path });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(errors: &Errors) -> u64 {
        errors.counts().map(|(_, count)| count).sum()
    }

    proptest! {
        #[test]
        fn every_number_of_a_list_of_processes_is_one(
            list in proptest::collection::btree_set(1..=Pid::MAX, 0..200),
            odd in proptest::option::of("-[0-9]{1,9}|max|[1-9][0-9]{20,30}|[a-z]{1,5}"),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let lines = list.iter().map(ToString::to_string).chain(odd.clone());
            let text: String = lines.map(|line| line + "\n").collect();
            std::fs::write(dir.path().join("cgroup.procs"), text).unwrap();
            let (mut found, mut errors) = (BTreeSet::new(), Errors::default());
            pids(dir.path(), &mut found, &mut errors);
            prop_assert_eq!(found, list);
            prop_assert_eq!(counted(&errors), u64::from(odd.is_some()));
            prop_assert!(!errors.unlisted());
        }

        #[test]
        fn a_number_beyond_those_of_processes_is_counted(pid in u64::from(Pid::MAX) + 1..) {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("cgroup.procs"), format!("{pid}\n7\n")).unwrap();
            let (mut found, mut errors) = (BTreeSet::new(), Errors::default());
            pids(dir.path(), &mut found, &mut errors);
            prop_assert_eq!(found, BTreeSet::from([7]));
            prop_assert_eq!(counted(&errors), 1);
        }

        #[test]
        fn ranges_of_cpus_are_the_cpus_in_them(
            ranges in proptest::collection::vec((0_u32..8, 0_u32..8), 1..20),
        ) {
            let (mut next, mut words, mut expected) = (0, Vec::new(), Vec::new());
            for (gap, more) in ranges {
                let (first, last) = (next + gap, next + gap + more);
                words.push(if more == 0 { first.to_string() } else { format!("{first}-{last}") });
                expected.extend(first..=last);
                next = last + 2;
            }
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("cpuset.cpus");
            let mut errors = Errors::default();
            std::fs::write(&path, words.join(",") + "\n").unwrap();
            prop_assert_eq!(cpus(&path, &mut errors), Some(expected));
            std::fs::write(&path, "\n").unwrap();
            prop_assert_eq!(cpus(&path, &mut errors), None);
            prop_assert_eq!(counted(&errors), 0);
        }

        #[test]
        fn a_list_of_cpus_that_is_none_is_counted_and_absent(
            bad in "-[0-9]{1,9}|max|[1-9][0-9]{20,30}|[0-9]-|[0-9],,[0-9]|9-1|0-4294967295",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("cpuset.cpus");
            std::fs::write(&path, bad).unwrap();
            let mut errors = Errors::default();
            prop_assert_eq!(cpus(&path, &mut errors), None);
            prop_assert_eq!(counted(&errors), 1);
        }
    }
}
