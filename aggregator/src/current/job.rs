//! A job of the queue, as a row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steward_common::cluster::{ArrayTask, CurrentJob};
use steward_common::id::ClusterName;
use steward_common::limit::Limit;
use steward_common::time::Timestamp;

/// A time limit of a job.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TimeLimit {
    /// So many seconds.
    Seconds(u64),
    /// None.
    None(Unlimited),
}

/// The word for no limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlimited {
    /// `"unlimited"`.
    Unlimited,
}

/// A job, or the tasks of an array that have not started yet.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct JobRow {
    /// Its cluster.
    pub cluster: String,
    /// The id as squeue shows it: `739`, `741_0`, `741_[3-999%3]`, `743+1`.
    pub job_id: String,
    /// Slurm's raw id: with the cluster, the key.
    pub job_id_raw: u32,
    /// The id of its array.
    pub array_job_id: Option<u32>,
    /// The number of its task.
    pub array_task_id: Option<u32>,
    /// How many jobs it stands for: more than one for waiting tasks of an array.
    pub tasks: u64,
    /// The id of the heterogeneous job that it is a part of.
    pub het_job_id: Option<u32>,
    /// Its owner; empty if Slurm knows no name.
    pub user: String,
    /// The number of its owner.
    pub uid: Option<u32>,
    /// The account it is charged to.
    pub account: String,
    /// Its partition; several with commas while it waits for the first that has room.
    pub partition: String,
    /// Its quality of service.
    pub qos: String,
    /// Its name, uncut.
    pub job_name: String,
    /// Its state, Slurm's long name.
    pub state: String,
    /// Why it waits.
    pub reason: Option<String>,
    /// Its nodes, as Slurm's list.
    pub node_list: String,
    /// How many nodes it holds or asks for; this and what follows of one task.
    pub nodes: Option<u64>,
    /// CPUs.
    pub cpus: Option<u64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// GPUs.
    pub gpus: u64,
    /// The same by type, as far as Slurm states types.
    pub gpus_by_type: BTreeMap<String, u64>,
    /// When it was submitted.
    pub submit_time: Option<i64>,
    /// From when it could have started.
    pub eligible_time: Option<i64>,
    /// When it started; of a job that waits, when Slurm thinks it will.
    pub start_time: Option<i64>,
    /// When it ended, or will at the latest.
    pub end_time: Option<i64>,
    /// Its time limit, or `"unlimited"`.
    pub time_limit_seconds: Option<TimeLimit>,
    /// Its priority.
    pub priority: Option<u64>,
    /// The reservation that it asks for or runs in.
    pub reservation: Option<String>,
    /// What it waits for.
    pub dependency: Option<String>,
    /// How often it was requeued.
    pub restarts: Option<u64>,
}

impl JobRow {
    /// The row of a job.
    #[must_use]
    pub fn new(cluster: &ClusterName, job: &CurrentJob) -> JobRow {
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let time = |moment: Option<Timestamp>| moment.map(Timestamp::get);
        let task = job.array.as_ref().and_then(|array| match array.task {
            ArrayTask::One(task) => Some(task),
            ArrayTask::Waiting { .. } => None,
        });
        let limit = job.time_limit.map(|limit| match limit {
            Limit::At(limit) => TimeLimit::Seconds(limit.as_secs()),
            Limit::Unlimited => TimeLimit::None(Unlimited::Unlimited),
        });
        JobRow {
            cluster: cluster.to_string(),
            job_id: job.shown_id(),
            job_id_raw: job.id.get(),
            array_job_id: job.array.as_ref().map(|array| array.job.get()),
            array_task_id: task,
            tasks: job.tasks(),
            het_job_id: job.het.map(|het| het.job.get()),
            user: job.user.to_string(),
            uid: job.uid.map(steward_common::id::Uid::get),
            account: job.account.to_string(),
            partition: job.partition.to_string(),
            qos: job.qos.to_string(),
            job_name: job.name.to_string(),
            state: job.state.name().to_owned(),
            reason: text(&job.reason),
            node_list: job.nodes.to_string(),
            nodes: job.node_count,
            cpus: job.cpus,
            memory_bytes: job.memory.map(steward_common::unit::Bytes::get),
            gpus: job.gpus.total,
            gpus_by_type: job.gpus.by_type.iter().map(|(t, n)| (t.to_string(), *n)).collect(),
            submit_time: time(job.submitted),
            eligible_time: time(job.eligible),
            start_time: time(job.start),
            end_time: time(job.end),
            time_limit_seconds: limit,
            priority: job.priority,
            reservation: text(&job.reservation),
            dependency: text(&job.dependency),
            restarts: job.restarts,
        }
    }
}
