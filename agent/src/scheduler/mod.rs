//! How a directory becomes a job: the one place that knows how a scheduler names its cgroups.
//!
//! To add a scheduler: one file that implements [`Scheduler`], its `mod` line, its arm in
//! [`from_config`].

pub mod slurm;
pub mod systemd;

use std::fmt;
use std::sync::Arc;

use steward_common::id::{NodeName, Uid};
use steward_common::slurm::cgroup_path::{JobDir, Version};

use crate::config;

/// What a directory is to a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directory {
    /// Jobs may be further down.
    Above,
    /// Jobs are kept below it; the node, where the name says it.
    Scope(Option<NodeName>),
    /// A job; its owner, where the path says it.
    Job(JobDir, Option<Uid>),
    /// Nothing of interest, here and below.
    Foreign,
}

/// Whose the processes in a directory of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The job's.
    Job,
    /// The job's, but for the placeholder that keeps its external step alive.
    Extern,
    /// The scheduler's own daemon.
    Daemon,
}

/// How a scheduler lays out its cgroups.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// What the directory at `path` is: its names from the mount of a hierarchy down.
    fn directory(&self, version: Version, path: &[&str]) -> Directory;

    /// Whose the processes are of a directory in a job's: `path` has the names from the job's own
    /// down. `None` if there are none in it, though there may be below.
    fn share(&self, version: Version, path: &[&str]) -> Option<Share>;

    /// Whether a job without a process may be a job that idles: a daemon of the scheduler tells it
    /// from what a job left behind.
    fn keeps_idle_jobs(&self) -> bool;
}

/// The scheduler that the configuration names.
///
/// # Errors
/// If the pattern is none.
pub fn from_config(config: &config::Scheduler) -> Result<Arc<dyn Scheduler>, String> {
    Ok(match &config.pattern {
        None => Arc::new(slurm::Slurm),
        Some(pattern) => Arc::new(pattern.parse::<systemd::Pattern>()?),
    })
}
