//! What a job used of what it held, or why that is not known. Rules ask here, so that what counts
//! as measured is decided once.

use crate::efficiency::{gib_hours, hours};
use crate::unit::Bytes;

use super::facts::Job;
use super::option::Share;
use super::usage::{Figure, GpuUsage, NodeUsage, Work};

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Missing {
    /// Nobody measured it.
    Unmeasured,
    /// Too little of it was seen.
    Coverage {
        /// What was seen.
        found: Share,
        /// What the rule needs.
        needed: Share,
    },
    /// The figures contradict one another: more was used than was held.
    MoreThanHeld,
    /// The accounting does not say what was held, or for how long.
    Held,
    /// What its nodes have is not known.
    Hardware,
    /// How long it may run is not known, or it may run for ever.
    TimeLimit,
}

/// Hours of CPUs, GPUs or GiB: used of held.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Used {
    /// Used.
    pub used: f64,
    /// Held.
    pub held: f64,
}

impl Used {
    /// Used of held, not more than was held; `None` if nothing was held.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.held > 0.0).then(|| self.used / self.held)
    }

    /// Held and not used.
    #[must_use]
    pub fn unused(self) -> f64 {
        self.below(Share::ALL)
    }

    /// What would have had to be used besides, to have used this share of what was held.
    #[must_use]
    pub fn below(self, target: Share) -> f64 {
        (self.held * target.get() - self.used).max(0.0)
    }

    /// Counts another.
    pub fn add(&mut self, other: Used) {
        self.used += other.used;
        self.held += other.held;
    }
}

/// The value of a figure that covers enough.
///
/// # Errors
/// If there is none, or it covers too little.
pub fn seen<T>(figure: Option<&Figure<T>>, needed: Share) -> Result<&T, Missing> {
    let figure = figure.ok_or(Missing::Unmeasured)?;
    if figure.coverage < needed {
        return Err(Missing::Coverage { found: figure.coverage, needed });
    }
    Ok(&figure.value)
}

fn seconds(job: &Job) -> Result<f64, Missing> {
    job.elapsed.filter(|elapsed| *elapsed > 0).map(f64::from).ok_or(Missing::Held)
}

/// All of a list whose values are all known.
fn sum<T>(list: &[T], value: impl Fn(&T) -> Option<f64>) -> Result<f64, Missing> {
    list.iter().map(value).sum::<Option<f64>>().ok_or(Missing::Unmeasured)
}

/// CPU-hours used of those held.
///
/// # Errors
/// If it is not known.
pub fn cpu(job: &Job, needed: Share) -> Result<Used, Missing> {
    let elapsed = seconds(job)?;
    let cpus = job.cpus.filter(|cpus| *cpus > 0).map(f64::from).ok_or(Missing::Held)?;
    let used = match seen(job.usage.cpu_seconds.as_ref(), needed) {
        Ok(used) => *used,
        Err(missing) if job.usage.nodes.is_none() => return Err(missing),
        Err(_) => sum(nodes(job, needed)?, |node| node.cpu_seconds)?,
    };
    if !(used.is_finite() && used >= 0.0) {
        return Err(Missing::Unmeasured);
    }
    if used > cpus * longest(elapsed) {
        return Err(Missing::MoreThanHeld);
    }
    let held = hours(cpus, elapsed);
    Ok(Used { used: hours(1.0, used).min(held), held })
}

/// Slurm cuts the time of a job to whole seconds; it may have been nearly one longer.
fn longest(elapsed: f64) -> f64 {
    elapsed + 1.0
}

/// The most memory used of that held, both on all nodes together.
///
/// # Errors
/// If it is not known.
pub fn memory(job: &Job, needed: Share) -> Result<(Bytes, Bytes), Missing> {
    let used = match seen(job.usage.peak_memory.as_ref(), needed) {
        Ok(used) => *used,
        Err(missing) if job.usage.nodes.is_none() => return Err(missing),
        Err(_) => total(nodes(job, needed)?, |node| node.peak_memory).ok_or(Missing::Unmeasured)?,
    };
    let limits = || total(nodes(job, needed).ok()?, |node| node.memory);
    let held = job.memory.or_else(limits).filter(|held| held.get() > 0).ok_or(Missing::Held)?;
    if used > held { Err(Missing::MoreThanHeld) } else { Ok((used, held)) }
}

/// The sum over all nodes, if it is known of each.
fn total(nodes: &[NodeUsage], amount: impl Fn(&NodeUsage) -> Option<Bytes>) -> Option<Bytes> {
    nodes.iter().try_fold(Bytes::default(), |sum, node| sum.checked_add(amount(node)?))
}

