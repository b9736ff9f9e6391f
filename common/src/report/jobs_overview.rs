//! Report `jobs-overview`: how many jobs each user had, and how they ended.

use std::collections::{BTreeSet, HashMap};

use crate::intern::Name;
use crate::slurm::state::JobState;

use super::held::jobs;
use super::table::{Field, column};
use super::{Ask, Needs, Report, Table, Value, View, Weight};

/// The report.
pub const REPORT: Report = Report {
    about: "users with the most jobs, and how these ended",
    needs: Needs::Accounting,
    make,
};

/// The jobs of a user on a cluster that held something in the window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Who.
    pub user: String,
    /// Where.
    pub cluster: String,
    /// All of them: the sum of those with and without GPUs, and the sum over all states.
    pub jobs: u64,
    /// Those with GPUs.
    pub gpu_jobs: u64,
    /// Completed.
    pub completed: u64,
    /// Cancelled, by whomever.
    pub cancelled: u64,
    /// Failed.
    pub failed: u64,
    /// Running.
    pub running: u64,
    /// Out of memory.
    pub out_of_memory: u64,
    /// At their time limit.
    pub timeout: u64,
    /// In any other state.
    pub other: u64,
    /// CPU-hours held in the window.
    pub cpu_hours: f64,
    /// GPU-hours held in the window.
    pub gpu_hours: f64,
    /// The partitions, in the order of their names.
    pub partitions: BTreeSet<String>,
}

/// The rows, most jobs first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in views {
        let mut users: HashMap<Name, Row> = HashMap::new();
        for (job, held) in jobs(view.facts, ask) {
            let row = users.entry(job.user).or_default();
            row.jobs += 1;
            row.gpu_jobs += u64::from(job.gpu_count() > 0);
            *by_state(row, &job.state) += 1;
            row.cpu_hours += held.cpu_hours;
            row.gpu_hours += held.gpu_hours;
            let partition = view.facts.names.text(job.partition);
            if !row.partitions.contains(partition) {
                row.partitions.insert(partition.to_owned());
            }
        }
        rows.extend(users.into_iter().map(|(user, row)| Row {
            user: view.text(user),
            cluster: view.cluster(),
            ..row
        }));
    }
    rows.sort_by(|a, b| {
        (b.jobs.cmp(&a.jobs))
            .then_with(|| b.cpu_hours.total_cmp(&a.cpu_hours))
            .then_with(|| (&a.user, &a.cluster).cmp(&(&b.user, &b.cluster)))
    });
    rows
}

fn by_state<'a>(row: &'a mut Row, state: &JobState) -> &'a mut u64 {
    match state {
        JobState::Completed => &mut row.completed,
        JobState::Cancelled { .. } => &mut row.cancelled,
        JobState::Failed => &mut row.failed,
        JobState::OutOfMemory => &mut row.out_of_memory,
        JobState::Timeout => &mut row.timeout,
        state if state.is_running() => &mut row.running,
        _ => &mut row.other,
    }
}

fn make(views: &[View<'_>], ask: &Ask) -> Vec<Table> {
    let fields: &[Field<Row>] = &[
        (column("user", "User", Weight::Always), |row| Value::text(&row.user)),
        (column("cluster", "Cluster", Weight::Drop(5)), |row| Value::text(&row.cluster)),
        (column("jobs", "Jobs", Weight::Always), |row| Value::Count(row.jobs)),
        (column("cpu_jobs", "CPU", Weight::Drop(1)), |row| Value::Count(row.jobs - row.gpu_jobs)),
        (column("gpu_jobs", "GPU", Weight::Drop(1)), |row| Value::Count(row.gpu_jobs)),
        (column("completed", "Compl", Weight::Always), |row| Value::Count(row.completed)),
        (column("cancelled", "Canc", Weight::Always), |row| Value::Count(row.cancelled)),
        (column("failed", "Fail", Weight::Always), |row| Value::Count(row.failed)),
        (column("running", "Run", Weight::Always), |row| Value::Count(row.running)),
        (column("out_of_memory", "OOM", Weight::Always), |row| Value::Count(row.out_of_memory)),
        (column("timeout", "Time", Weight::Always), |row| Value::Count(row.timeout)),
        (column("other", "Other", Weight::Hide(2)), |row| Value::Count(row.other)),
        (column("cpu_hours", "CPU hours", Weight::Always), |row| Value::Number(row.cpu_hours)),
        (column("gpu_hours", "GPU hours", Weight::Hide(1)), |row| Value::Number(row.gpu_hours)),
        (column("partitions", "Partitions", Weight::Drop(4)), |row| {
            let names: Vec<&str> = row.partitions.iter().map(String::as_str).collect();
            Value::text(names.join(","))
        }),
    ];
    let rows = rows(views, ask);
    let mut table = Table::new("users", "Users by jobs", fields, &rows);
    table.top = 10;
    table.notes.push(
        "Jobs that held something in the window; hours are those held in it: a job over its border \
         is divided."
            .to_owned(),
    );
    vec![table]
}
