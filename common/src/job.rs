//! One run of a job: what the accounting says of it, and the figures that follow.
//!
//! A job that is put back into the queue has several runs. What nobody measured is `None`; the
//! figures that would need it are then `None` too.

use std::borrow::Cow;

use crate::efficiency::{Efficiency, gib_hours, hours};
use crate::id::JobId;
use crate::limit::Limit;
use crate::slurm::duration::TimeLimit;
use crate::time::Timestamp;
use crate::unit::Bytes;

fn per_cent(efficiency: Efficiency) -> f64 {
    100.0 * efficiency.raw()
}

/// Where a figure of use was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The sum, or the highest, of what Slurm recorded for the steps.
    Steps,
    /// The row of the job itself, for a job without steps.
    Job,
    /// Steward's agents on the nodes.
    Agent,
    /// An archive that was taken over from another program.
    Import,
}

impl Source {
    /// The source of that word in the archive.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Source> {
        let all = [Source::Steps, Source::Job, Source::Agent, Source::Import];
        all.into_iter().find(|source| source.name() == name)
    }

    /// The word for it in the archive.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Steps => "steps",
            Source::Job => "job",
            Source::Agent => "agent",
            Source::Import => "import",
        }
    }
}

/// What a job used on one node, as the agent there measured it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeUse {
    /// The node.
    pub node: String,
    /// CPU time, in seconds.
    pub cpu_seconds: Option<f64>,
    /// The most memory, in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// GPUs held there.
    pub gpus: Option<u32>,
}

/// What the agents measured of a run, over all its nodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentUse {
    /// Each node that has something to say.
    pub nodes: Vec<NodeUse>,
    /// GPU time used, in seconds.
    pub gpu_seconds: Option<f64>,
    /// Bytes read by its processes.
    pub read_bytes: Option<u64>,
    /// Bytes written by its processes.
    pub written_bytes: Option<u64>,
    /// The share of the run, over all its nodes, that the agents saw; from 0 to 1.
    pub coverage: Option<f64>,
}

/// One run of a job. Texts are borrowed from the rows it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<'a> {
    /// Its cluster.
    pub cluster: Cow<'a, str>,
    /// Slurm's number of the job.
    pub job: JobId,
    /// The id that people see: `100_7`, `100+1`.
    pub shown_id: Cow<'a, str>,
    /// The array it belongs to.
    pub array_job: Option<u32>,
    /// Its place in the array; `None` for the waiting rest of an array.
    pub array_task: Option<u32>,
    /// The heterogeneous job it belongs to.
    pub het_job: Option<u32>,
    /// Its place in the heterogeneous job.
    pub het_offset: Option<u32>,
    /// Which run of the job it is, from 0; known once all runs are.
    pub restart: u32,
    /// Its owner; `uid_1001` if only the number is known.
    pub user: Cow<'a, str>,
    /// The owner's number.
    pub uid: Option<u32>,
    /// The owner's Unix group.
    pub group: Cow<'a, str>,
    /// The account it is charged to.
    pub account: Cow<'a, str>,
    /// Its partition.
    pub partition: Cow<'a, str>,
    /// Its quality of service.
    pub qos: Cow<'a, str>,
    /// Its reservation; empty if it has none.
    pub reservation: Cow<'a, str>,
    /// Its name, whole.
    pub name: Cow<'a, str>,
    /// Its state, without the user of `CANCELLED by …`.
    pub state: Cow<'a, str>,
    /// Who cancelled it.
    pub cancelled_by: Option<u32>,
    /// Whether the run is over.
    pub ended: bool,
    /// Its exit code.
    pub exit_code: Option<u32>,
    /// The signal that ended it, 0 if none did.
    pub exit_signal: Option<u32>,
    /// When it was submitted.
    pub submit: Timestamp,
    /// From when it could run.
    pub eligible: Option<Timestamp>,
    /// When it started.
    pub start: Option<Timestamp>,
    /// When it ended.
    pub end: Option<Timestamp>,
    /// How long it ran, in seconds.
    pub elapsed: Option<u64>,
    /// How long it may run.
    pub time_limit: Option<TimeLimit>,
    /// CPUs asked for.
    pub req_cpus: Option<u32>,
    /// Nodes asked for.
    pub req_nodes: Option<u32>,
    /// Memory asked for, on all nodes together.
    pub req_memory: Option<Bytes>,
    /// Memory given, on all nodes together, which may be more than was asked for, as when whole nodes
    /// were given; what was asked for where Slurm does not say it.
    pub memory: Option<Bytes>,
    /// CPUs given.
    pub cpus: Option<u32>,
    /// Nodes given.
    pub node_count: Option<u32>,
    /// The nodes given, as Slurm's list; empty if there are none.
    pub nodes: Cow<'a, str>,
    /// GPUs given; `None` if it was given nothing yet.
    pub gpus: Option<u32>,
    /// GPUs by type, `a100=2`; empty if it has none or no type is known.
    pub gpu_types: Cow<'a, str>,
    /// The billing weight of what it was given.
    pub billing: Option<u64>,
    /// CPU time used, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Where that was measured.
    pub cpu_source: Option<Source>,
    /// The most memory used on all nodes together.
    pub peak_memory: Option<Bytes>,
    /// Where that was measured.
    pub memory_source: Option<Source>,
    /// Bytes read, as Slurm sampled them.
    pub disk_read: Option<u64>,
    /// Bytes written, as Slurm sampled them.
    pub disk_written: Option<u64>,
    /// Energy used, in joules.
    pub energy: Option<u64>,
    /// How many steps it had; `None` where sacct did not tell of it, as of a run that was taken over.
    pub steps: Option<u32>,
    /// The administrator's comment.
    pub admin_comment: Cow<'a, str>,
    /// What the agents measured.
    pub agent: Option<AgentUse>,
}

