//! From what is known of jobs to what rules say of them.
//!
//! ```text
//! archive ─┐                                        ┌─> `steward evaluate`, `report`, `backtest`
//! snapshot ┼─ [`gather`] ─> Facts ─ [`judge`] ─> Judged ┼─> metrics of the service
//! Prometheus ┘                                      └─> notices, later
//! ```
//!
//! One source, job or question that fails is a [`Trouble`]; the rest goes on. A figure that is
//! missing for it makes verdicts [`Verdict::NoData`](steward_common::rule::Verdict), never others.

mod agents;
pub mod coverage;
mod current;
pub mod gather;
mod gpus;
pub mod judge;
mod question;
pub mod window;

use std::fmt;
use std::sync::Arc;

use steward_common::id::ClusterName;
use steward_common::time::Timestamp;
use steward_common::window::Window;

pub use gather::{Gathered, Runs, Sources, gather, gather_runs};
pub use judge::{Judged, Judgement, judge};

use crate::archive::Archive;
use crate::config::Config;
use crate::shutdown::Shutdown;

/// Something that failed while the rest went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Of which cluster; `None` if of all.
    pub cluster: Option<ClusterName>,
    /// What failed: a source, a job, a question.
    pub what: String,
    /// Why, and what follows.
    pub why: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "{cluster}: ")?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// Troubles of one cluster, or of all, as they come.
#[derive(Debug)]
pub struct Troubles<'a> {
    cluster: Option<&'a ClusterName>,
    list: &'a mut Vec<Trouble>,
}

impl<'a> Troubles<'a> {
    /// Those of a cluster go to the list.
    pub fn of(cluster: Option<&'a ClusterName>, list: &'a mut Vec<Trouble>) -> Self {
        Self { cluster, list }
    }

    /// One more.
    pub fn add(&mut self, what: impl Into<String>, why: impl fmt::Display) {
        let (what, why) = (what.into(), why.to_string());
        self.list.push(Trouble { cluster: self.cluster.cloned(), what, why });
    }
}

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Order {
    /// The time.
    pub window: Window,
    /// The present.
    pub now: Timestamp,
    /// These clusters, or all.
    pub clusters: Vec<ClusterName>,
    /// Whether slurmctld and Prometheus are asked, or the archive alone says what was.
    pub live: bool,
}

/// Asks slurmctld, the archive and Prometheus.
///
/// # Errors
/// If the archive cannot be read.
pub fn look(
    config: &Arc<Config>,
    archive: &Archive,
    order: &Order,
    shutdown: &Shutdown,
    troubles: &mut Vec<Trouble>,
) -> anyhow::Result<Vec<Gathered>> {
    let snapshots = if order.live {
        gather::snapshots(config, &order.clusters, shutdown, troubles)
    } else {
        Vec::new()
    };
    let sources =
        Sources { config, archive, snapshots: &snapshots, now: order.now, measured: order.live };
    gather(&sources, order.window, &order.clusters, troubles)
}
