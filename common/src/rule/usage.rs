//! What a job used, where each figure came from, and how much of the job it covers.

use std::time::Duration;

use crate::intern::Name;
use crate::job::Source;
use crate::time::Timestamp;
use crate::unit::Bytes;

use super::option::Share;

/// Who measured a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Slurm's accounting.
    Accounting,
    /// Steward's agents.
    Agent,
    /// Another exporter of the site, by way of Prometheus.
    Exporter,
    /// An archive that was taken over.
    Import,
    /// A summary of Jobstats in the job's comment.
    Summary,
}

impl Origin {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Accounting => "accounting",
            Origin::Agent => "agent",
            Origin::Exporter => "exporter",
            Origin::Import => "import",
            Origin::Summary => "summary",
        }
    }
}

impl From<Source> for Origin {
    fn from(source: Source) -> Origin {
        match source {
            Source::Steps | Source::Job => Origin::Accounting,
            Source::Agent => Origin::Agent,
            Source::Import => Origin::Import,
        }
    }
}

/// A measured value. What nobody measured is no figure, so there is none of value 0 for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure<T> {
    /// The value.
    pub value: T,
    /// Who measured it.
    pub origin: Origin,
    /// The share of the job, over its time and its nodes, that was seen.
    pub coverage: Share,
}

impl<T> Figure<T> {
    /// A figure about the whole job.
    #[must_use]
    pub fn whole(value: T, origin: Origin) -> Figure<T> {
        Figure { value, origin, coverage: Share::ALL }
    }
}

/// What a job used on one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeUsage {
    /// The node.
    pub node: Name,
    /// CPUs held there.
    pub cpus: Option<u32>,
    /// CPU time, in seconds.
    pub cpu_seconds: Option<f64>,
    /// The most memory.
    pub peak_memory: Option<Bytes>,
    /// Memory that it could use at most there.
    pub memory: Option<Bytes>,
}

/// Whether a GPU was idle all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// It was.
    Yes,
    /// It worked, if only once.
    No,
    /// The figure says 0 and was rounded before it came here: it worked next to nothing, or
    /// nothing.
    Nearly,
}

/// How busy a GPU was, as a share of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilisation {
    mean: Share,
    highest: Option<Share>,
    rounded: bool,
}

impl Utilisation {
    /// As measured: the mean of all samples, and the highest of them where it is known.
    #[must_use]
    pub fn measured(mean: Share, highest: Option<Share>) -> Utilisation {
        Utilisation { mean, highest, rounded: false }
    }

    /// A mean that was rounded, as in summaries of Jobstats (one decimal of per cent): its 0 may
    /// be a GPU that worked for a moment.
    #[must_use]
    pub fn rounded(mean: Share) -> Utilisation {
        Utilisation { mean, highest: None, rounded: true }
    }

    /// The mean.
    #[must_use]
    pub fn mean(self) -> Share {
        self.mean
    }

    /// Whether it was idle all the time: not a single sample above 0.
    #[must_use]
    pub fn idle(self) -> Idle {
        if self.highest.unwrap_or(self.mean).get() > 0.0 || self.mean.get() > 0.0 {
            Idle::No
        } else if self.rounded {
            Idle::Nearly
        } else {
            Idle::Yes
        }
    }
}

/// What a job used of one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuUsage {
    /// The node that it is in.
    pub node: Name,
    /// How busy it was; unknown for slices of older GPUs.
    pub utilisation: Option<Utilisation>,
    /// The most memory used.
    pub peak_memory: Option<Bytes>,
    /// The memory it has.
    pub memory: Option<Bytes>,
    /// How long, up to now, it has been idle without a break, at least; for running jobs.
    pub idle_for: Option<Duration>,
}

/// Threads of a job on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeThreads {
    /// The node.
    pub node: Name,
    /// CPUs held there.
    pub cpus: u32,
    /// The most threads of processes of one name.
    pub threads: u32,
}

/// What the agents saw of a job's processes. All over all nodes, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// CPUs that were busy, on average.
    pub busy_mean: Option<f64>,
    /// CPUs that were busy at most, in one interval of the agents.
    pub busy_most: Option<f64>,
    /// CPU time of each core, in seconds; cgroup v1 only.
    pub core_seconds: Option<Box<[f64]>>,
    /// Bytes that processes asked to read and write.
    pub requested_bytes: Option<u64>,
    /// Bytes read from and written to block devices and network file systems.
    pub moved_bytes: Option<u64>,
    /// Different files open at once, at most.
    pub open_files: Option<u64>,
    /// Whether a file in a scratch directory was ever open.
    pub scratch: Option<bool>,
    /// Threads, by node.
    pub threads: Option<Box<[NodeThreads]>>,
    /// Since when it has had no process on any node; `Some(None)` if it has one.
    pub without_process_since: Option<Option<Timestamp>>,
}

/// All that is known of what a job used. There are millions of these; what few jobs have is boxed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// CPU time on all nodes, in seconds.
    pub cpu_seconds: Option<Figure<f64>>,
    /// The most memory on all nodes together.
    pub peak_memory: Option<Figure<Bytes>>,
    /// By node. Of a job on one node it may be left out: the figures above say the same.
    pub nodes: Option<Box<Figure<Box<[NodeUsage]>>>>,
    /// By GPU.
    pub gpus: Option<Box<Figure<Box<[GpuUsage]>>>>,
    /// Its processes.
    pub work: Option<Box<Figure<Work>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(per_cent: f64) -> Share {
        Share::new(per_cent / 100.0).unwrap()
    }

    /// One sample of 11 % in two hours is a mean of 0.046 %: Jobstats writes 0.0, and Job Defense
    /// Shield cancels the job as idle. Unrounded it is what it is; a summary that is rounded
    /// already is no proof.
    #[test]
    fn x17_a_mean_next_to_zero_is_not_idle() {
        for mean in [0.0208, 0.049, 0.05, 12.25, 99.96] {
            assert_eq!(Utilisation::measured(share(mean), None).idle(), Idle::No, "{mean}");
            assert!((Utilisation::measured(share(mean), None).mean().get() - mean / 100.0) == 0.0);
        }
        assert_eq!(Utilisation::rounded(Share::NONE).idle(), Idle::Nearly);
        assert_eq!(Utilisation::rounded(share(0.1)).idle(), Idle::No);
        assert_eq!(Utilisation::measured(Share::NONE, None).idle(), Idle::Yes);
        assert_eq!(Utilisation::measured(Share::NONE, Some(share(11.0))).idle(), Idle::No);
        assert_eq!(Utilisation::measured(Share::NONE, Some(Share::NONE)).idle(), Idle::Yes);
    }
}