impl Run<'_> {
    /// Its time in the unit of the formulas; no run lasts for more than a century.
    fn seconds(&self) -> Option<u32> {
        self.elapsed.and_then(|elapsed| u32::try_from(elapsed).ok())
    }

    /// Memory asked for, in MiB.
    #[must_use]
    pub fn req_mem_mb(&self) -> Option<f64> {
        self.req_memory.map(Bytes::mib)
    }

    /// Memory given, in MiB.
    #[must_use]
    pub fn alloc_mem_mb(&self) -> Option<f64> {
        self.memory.map(Bytes::mib)
    }

    /// The most memory used, in MiB.
    #[must_use]
    pub fn max_rss_mb(&self) -> Option<f64> {
        self.peak_memory.map(Bytes::mib)
    }

    /// CPU time used of that held, in per cent; above 100 if it used more.
    #[must_use]
    pub fn cpu_efficiency(&self) -> Option<f64> {
        Efficiency::cpu(self.cpu_seconds, self.cpus, self.seconds()).map(per_cent)
    }

    /// Memory used of that held, in per cent; above 100 if it used more.
    #[must_use]
    pub fn memory_efficiency(&self) -> Option<f64> {
        let (used, held) = (self.max_rss_mb(), self.alloc_mem_mb());
        Efficiency::memory(used, held, self.seconds()).map(per_cent)
    }

    /// CPU-hours held.
    #[must_use]
    pub fn cpu_hours_reserved(&self) -> Option<f64> {
        Some(hours(f64::from(self.cpus?), f64::from(self.seconds()?)))
    }

    /// CPU-hours held and not used.
    #[must_use]
    pub fn cpu_hours_wasted(&self) -> Option<f64> {
        Some((self.cpu_hours_reserved()? - hours(1.0, self.cpu_seconds?)).max(0.0))
    }

    /// GiB-hours of memory held.
    #[must_use]
    pub fn memory_gb_hours_reserved(&self) -> Option<f64> {
        Some(gib_hours(self.alloc_mem_mb()?, f64::from(self.seconds()?)))
    }

    /// GiB-hours of memory held and not used.
    #[must_use]
    pub fn memory_gb_hours_wasted(&self) -> Option<f64> {
        let used = gib_hours(self.max_rss_mb()?, f64::from(self.seconds()?));
        Some((self.memory_gb_hours_reserved()? - used).max(0.0))
    }

    /// GPU-hours held.
    #[must_use]
    pub fn gpu_hours_reserved(&self) -> Option<f64> {
        Some(hours(f64::from(self.gpus?), f64::from(self.seconds()?)))
    }

    /// Its own time limit, in seconds.
    #[must_use]
    pub fn time_limit_seconds(&self) -> Option<u64> {
        match self.time_limit? {
            TimeLimit::Own(Limit::At(limit)) => Some(limit.as_secs()),
            TimeLimit::Own(Limit::Unlimited) | TimeLimit::OfPartition => None,
        }
    }

    /// Time used of the time limit, in per cent.
    #[must_use]
    pub fn time_limit_use(&self) -> Option<f64> {
        let limit = self.time_limit_seconds().filter(|limit| *limit > 0)?;
        Some(100.0 * self.elapsed? as f64 / limit as f64)
    }

    /// Seconds from submission to start.
    #[must_use]
    pub fn wait(&self) -> Option<u64> {
        self.start?.since(self.submit).map(|wait| wait.as_secs())
    }
}
