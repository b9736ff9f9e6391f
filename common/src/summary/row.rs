//! The one kind of row that summaries are made of: narrow, and with names as numbers.

use crate::intern::Name;
use crate::time::Timestamp;
use crate::window::Window;

/// One run of a job, as far as a summary looks at it. What nobody measured is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its cluster.
    pub cluster: Name,
    /// Its owner.
    pub user: Name,
    /// The account it is charged to.
    pub account: Name,
    /// Its partition.
    pub partition: Name,
    /// Its quality of service.
    pub qos: Name,
    /// Its state, Slurm's long name without the user of `CANCELLED by …`.
    pub state: Name,
    /// Its nodes as Slurm's list; empty if it got none.
    pub nodes: Name,
    /// Its GPUs by type, `a100=2,v100=1`; empty if it has none or their type is not known.
    pub gpu_types: Name,
    /// When it was submitted.
    pub submit: Timestamp,
    /// When it started; `None` if it never did.
    pub start: Option<Timestamp>,
    /// When it ended; `None` while it has not.
    pub end: Option<Timestamp>,
    /// When sacct was asked: up to then a job that has not ended is known.
    pub collected: Timestamp,
    /// How long it held its resources, in seconds.
    pub elapsed: Option<u32>,
    /// CPUs it held.
    pub cpus: Option<u32>,
    /// GPUs it held.
    pub gpus: Option<u32>,
    /// Memory it held on all its nodes, in MiB.
    pub alloc_mem_mb: Option<f64>,
    /// The most memory it used, in MiB.
    pub max_rss_mb: Option<f64>,
    /// CPU time it used, in seconds.
    pub cpu_seconds: Option<f64>,
    /// GPU time it used (utilisation × time, summed over its GPUs), in seconds.
    pub gpu_seconds: Option<f64>,
    /// Its time limit in seconds; `None` if it has none or none is known.
    pub time_limit: Option<u32>,
}

impl Row {
    /// The time in which it held resources; up to the moment of collection if it has not ended.
    #[must_use]
    pub fn held(&self) -> Option<Window> {
        Window::new(self.start?, self.end.unwrap_or(self.collected))
    }
}
