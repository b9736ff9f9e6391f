//! A cluster at a moment, as slurmctld tells of it: nodes, jobs, and what is allocated, idle or
//! unusable, and why.
//!
//! Entry points:
//! - [`Snapshot`]: all of it, made once per interval and shared by exporter, rules and pages. Each
//!   part is a [`Seen`]: the last good answer and when it was given; `None` until there was one.
//!   What became of each question is in [`Snapshot::asked`].
//! - [`Node`] with its [`NodeState`] (a base state and, apart from it, a set of flags);
//!   [`Node::split`] puts every CPU, byte of memory and generic resource into exactly one
//!   [`Class`].
//! - [`Sums`]: the same over many nodes; [`Snapshot::sums`] and [`Snapshot::sums_by_partition`].
//! - [`CurrentJob`]: one record of the queue; a waiting array of a thousand tasks is one record
//!   that stands for a thousand ([`CurrentJob::tasks`]).
//! - [`Tally`]: the queue counted by state, partition, account, user and reason.
//! - [`Partition`], [`Reservation`], [`Licence`], [`Share`], [`AccountLimits`], [`Scheduler`].
//!
//! Text of Slurm's commands is read by the `parse…` function beside each type; its JSON is read
//! where serde is, in the aggregator.

pub mod class;
pub mod draft;
pub mod job;
pub mod licence;
pub mod limits;
pub mod node;
pub mod partition;
pub mod queue;
pub mod reason;
pub mod record;
pub mod reservation;
pub mod scheduler;
pub mod share;
pub mod state;
pub mod stock;
pub mod sums;
pub mod tally;
pub mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{ClusterName, JobId, NodeName};
use crate::time::Timestamp;

pub use class::{Cause, Class, Split};
pub use job::{ArrayPart, ArrayTask, CurrentJob, Gpus, HetPart};
pub use licence::Licence;
pub use limits::AccountLimits;
pub use node::{Amount, Node, NodeSplit, Reason};
pub use partition::Partition;
pub use reservation::Reservation;
pub use scheduler::{Remote, Scheduler};
pub use share::Share;
pub use state::{Base, Flag, NodeState};
pub use stock::Stock;
pub use sums::Sums;
pub use tally::Tally;

macro_rules! questions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// What is asked of Slurm for a snapshot; each is answered or fails by itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Question {
            $($(#[$doc])* $variant,)*
        }

        impl Question {
            /// Every question, in the order in which they are asked.
            pub const ALL: &[Question] = &[$(Question::$variant),*];

            /// The word for labels and settings.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Question::$variant => $name,)*
                }
            }
        }
    };
}

questions! {
    /// The nodes.
    Nodes = "nodes";
    /// The queue, with jobs that ended a short while ago.
    Jobs = "jobs";
    /// The partitions.
    Partitions = "partitions";
    /// The reservations.
    Reservations = "reservations";
    /// The licences.
    Licences = "licences";
    /// Who used how much of his share.
    Shares = "shares";
    /// What the scheduler does.
    Scheduler = "scheduler";
    /// What accounts may use at most; the database is asked, not slurmctld, and therefore last.
    Limits = "limits";
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// When it was last asked.
    pub at: Timestamp,
    /// How long that took.
    pub took: Duration,
    /// Why there was no answer; `None` if there was one.
    pub error: Option<String>,
    /// When it was last answered.
    pub answered: Option<Timestamp>,
}

/// The last good answer to a question. It is shared, not copied, by the snapshots that keep it.
#[derive(Debug)]
pub struct Seen<T> {
    /// When it was given.
    pub at: Timestamp,
    /// What was seen.
    pub what: Arc<T>,
}

impl<T> Seen<T> {
    /// An answer of this moment.
    #[must_use]
    pub fn new(at: Timestamp, what: T) -> Seen<T> {
        Seen { at, what: Arc::new(what) }
    }
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Seen<T> {
        Seen { at: self.at, what: Arc::clone(&self.what) }
    }
}

/// A cluster at a moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Which cluster.
    pub cluster: ClusterName,
    /// When the questions were last asked; each part has its own time.
    pub taken_at: Timestamp,
    /// How long after that they are asked again: longer than configured while slurmctld is slow.
    pub interval: Duration,
    /// What became of each question that is asked at all.
    pub asked: BTreeMap<Question, Asked>,
    /// Its nodes.
    pub nodes: Option<Seen<Vec<Node>>>,
    /// Its queue.
    pub jobs: Option<Seen<Vec<CurrentJob>>>,
    /// Its partitions.
    pub partitions: Option<Seen<Vec<Partition>>>,
    /// Its reservations.
    pub reservations: Option<Seen<Vec<Reservation>>>,
    /// Its licences.
    pub licences: Option<Seen<Vec<Licence>>>,
    /// Shares of accounts and users.
    pub shares: Option<Seen<Vec<Share>>>,
    /// Limits of accounts.
    pub limits: Option<Seen<Vec<AccountLimits>>>,
    /// What its scheduler does.
    pub scheduler: Option<Seen<Scheduler>>,
}

impl Snapshot {
    /// A cluster of which nothing is known yet.
    #[must_use]
    pub fn unseen(cluster: ClusterName, now: Timestamp) -> Snapshot {
        Snapshot {
            cluster,
            taken_at: now,
            interval: Duration::ZERO,
            asked: BTreeMap::new(),
            nodes: None,
            jobs: None,
            partitions: None,
            reservations: None,
            licences: None,
            shares: None,
            limits: None,
            scheduler: None,
        }
    }

    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&Node> {
        self.nodes.as_ref()?.what.iter().find(|node| node.name == *name)
    }

    /// The record of that job.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<&CurrentJob> {
        self.jobs.as_ref()?.what.iter().find(|job| job.id == id)
    }

    /// What the nodes have and in which class it is, a node that several partitions share counted
    /// once; `None` as long as no node was seen.
    #[must_use]
    pub fn sums(&self) -> Option<Sums> {
        let nodes = self.nodes.as_ref()?;
        let mut sums = Sums::default();
        for node in nodes.what.iter() {
            sums.add(&node.split());
        }
        Some(sums)
    }

    /// The same for each partition; a node counts in each of its partitions. Partitions without a
    /// node are there too.
    #[must_use]
    pub fn sums_by_partition(&self) -> Option<BTreeMap<Arc<str>, Sums>> {
        let nodes = self.nodes.as_ref()?;
        let known = self.partitions.iter().flat_map(|seen| seen.what.iter());
        let mut partitions: BTreeMap<Arc<str>, Sums> =
            known.map(|partition| (Arc::clone(&partition.name), Sums::default())).collect();
        for node in nodes.what.iter() {
            let split = node.split();
            for partition in &node.partitions {
                partitions.entry(Arc::clone(partition)).or_default().add(&split);
            }
        }
        Some(partitions)
    }

    /// The reservation that holds each node at `now`. Of several, the one that began first.
    #[must_use]
    pub fn reserved(&self, now: Timestamp) -> BTreeMap<NodeName, Arc<str>> {
        let mut active: Vec<&Reservation> = self
            .reservations
            .iter()
            .flat_map(|seen| seen.what.iter())
            .filter(|reservation| reservation.is_active(now))
            .collect();
        active.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        let mut reserved = BTreeMap::new();
        for reservation in active {
            for node in &reservation.nodes {
                reserved.entry(node.clone()).or_insert_with(|| Arc::clone(&reservation.name));
            }
        }
        reserved
    }
}

#[cfg(test)]
mod tests;
