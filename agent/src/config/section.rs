//! The sections of the settings, each with its defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use steward_common::span::Span;

use super::from_text;
use crate::kernel::cgroup::DEFAULT_ROOT;
use crate::quiet::Priority;
use crate::sample::{Budget, Selection};

/// Where things are.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Paths {
    /// The cgroup mount.
    pub cgroup: PathBuf,
    /// The proc mount.
    pub proc: PathBuf,
    /// Slurm's configuration; looked for in the usual places if not set.
    pub slurm_conf: Option<PathBuf>,
    /// What a restarted agent must know; an empty path turns it off.
    pub state: PathBuf,
}

/// How little the agent is to be felt.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Quiet {
    /// Whether scans fall on multiples of the interval by the wall clock.
    pub aligned: bool,
    /// The share of the time that scans may take before they are done less often, above 0, up to 1.
    pub share: f64,
    /// Whether the agent runs only when a CPU has nothing else to do.
    pub idle: bool,
    /// How nice it is to others, 0 to 19.
    pub nice: u8,
    /// The only CPUs that it uses; all if empty.
    pub cores: Vec<u32>,
}

/// How many series there may be.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Process names of a job that have a series of their own.
    pub process_names: usize,
    /// Series of one job.
    pub series_per_job: usize,
    /// Series of all jobs of a node.
    pub series_per_node: usize,
}

/// What is read of threads.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// How often each thread is read; never if 0.
    #[serde(deserialize_with = "from_text")]
    pub interval: Span,
}

/// How jobs are found.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// The path of a job's directory below the mount; Slurm's layouts if not set.
    pub pattern: Option<String>,
}

/// Which sets of metrics are exported.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// The sixteen inherited names.
    pub original: bool,
    /// Their successors in base units.
    pub modern: bool,
}

/// Whose jobs are not reported.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Exclude {
    /// User names or numeric user ids.
    pub users: Vec<UserRef>,
}

/// A user by name or by number.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "a user name or a numeric user id")]
pub enum UserRef {
    /// A numeric user id.
    Uid(u32),
    /// A user name; digits alone are taken as a user id.
    Name(String),
}

impl UserRef {
    /// Whether it means the user with that id and name.
    #[must_use]
    pub fn is(&self, uid: u32, name: Option<&str>) -> bool {
        match self {
            Self::Uid(own) => *own == uid,
            Self::Name(own) => {
                own.parse().is_ok_and(|own: u32| own == uid) || name == Some(own.as_str())
            }
        }
    }
}

/// What counts as scratch.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Scratch {
    /// Directories.
    pub paths: Vec<PathBuf>,
    /// File system types.
    pub mount_types: Vec<String>,
}

/// The listener for Prometheus.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Scrape {
    /// Whether to listen.
    pub enabled: bool,
    /// Where.
    pub listen: SocketAddr,
}

/// The Pushgateway.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Its address; nothing is pushed if not set.
    pub gateway: Option<String>,
    /// How long one request may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
    /// The share of the interval over which the pushes of all nodes are spread, from 0 to 1.
    pub spread: f64,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            cgroup: DEFAULT_ROOT.into(),
            proc: "/proc".into(),
            slurm_conf: None,
            state: "/run/steward-agent/state.json".into(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self { original: true, modern: true }
    }
}

impl Default for Quiet {
    fn default() -> Self {
        Self { aligned: true, share: 0.1, idle: false, nice: 0, cores: Vec::new() }
    }
}

impl From<&Quiet> for Priority {
    fn from(quiet: &Quiet) -> Self {
        match (quiet.idle, quiet.nice) {
            (true, _) => Self::Idle,
            (false, 0) => Self::Normal,
            (false, nice) => Self::Nice(nice),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let usual = Budget::default();
        Self {
            process_names: usual.names,
            series_per_job: usual.per_job,
            series_per_node: usual.per_node,
        }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self { interval: Span(Duration::from_secs(60)) }
    }
}

impl From<Limits> for Budget {
    fn from(limits: Limits) -> Self {
        Self {
            names: limits.process_names,
            per_job: limits.series_per_job,
            per_node: limits.series_per_node,
        }
    }
}

impl From<Metrics> for Selection {
    fn from(metrics: Metrics) -> Self {
        Self { original: metrics.original, modern: metrics.modern }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self { paths: vec!["/scratch".into()], mount_types: Vec::new() }
    }
}

impl Default for Scrape {
    fn default() -> Self {
        Self { enabled: true, listen: SocketAddr::from(([127, 0, 0, 1], 9866)) }
    }
}

impl Default for Push {
    fn default() -> Self {
        Self { gateway: None, timeout: Span(Duration::from_secs(5)), spread: 0.5 }
    }
}
