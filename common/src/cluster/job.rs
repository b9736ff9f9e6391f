//! A record of the queue.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{JobId, Uid};
use crate::limit::Limit;
use crate::slurm::array;
use crate::slurm::state::JobState;
use crate::time::Timestamp;
use crate::unit::Bytes;

/// Which tasks of an array a record stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayTask {
    /// One task.
    One(u32),
    /// Those that have not been started yet.
    Waiting {
        /// As Slurm lists them: `3-999%3`.
        list: Arc<str>,
        /// How many they are.
        count: u64,
    },
}

/// The part of a job array that a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayPart {
    /// The id of the array.
    pub job: JobId,
    /// Its tasks.
    pub task: ArrayTask,
}

/// The part of a heterogeneous job that a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HetPart {
    /// The id of the whole.
    pub job: JobId,
    /// Which part.
    pub offset: u32,
}

/// GPUs of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpus {
    /// All of them.
    pub total: u64,
    /// By type, as far as Slurm states types; they may be fewer than `total`.
    pub by_type: Vec<(Arc<str>, u64)>,
}

/// A job of the queue, or the waiting tasks of an array. Text that recurs is shared between jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentJob {
    /// Slurm's raw job id.
    pub id: JobId,
    /// If it is a part of an array.
    pub array: Option<ArrayPart>,
    /// If it is a part of a heterogeneous job.
    pub het: Option<HetPart>,
    /// Whose it is; empty if Slurm knows no name.
    pub user: Arc<str>,
    /// The number of its user.
    pub uid: Option<Uid>,
    /// The account that pays.
    pub account: Arc<str>,
    /// Its partition; several with commas while it waits for the first that has room.
    pub partition: Arc<str>,
    /// Its quality of service.
    pub qos: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its state.
    pub state: JobState,
    /// Why it waits, without lists of nodes; `None` if Slurm gives no reason.
    pub reason: Option<Arc<str>>,
    /// The nodes that it holds, as a host list; empty if none.
    pub nodes: Arc<str>,
    /// How many nodes it holds or asks for.
    pub node_count: Option<u64>,
    /// CPUs that it holds, or asks for while it waits. Of one task, if it stands for several.
    pub cpus: Option<u64>,
    /// Memory that it holds or asks for.
    pub memory: Option<Bytes>,
    /// GPUs that it holds or asks for.
    pub gpus: Gpus,
    /// All that it holds or asks for, as Slurm lists it.
    pub tres: Arc<str>,
    /// When it was submitted; a requeued job was submitted again.
    pub submitted: Option<Timestamp>,
    /// From when it could have started.
    pub eligible: Option<Timestamp>,
    /// When it started, or, while it waits, when Slurm thinks it will.
    pub start: Option<Timestamp>,
    /// When it ended, or will at the latest.
    pub end: Option<Timestamp>,
    /// Its time limit.
    pub time_limit: Option<Limit<Duration>>,
    /// Its priority; 0 if it is held.
    pub priority: Option<u64>,
    /// The reservation that it asks for or runs in.
    pub reservation: Option<Arc<str>>,
    /// The licences that it asks for or holds.
    pub licences: Option<Arc<str>>,
    /// What it waits for.
    pub dependency: Option<Arc<str>>,
    /// The features of nodes that it asks for.
    pub features: Option<Arc<str>>,
    /// The host that it was submitted from, where Slurm says so.
    pub submit_host: Option<Arc<str>>,
    /// How often it was requeued.
    pub restarts: Option<u64>,
}

impl CurrentJob {
    /// How many jobs this record stands for: more than one for waiting tasks of an array.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        match &self.array {
            Some(ArrayPart { task: ArrayTask::Waiting { count, .. }, .. }) => (*count).max(1),
            _ => 1,
        }
    }

    /// Whether it holds its nodes: it runs, is being set up or is being cleaned up.
    #[must_use]
    pub fn holds_nodes(&self) -> bool {
        self.state.is_running()
            || matches!(
                self.state,
                JobState::Completing
                    | JobState::Configuring
                    | JobState::Stopped
                    | JobState::StageOut
                    | JobState::PowerUpNode
            )
    }

    /// Its id as squeue shows it: `739`, `741_0`, `741_[3-999%3]`, `743+1`.
    #[must_use]
    pub fn shown_id(&self) -> String {
        match (&self.array, self.het) {
            (Some(ArrayPart { job, task: ArrayTask::One(task) }), _) => format!("{job}_{task}"),
            (Some(ArrayPart { job, task: ArrayTask::Waiting { list, .. } }), _) => {
                format!("{job}_[{list}]")
            }
            (None, Some(HetPart { job, offset })) => format!("{job}+{offset}"),
            (None, None) => self.id.to_string(),
        }
    }

    /// Whether people may mean it by this id: that which squeue shows, or that of a task of an array
    /// that has not been started yet, `741_5`.
    #[must_use]
    pub fn is_known_as(&self, id: &str) -> bool {
        match (&self.array, id.split_once('_')) {
            (Some(ArrayPart { job, task: ArrayTask::Waiting { list, .. } }), Some((own, task))) => {
                own.parse() == Ok(*job) && task.parse().is_ok_and(|task| array::holds(list, task))
            }
            _ => self.shown_id() == id,
        }
    }

    /// How long it has held its nodes at `now`; `None` if it does not.
    #[must_use]
    pub fn elapsed(&self, now: Timestamp) -> Option<Duration> {
        if self.holds_nodes() { now.since(self.start?) } else { None }
    }
}
