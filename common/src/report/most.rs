//! The largest job of each user.

use crate::intern::Name;
use crate::rule::Job;

use super::held::jobs;
use super::table::{Field, column};
use super::{Ask, Table, Value, View, Weight};

/// A user's largest job.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id as people know it.
    pub job: String,
    /// Whose it is.
    pub user: String,
    /// Its cluster.
    pub cluster: String,
    /// CPUs.
    pub cpus: Option<u32>,
    /// GPUs.
    pub gpus: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
    /// Its state.
    pub state: String,
    /// Its partition.
    pub partition: String,
    /// How long it has held them: all of its time, within the window or not.
    pub hours: f64,
    /// Used of held; `None` if that is not known.
    pub efficiency: Option<f64>,
}

/// By what jobs are compared.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    /// How large a job is; one of size 0 does not count.
    pub(super) size: fn(&Job) -> u32,
    /// Used of held.
    pub(super) efficiency: fn(&Job, &Ask) -> Option<f64>,
}

/// One job of each user: the largest, of several the one that ran longest. The largest first.
pub(super) fn rows(views: &[View<'_>], ask: &Ask, measure: Measure) -> Vec<Row> {
    let mut largest: Vec<(&View<'_>, &Job)> = Vec::new();
    for view in views {
        let mut of_user: Option<(Name, &Job)> = None;
        // Jobs of a user stand together.
        for (job, _) in jobs(view.facts, ask).filter(|(job, _)| (measure.size)(job) > 0) {
            let rank = |job: &Job| ((measure.size)(job), job.elapsed, std::cmp::Reverse(job.key));
            match of_user {
                Some((user, known)) if user == job.user => {
                    if rank(job) > rank(known) {
                        of_user = Some((user, job));
                    }
                }
                other => {
                    largest.extend(other.map(|(_, job)| (view, job)));
                    of_user = Some((job.user, job));
                }
            }
        }
        largest.extend(of_user.map(|(_, job)| (view, job)));
    }
    largest.sort_by_key(|(view, job)| {
        let size = std::cmp::Reverse(((measure.size)(job), job.elapsed));
        (size, view.cluster(), view.text(job.user))
    });
    let row = |(view, job): (&View<'_>, &Job)| Row {
        job: job.shown_id(),
        user: view.text(job.user),
        cluster: view.cluster(),
        cpus: job.cpus,
        gpus: job.gpus,
        nodes: job.node_count,
        state: job.state.name().to_owned(),
        partition: view.text(job.partition),
        hours: job.hours(),
        efficiency: (measure.efficiency)(job, ask),
    };
    largest.into_iter().map(row).collect()
}

/// The table; `efficiency` is the key and the head of its last column.
pub(super) fn table(
    title: &'static str,
    efficiency: (&'static str, &'static str),
    gpus_first: bool,
    rows: &[Row],
) -> Table {
    let cpus: Field<Row> = (column("cpus", "CPUs", Weight::Always), |row| Value::count(row.cpus));
    let gpus: Field<Row> = (column("gpus", "GPUs", Weight::Always), |row| Value::count(row.gpus));
    let (size, other) = if gpus_first { (gpus, cpus) } else { (cpus, gpus) };
    let (key, head) = efficiency;
    let fields: &[Field<Row>] = &[
        (column("user", "User", Weight::Always), |row| Value::text(&row.user)),
        (column("job", "Job", Weight::Always), |row| Value::text(&row.job)),
        (column("cluster", "Cluster", Weight::Drop(2)), |row| Value::text(&row.cluster)),
        size,
        (column("nodes", "Nodes", Weight::Drop(1)), |row| Value::count(row.nodes)),
        other,
        (column("state", "State", Weight::Drop(3)), |row| Value::text(&row.state)),
        (column("partition", "Partition", Weight::Drop(1)), |row| Value::text(&row.partition)),
        (column("hours", "Hours", Weight::Always), |row| Value::Number(row.hours)),
        (column(key, head, Weight::Always), |row| Value::share(row.efficiency)),
    ];
    let mut table = Table::new("jobs", title, fields, rows);
    table.top = 10;
    table.notes.push(
        "One job of each user. Hours are all that it ran; - is an efficiency that nobody measured."
            .to_owned(),
    );
    table
}
