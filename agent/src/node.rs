//! What one scan found on one node: all that a collector ever sees.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use steward_common::id::{ClusterName, JobId, NodeName, Uid};
use steward_common::slurm::sluid::Sluid;
use steward_common::unit::Bytes;

use crate::kernel::cgroup::{CpuStats, MemoryStats};
use crate::kernel::environment::Environment;
use crate::kernel::process::Io;

/// One node with its jobs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The cluster it belongs to.
    pub cluster: ClusterName,
    /// Slurm's name of it.
    pub name: NodeName,
    /// Its jobs: running, then those that ended a moment ago.
    pub jobs: Vec<JobSample>,
    /// Job directories that no job holds any more.
    pub leftovers: u64,
}

/// One job on one node, at one moment.
#[derive(Clone, Debug)]
pub struct JobSample {
    /// Slurm's raw job id.
    pub id: JobId,
    /// The id that tells requeues apart, from Slurm 26.05 on.
    pub sluid: Option<Sluid>,
    /// Whose it is.
    pub uid: Option<Uid>,
    /// The owner's name.
    pub user: Option<String>,
    /// What Slurm told the job's processes.
    pub environment: Environment,
    /// CPU time since the job began here; never less than before.
    pub cpu: CpuStats,
    /// Cores kept busy, on average, since the scan before; `None` at the first.
    pub cores_busy: Option<f64>,
    /// CPUs that the job holds on this node.
    pub cpus: Option<NonZeroU32>,
    /// Memory.
    pub memory: MemoryStats,
    /// Its processes; `None` if some could not be read.
    pub processes: Option<Processes>,
    /// I/O of all its processes, ended ones included; never less than before.
    pub io: Option<Io>,
    /// Its open files; `None` if those of some process could not be read.
    pub files: Option<Files>,
    /// It ended; these are its final values.
    pub ended: bool,
}

/// The processes of a job, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// How many.
    pub count: u64,
    /// Their threads by the process's name.
    pub threads: BTreeMap<String, u64>,
    /// The sum of their resident sets.
    pub rss: Bytes,
}

/// The open files of a job, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Descriptors of every sort.
    pub descriptors: u64,
    /// Distinct files.
    pub distinct: u64,
    /// Those of them on a scratch file system.
    pub on_scratch: u64,
}
