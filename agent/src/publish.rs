//! The newest scan, as the outputs see it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use steward_common::id::{ClusterName, NodeName};

use crate::sample::Samples;

/// One node's samples.
#[derive(Debug)]
pub struct NodeSamples {
    /// About its jobs; `None` when it has none.
    pub jobs: Option<Arc<Samples>>,
    /// The agent about itself.
    pub own: Arc<Samples>,
}

impl NodeSamples {
    /// Whose they are.
    #[must_use]
    pub fn key(&self) -> (ClusterName, NodeName) {
        (self.own.cluster.clone(), self.own.node.clone())
    }
}

/// The result of one scan, ready to be written.
#[derive(Debug)]
pub struct Snapshot {
    /// When the last full scan began.
    pub at: Instant,
    /// The time from scan to scan, as it is now.
    pub period: Duration,
    /// The nodes of this host; none while the cluster's name is not known.
    pub nodes: Vec<NodeSamples>,
    /// Whether every directory could be listed.
    pub whole: bool,
}

impl Snapshot {
    /// All samples, for one exposition.
    #[must_use]
    pub fn samples(&self) -> Vec<Arc<Samples>> {
        self.nodes.iter().flat_map(|node| node.jobs.iter().chain([&node.own])).cloned().collect()
    }
}

/// The newest snapshot; `None` before the first scan.
pub type Latest = tokio::sync::watch::Receiver<Option<Arc<Snapshot>>>;

/// What the pusher counts, for the scan to export.
#[derive(Debug, Default)]
pub struct Pushes {
    /// Requests that the gateway took.
    pub ok: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
}
