//! What one scan found on one node: all that a collector ever sees.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use steward_common::id::{ClusterName, JobId, NodeName, Uid};
use steward_common::slurm::sluid::Sluid;
use steward_common::unit::Bytes;

use crate::kernel::cgroup::{CpuStats, MemoryStats};
use crate::kernel::count::Counts;
use crate::kernel::environment::Environment;
use crate::kernel::process::Io;
use crate::threads::ThreadTotals;

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
    /// Its threads, as of the last scan that read them; `None` if some could not be.
    pub threads: Option<ThreadTotals>,
    /// How often its threads were put aside; never less than before.
    pub involuntary_switches: Option<u64>,
    /// I/O of all its processes, ended ones included; never less than before.
    pub io: Option<Io>,
    /// Its open files; `None` if those of some process could not be read.
    pub files: Option<Files>,
    /// Other counters of the kernel; never less than before.
    pub counts: Counts,
    /// Tasks, as the pids controller counts them.
    pub tasks: Option<u64>,
    /// Whether it is suspended.
    pub frozen: Option<bool>,
    /// Since when it has had no process, if it has none.
    pub idle_since: Option<SystemTime>,
    /// From when on the counters count.
    pub covered_from: SystemTime,
    /// When these figures were read.
    pub covered_until: SystemTime,
    /// It ended; these are its final values.
    pub ended: bool,
}

impl JobSample {
    /// This sample with what it lacks of a record at the end, as the sample before had it: a job's
    /// directories vanish one by one, and a look in between finds less than the one before. What is
    /// taken over is covered for as long as it was then.
    #[must_use]
    pub fn or_before(mut self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        let mut older = false;
        let mut keep = |lacks: bool| {
            older |= lacks;
            lacks
        };
        if keep(self.cpu.total.is_none() && before.cpu.total.is_some()) {
            self.cpu = before.cpu;
        }
        if keep(self.memory.usage.is_none() && before.memory.usage.is_some()) {
            self.memory = before.memory;
        }
        if keep(self.io.is_none() && before.io.is_some()) {
            self.io = before.io;
        }
        for (count, value) in before.counts {
            if keep(!self.counts.contains_key(&count)) {
                self.counts.insert(count, value);
            }
        }
        if older {
            self.covered_until = before.covered_until;
        }
        self
    }
}

/// The highest figures that any sample of a job had; absent where none was measured.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Peaks {
    /// Processes.
    pub processes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// The sum of resident sets.
    pub rss: Option<u64>,
    /// Distinct open files.
    pub files: Option<u64>,
    /// Memory, by the kernel's own account.
    pub memory: Option<u64>,
}

impl Peaks {
    /// Takes a sample into account.
    pub fn observe(&mut self, sample: &JobSample) {
        let processes = sample.processes.as_ref();
        // None is less than any figure.
        self.processes = self.processes.max(processes.map(|all| all.count));
        self.threads = self.threads.max(processes.map(|all| all.threads.values().sum()));
        self.rss = self.rss.max(processes.map(|all| all.rss.get()));
        self.files = self.files.max(sample.files.as_ref().map(|files| files.distinct));
        self.memory = self.memory.max(sample.memory.peak.map(Bytes::get));
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Descriptors of every sort.
    pub descriptors: u64,
    /// Distinct files.
    pub distinct: u64,
    /// Those of them on a scratch file system.
    pub on_scratch: u64,
    /// They by class, every class.
    pub by_class: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::count::Count;
    use std::time::Duration;

    fn sample(at: u64) -> JobSample {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        JobSample {
            id: "7".parse().unwrap(),
            sluid: None,
            uid: None,
            user: None,
            environment: Environment::default(),
            cpu: CpuStats::default(),
            cores_busy: None,
            cpus: None,
            memory: MemoryStats::default(),
            processes: None,
            threads: None,
            involuntary_switches: None,
            io: None,
            files: None,
            counts: Counts::new(),
            tasks: None,
            frozen: None,
            idle_since: None,
            covered_from: SystemTime::UNIX_EPOCH,
            covered_until: time,
            ended: false,
        }
    }

    fn cpu(seconds: u64) -> CpuStats {
        CpuStats { total: Some(Duration::from_secs(seconds)), ..CpuStats::default() }
    }

    #[test]
    fn a_last_look_at_half_a_job_keeps_the_other_half_of_the_look_before() {
        let kills = Counts::from([(Count::MemoryOomKills, 1)]);
        let before = JobSample { cpu: cpu(5), counts: kills.clone(), ..sample(100) };
        let memory = MemoryStats { usage: Some(Bytes::new(9)), ..MemoryStats::default() };
        let kept = JobSample { memory: memory.clone(), ..sample(101) }.or_before(Some(before));
        assert_eq!((&kept.cpu, &kept.memory, &kept.counts), (&cpu(5), &memory, &kills));
        assert_eq!(kept.covered_until, sample(100).covered_until);
    }

    #[test]
    fn a_whole_look_stands_as_it_is() {
        let before = JobSample { cpu: cpu(5), ..sample(100) };
        let kept = JobSample { cpu: cpu(6), ..sample(101) }.or_before(Some(before));
        assert_eq!((&kept.cpu, kept.covered_until), (&cpu(6), sample(101).covered_until));
        // What never was measured stays absent.
        assert!(sample(101).or_before(Some(sample(100))).cpu.total.is_none());
        assert_eq!(sample(101).or_before(None).covered_until, sample(101).covered_until);
    }
}
