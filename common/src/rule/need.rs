//! What a rule must know to judge; for its manual.

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Slurm's accounting: what jobs held, for how long and how they ended.
    Accounting,
    /// Jobs that run at this moment; the rule is about no others.
    Queue,
    /// Time limits, those of partitions too.
    TimeLimits,
    /// What nodes have.
    Hardware,
    /// CPU time used, by job.
    CpuTime,
    /// The most memory used, by job.
    Memory,
    /// CPU time and memory by node, of jobs on several.
    ByNode,
    /// How busy GPUs were.
    Gpus,
    /// Memory of GPUs that was used.
    GpuMemory,
    /// What agents see of processes: threads, open files, busy cores.
    Processes,
}

impl Need {
    /// What it is, and where it comes from.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Need::Accounting => "what jobs held and for how long (Slurm's accounting)",
            Need::Queue => "jobs that run at this moment (slurmctld); it is about no others",
            Need::TimeLimits => "time limits of jobs and partitions (accounting, slurmctld)",
            Need::Hardware => "what nodes have (slurmctld)",
            Need::CpuTime => "CPU time used (accounting, agents or Jobstats summaries)",
            Need::Memory => "the most memory used (accounting, agents or Jobstats summaries)",
            Need::ByNode => {
                "CPU time and memory by node, of jobs on several (agents or Jobstats summaries)"
            }
            Need::Gpus => "how busy GPUs were (a GPU exporter or Jobstats summaries)",
            Need::GpuMemory => "memory of GPUs used (a GPU exporter or Jobstats summaries)",
            Need::Processes => "what processes do: threads, files, busy cores (agents)",
        }
    }

    /// Whether somebody must have measured it, so that a share of each job has to be covered.
    #[must_use]
    pub fn is_measured(self) -> bool {
        !matches!(self, Need::Accounting | Need::Queue | Need::TimeLimits | Need::Hardware)
    }
}
