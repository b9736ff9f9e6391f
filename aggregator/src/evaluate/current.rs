//! Jobs of the queue as the jobs that rules are about.

use steward_common::cluster::{ArrayTask, CurrentJob};
use steward_common::intern::Names;
use steward_common::rule::{Job, JobKey, Usage};
use steward_common::slurm::duration::TimeLimit;
use steward_common::slurm::tres::Tres;
use steward_common::time::Timestamp;

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// A job that holds nodes at this moment; `None` for one that waits, and for one of which Slurm does
/// not say when it began.
pub fn job(current: &CurrentJob, now: Timestamp, names: &mut Names) -> Option<Job> {
    if current.state.is_pending() || current.state.is_ended() {
        return None;
    }
    let start = current.start.filter(|start| *start <= now)?;
    let task = |task: &ArrayTask| match task {
        ArrayTask::One(task) => Some(*task),
        ArrayTask::Waiting { .. } => None,
    };
    let user = match (&*current.user, current.uid) {
        ("", Some(uid)) => names.intern(&format!("uid_{}", uid.get())),
        (user, _) => names.intern(user),
    };
    // A list that cannot be read has no billing; what else it says stands in fields of its own.
    let billing = current.tres.parse::<Tres>().ok().and_then(|tres| tres.billing());
    Some(Job {
        key: JobKey { id: current.id, submit: current.submitted? },
        array: current.array.as_ref().map(|array| (array.job.get(), task(&array.task))),
        user,
        account: names.intern(&current.account),
        partition: names.intern(&current.partition),
        qos: names.intern(&current.qos),
        name: names.intern(&current.name),
        nodes: names.intern(&current.nodes),
        licences: Some(names.intern(current.licences.as_deref().unwrap_or_default())),
        state: current.state.clone(),
        start: Some(start),
        end: None,
        elapsed: now.since(start).and_then(|time| small(time.as_secs())),
        time_limit: current.time_limit.map(TimeLimit::Own),
        cpus: current.cpus.and_then(small),
        node_count: current.node_count.and_then(small),
        gpus: small(current.gpus.total),
        memory: current.memory,
        billing,
        usage: Usage::default(),
    })
}