/// The most memory used on one node, or, where nobody looked at nodes by themselves, of a job that
/// holds one node.
///
/// # Errors
/// If it is not known.
pub fn memory_per_node(job: &Job, needed: Share) -> Result<Bytes, Missing> {
    if job.usage.nodes.is_none() && job.node_count == Some(1) {
        return memory(job, needed).map(|(used, _)| used);
    }
    let mut most = None;
    for node in nodes(job, needed)? {
        let used = node.peak_memory.ok_or(Missing::Unmeasured)?;
        if node.memory.is_some_and(|held| used > held) {
            return Err(Missing::MoreThanHeld);
        }
        most = most.max(Some(used));
    }
    most.ok_or(Missing::Unmeasured)
}

/// GiB-hours of memory used of those held.
///
/// # Errors
/// If it is not known.
pub fn memory_hours(job: &Job, needed: Share) -> Result<Used, Missing> {
    let elapsed = seconds(job)?;
    let (used, held) = memory(job, needed)?;
    Ok(Used { used: gib_hours(used.mib(), elapsed), held: gib_hours(held.mib(), elapsed) })
}

/// What was used on each node, if all nodes are there.
///
/// # Errors
/// If it is not known.
pub fn nodes(job: &Job, needed: Share) -> Result<&[NodeUsage], Missing> {
    let nodes = seen(job.usage.nodes.as_deref(), needed)?;
    all(nodes, job.node_count)
}

/// What was used of each GPU, if all GPUs are there.
///
/// # Errors
/// If it is not known.
pub fn gpus(job: &Job, needed: Share) -> Result<&[GpuUsage], Missing> {
    let gpus = all(seen(job.usage.gpus.as_deref(), needed)?, job.gpus)?;
    let more =
        |gpu: &GpuUsage| gpu.peak_memory.zip(gpu.memory).is_some_and(|(used, has)| used > has);
    if gpus.iter().any(more) { Err(Missing::MoreThanHeld) } else { Ok(gpus) }
}

/// The list, if it has as many things as the job holds: of fewer the others are not known, and of
/// more nobody knows which are the job's.
fn all<T>(list: &[T], held: Option<u32>) -> Result<&[T], Missing> {
    let held = held.ok_or(Missing::Held)?;
    let there = u32::try_from(list.len()).unwrap_or(u32::MAX);
    if there == 0 {
        return Err(Missing::Unmeasured);
    }
    if there > held {
        return Err(Missing::MoreThanHeld);
    }
    if there < held {
        let found = Share::new(f64::from(there) / f64::from(held)).unwrap_or(Share::NONE);
        return Err(Missing::Coverage { found, needed: Share::ALL });
    }
    Ok(list)
}

/// The mean utilisation of a job's GPUs.
///
/// # Errors
/// If it is not known of one of them.
pub fn gpu_mean(job: &Job, needed: Share) -> Result<f64, Missing> {
    let gpus = gpus(job, needed)?;
    let used = sum(gpus, |gpu| gpu.utilisation.map(|utilisation| utilisation.mean().get()))?;
    Ok(used / gpus.len() as f64)
}

/// GPU-hours used of those held.
///
/// # Errors
/// If it is not known.
pub fn gpu(job: &Job, needed: Share) -> Result<Used, Missing> {
    seconds(job)?;
    let held = job.gpu_hours();
    Ok(Used { used: gpu_mean(job, needed)? * held, held })
}

/// What the agents saw of its processes.
///
/// # Errors
/// If they saw nothing, or too little.
pub fn work(job: &Job, needed: Share) -> Result<&Work, Missing> {
    seen(job.usage.work.as_deref(), needed)
}

/// How much of what a user's jobs held was measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coverage {
    known: f64,
    unknown: f64,
    last: Option<Missing>,
    /// Jobs that the rule is about.
    pub jobs: u32,
}

impl Coverage {
    /// Takes note of a job that held so many hours, and hands back what is known of it.
    pub fn note<T>(&mut self, hours: f64, known: Result<T, Missing>) -> Option<T> {
        self.jobs = self.jobs.saturating_add(1);
        match known {
            Ok(value) => {
                self.known += hours;
                Some(value)
            }
            Err(missing) => {
                self.unknown += hours;
                self.last = Some(missing);
                None
            }
        }
    }

    /// The share of the hours that is known; `None` if none were held.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let all = self.known + self.unknown;
        (all > 0.0).then(|| self.known / all)
    }

    /// Why too little is known, if that is so.
    #[must_use]
    pub fn lack(&self, needed: Share) -> Option<Missing> {
        let last = self.last?;
        // The reason of a single kind says more than a share of nothing.
        if self.known == 0.0 {
            return Some(last);
        }
        let found = self.share().and_then(Share::new)?;
        (found < needed).then_some(Missing::Coverage { found, needed })
    }
}
