//! Report `longest-queued`: who has been waiting for the longest time, and why.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::CurrentJob;
use crate::slurm::state::JobState;
use crate::time::Timestamp;

use super::table::{Field, column};
use super::{Ask, Needs, Report, Table, Value, View, Weight};

/// The report.
pub const REPORT: Report = Report {
    about: "the job of each user that has waited longest, and why it waits",
    needs: Needs::Queue,
    make,
};

/// What keeps a job from starting that no free node would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// It is held, by its user or an administrator.
    Held,
    /// It waits for other jobs.
    Dependent,
    /// It is not to start before some time that has not come.
    Later,
}

impl Obstacle {
    /// That of a job; `None` if it waits for nodes, limits or its turn.
    #[must_use]
    pub fn of(job: &CurrentJob, now: Timestamp) -> Option<Obstacle> {
        let reason = job.reason.as_deref().unwrap_or_default();
        let reason = reason.trim_start_matches('(').trim_end_matches(')');
        let held = matches!(
            job.state,
            JobState::RequeueHold | JobState::SpecialExit | JobState::ResvDelHold
        );
        if held || reason.starts_with("JobHeld") || reason.ends_with("requeued held") {
            Some(Obstacle::Held)
        } else if reason.starts_with("Dependency") {
            Some(Obstacle::Dependent)
        } else if reason == "BeginTime" || job.eligible.is_some_and(|eligible| eligible > now) {
            Some(Obstacle::Later)
        } else if job.priority == Some(0) {
            Some(Obstacle::Held)
        } else {
            None
        }
    }

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Obstacle::Held => "held",
            Obstacle::Dependent => "dependent",
            Obstacle::Later => "later",
        }
    }
}

/// A job that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id as squeue shows it.
    pub job: String,
    /// Whose it is.
    pub user: String,
    /// Its cluster.
    pub cluster: String,
    /// Nodes that it asks for.
    pub nodes: Option<u64>,
    /// CPUs that it asks for.
    pub cpus: Option<u64>,
    /// GPUs that it asks for.
    pub gpus: u64,
    /// Its quality of service.
    pub qos: String,
    /// Its partition, or several with commas.
    pub partition: String,
    /// How long ago it was submitted.
    pub waited: Duration,
    /// Since when it could have started; `None` if it cannot yet, or nobody says.
    pub eligible: Option<Duration>,
    /// Why it waits, as Slurm says.
    pub reason: Option<String>,
    /// Why no free node would change that.
    pub obstacle: Option<Obstacle>,
}

/// One job of each user, the one that has waited longest. The longest first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in views {
        let now = view.facts.now;
        let mut longest: BTreeMap<String, (Duration, &CurrentJob)> = BTreeMap::new();
        for job in view.waiting.iter().filter(|job| ask.admits(&job.partition)) {
            let Some(waited) = job.submitted.and_then(|submitted| now.since(submitted)) else {
                continue;
            };
            // Tasks of an array wait for one another by intent.
            if job.array.is_some() || waited < ask.waited {
                continue;
            }
            let user = match (&*job.user, job.uid) {
                ("", Some(uid)) => format!("uid_{}", uid.get()),
                (user, _) => user.to_owned(),
            };
            let known = longest.entry(user).or_insert((waited, job));
            let rank = |(waited, job): (Duration, &CurrentJob)| (waited, std::cmp::Reverse(job.id));
            if rank((waited, job)) > rank(*known) {
                *known = (waited, job);
            }
        }
        rows.extend(longest.into_iter().map(|(user, (waited, job))| Row {
            job: job.shown_id(),
            user,
            cluster: view.cluster(),
            nodes: job.node_count,
            cpus: job.cpus,
            gpus: job.gpus.total,
            qos: job.qos.to_string(),
            partition: job.partition.to_string(),
            waited,
            eligible: job.eligible.and_then(|eligible| now.since(eligible)),
            reason: job.reason.as_deref().map(str::to_owned),
            obstacle: Obstacle::of(job, now),
        }));
    }
    rows.sort_by(|a, b| {
        b.waited.cmp(&a.waited).then_with(|| (&a.cluster, &a.user).cmp(&(&b.cluster, &b.user)))
    });
    rows
}

fn days(time: Duration) -> f64 {
    time.as_secs_f64() / 86_400.0
}

fn make(views: &[View<'_>], ask: &Ask) -> Vec<Table> {
    let fields: &[Field<Row>] = &[
        (column("user", "User", Weight::Always), |row| Value::text(&row.user)),
        (column("job", "Job", Weight::Always), |row| Value::text(&row.job)),
        (column("cluster", "Cluster", Weight::Drop(4)), |row| Value::text(&row.cluster)),
        (column("nodes", "Nodes", Weight::Always), |row| Value::count(row.nodes)),
        (column("cpus", "CPUs", Weight::Drop(2)), |row| Value::count(row.cpus)),
        (column("gpus", "GPUs", Weight::Hide(2)), |row| Value::Count(row.gpus)),
        (column("qos", "QOS", Weight::Drop(3)), |row| Value::text(&row.qos)),
        (column("partition", "Partition", Weight::Drop(1)), |row| Value::text(&row.partition)),
        (column("waited_days", "Days", Weight::Always), |row| Value::Number(days(row.waited))),
        (column("eligible_days", "Eligible", Weight::Drop(1)), |row| {
            Value::number(row.eligible.map(days))
        }),
        (column("obstacle", "Obstacle", Weight::Hide(1)), |row| {
            row.obstacle.map_or(Value::Missing, |obstacle| Value::text(obstacle.name()))
        }),
        (column("reason", "Reason", Weight::Always), |row| {
            row.reason.as_ref().map_or(Value::Missing, Value::text)
        }),
    ];
    let rows = rows(views, ask);
    let mut table = Table::new("jobs", "Longest in the queue", fields, &rows);
    table.top = 10;
    table.notes.push(
        "One job of each user, without arrays. Days are those since it was submitted, Eligible those \
         since it could have started. A job that is held, dependent or for later would not start on \
         free nodes either."
            .to_owned(),
    );
    vec![table]
}
