//! `steward current`: who has what in the queue now.

use std::collections::BTreeMap;

use super::number::grouped;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program};
use crate::current::JobRow;

/// Jobs of a user in a partition, or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Queue {
    cluster: String,
    user: String,
    partition: String,
    running: Sum,
    waiting: Sum,
    other: u64,
}

/// Jobs, and what they hold or ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    jobs: u64,
    cpus: u64,
    gpus: u64,
    nodes: u64,
}

impl Sum {
    fn add(&mut self, job: &JobRow) {
        let times = |one: Option<u64>| one.unwrap_or(0).saturating_mul(job.tasks);
        self.jobs = self.jobs.saturating_add(job.tasks);
        self.cpus = self.cpus.saturating_add(times(job.cpus));
        self.gpus = self.gpus.saturating_add(times(Some(job.gpus)));
        self.nodes = self.nodes.saturating_add(times(job.nodes));
    }
}

impl Queue {
    fn add(&mut self, job: &JobRow) {
        match job.state.as_str() {
            "RUNNING" => self.running.add(job),
            "PENDING" => self.waiting.add(job),
            _ => self.other = self.other.saturating_add(job.tasks),
        }
    }
}

/// Sums by what `key` says, those who hold most CPUs first.
fn queues(jobs: &[JobRow], key: impl Fn(&JobRow) -> (String, String, String)) -> Vec<Queue> {
    let mut sums: BTreeMap<(String, String, String), Queue> = BTreeMap::new();
    for job in jobs {
        sums.entry(key(job)).or_default().add(job);
    }
    let named = |((cluster, user, partition), sum)| Queue { cluster, user, partition, ..sum };
    let mut queues: Vec<Queue> = sums.into_iter().map(named).collect();
    queues.sort_by_key(|one| std::cmp::Reverse((one.running.cpus, one.waiting.cpus)));
    queues
}

const FIGURES: [Field<Queue>; 9] = [
    (always("running_jobs", "Running"), |one| Cell::Count(one.running.jobs)),
    (always("running_cpus", "CPUs"), |one| Cell::Count(one.running.cpus)),
    (hide(3, "running_gpus", "GPUs"), |one| Cell::Count(one.running.gpus)),
    (drop(4, "running_nodes", "Nodes"), |one| Cell::Count(one.running.nodes)),
    (always("waiting_jobs", "Waiting"), |one| Cell::Count(one.waiting.jobs)),
    (drop(2, "waiting_cpus", "for CPUs"), |one| Cell::Count(one.waiting.cpus)),
    (hide(3, "waiting_gpus", "for GPUs"), |one| Cell::Count(one.waiting.gpus)),
    (drop(5, "waiting_nodes", "for nodes"), |one| Cell::Count(one.waiting.nodes)),
    (hide(6, "other_jobs", "Other"), |one| Cell::Count(one.other)),
];

/// What a document of the queue shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Whether people see the jobs one by one.
    pub jobs: bool,
    /// Whose command it is; a sentence tells what is his.
    pub own: Option<&'a str>,
}

/// The queue as a document.
#[must_use]
pub fn document(jobs: &[JobRow], shown: &Shown<'_>) -> Document {
    let several =
        jobs.windows(2).any(|two| matches!(two, [one, next] if one.cluster != next.cluster));
    let cluster = if several { always("cluster", "Cluster") } else { program("cluster") };
    let by_user =
        queues(jobs, |job| (job.cluster.clone(), job.user.clone(), job.partition.clone()));
    let by_partition =
        queues(jobs, |job| (job.cluster.clone(), String::new(), job.partition.clone()));
    let mut users: Vec<Field<Queue>> = vec![
        (always("user", "User"), |one| Cell::text(&one.user)),
        (always("partition", "Partition"), |one| Cell::text(&one.partition)),
        (cluster.clone(), |one| Cell::text(&one.cluster)),
    ];
    users.extend(FIGURES);
    let mut partitions: Vec<Field<Queue>> = vec![
        (always("partition", "Partition"), |one| Cell::text(&one.partition)),
        (cluster, |one| Cell::text(&one.cluster)),
    ];
    partitions.extend(FIGURES);
    let mut users = Sheet::new("users", "By user and partition", &users, &by_user);
    users.top = 40;
    let mut partitions = Sheet::new("partitions", "By partition", &partitions, &by_partition);
    partitions.top = 40;
    let mut list = Sheet::new("jobs", "Jobs", JOBS, jobs);
    (list.people, list.top) = (shown.jobs, 0);
    Document {
        title: "The queue".to_owned(),
        headline: headline(jobs, shown.own),
        facts: Vec::new(),
        sheets: vec![users, partitions, list],
    }
}

const JOBS: &[Field<JobRow>] = &[
    (always("job_id", "Job"), |job| Cell::text(&job.job_id)),
    (drop(1, "user", "User"), |job| Cell::text(&job.user)),
    (drop(2, "partition", "Partition"), |job| Cell::text(&job.partition)),
    (drop(3, "job_name", "Name"), |job| Cell::text(&job.job_name)),
    (always("state", "State"), |job| Cell::text(&job.state)),
    (drop(2, "cpus", "CPUs"), |job| count(job.cpus)),
    (hide(4, "gpus", "GPUs"), |job| Cell::Count(job.gpus)),
    (drop(4, "memory_gib", "Mem GiB"), |job| gib(job.memory_bytes)),
    (drop(5, "nodes", "Nodes"), |job| count(job.nodes)),
    (drop(3, "reason", "Where, or why not"), |job| match &job.reason {
        Some(reason) if job.node_list.is_empty() => Cell::text(format!("({reason})")),
        _ => Cell::text(&job.node_list),
    }),
    (program("cluster"), |job| Cell::text(&job.cluster)),
    (program("job_id_raw"), |job| Cell::Count(job.job_id_raw.into())),
    (program("tasks"), |job| Cell::Count(job.tasks)),
    (program("account"), |job| Cell::text(&job.account)),
    (program("qos"), |job| Cell::text(&job.qos)),
    (program("node_list"), |job| Cell::text(&job.node_list)),
    (program("submit_time"), |job| time(job.submit_time)),
    (program("start_time"), |job| time(job.start_time)),
    (program("end_time"), |job| time(job.end_time)),
];

fn count(number: Option<u64>) -> Cell {
    number.map_or(Cell::Missing, Cell::Count)
}

fn time(second: Option<i64>) -> Cell {
    count(second.and_then(|second| u64::try_from(second).ok()))
}

/// Bytes in GiB.
pub(super) fn gib(bytes: Option<u64>) -> Cell {
    Cell::number(bytes.map(|bytes| steward_common::unit::Bytes::new(bytes).gib()))
}

fn headline(jobs: &[JobRow], own: Option<&str>) -> Vec<String> {
    if jobs.is_empty() {
        return vec!["No jobs.".to_owned()];
    }
    let sum = |jobs: &mut dyn Iterator<Item = &JobRow>| {
        let mut queue = Queue::default();
        jobs.for_each(|job| queue.add(job));
        queue
    };
    let figure = |number: u64| grouped(&number.to_string());
    let words = |queue: &Queue| {
        let gpus = match queue.running.gpus {
            0 => String::new(),
            gpus => format!(" and {} GPUs", figure(gpus)),
        };
        format!(
            "{} running on {} CPUs{gpus}, {} waiting",
            figure(queue.running.jobs),
            figure(queue.running.cpus),
            figure(queue.waiting.jobs)
        )
    };
    let mut lines = vec![format!("Jobs: {}.", words(&sum(&mut jobs.iter())))];
    if let Some(own) = own {
        let mut his = jobs.iter().filter(|job| job.user == own).peekable();
        if his.peek().is_some() {
            lines.push(format!("Yours: {}.", words(&sum(&mut his))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::format::{Format, write};
    use crate::output::screen::Screen;

    fn job(user: &str, partition: &str, state: &str, tasks: u64, cpus: u64) -> JobRow {
        JobRow {
            cluster: "c1".to_owned(),
            job_id: "7".to_owned(),
            user: user.to_owned(),
            partition: partition.to_owned(),
            state: state.to_owned(),
            tasks,
            cpus: Some(cpus),
            nodes: Some(1),
            ..JobRow::default()
        }
    }

    fn jobs() -> Vec<JobRow> {
        vec![
            job("alice", "cpu", "RUNNING", 1, 4),
            job("alice", "cpu", "PENDING", 1000, 2),
            job("bob", "gpu", "RUNNING", 1, 8),
            job("bob", "gpu", "COMPLETED", 1, 8),
        ]
    }

    #[test]
    fn tasks_of_an_array_count_each_and_totals_stand_on_top() {
        let document = document(&jobs(), &Shown { jobs: false, own: Some("alice") });
        let text = write(&document, Format::Table, Screen::file(), None);
        assert!(text.starts_with("Jobs: 2 running on 12 CPUs, 1,000 waiting.\n"), "{text}");
        assert!(text.contains("Yours: 1 running on 4 CPUs, 1,000 waiting."), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&write(&document, Format::Json, Screen::file(), None)).unwrap();
        assert_eq!(json["users"][0]["user"], "bob", "{json}");
        assert_eq!(json["users"][0]["other_jobs"], 1);
        assert_eq!(json["users"][1]["waiting_cpus"], 2000);
        assert_eq!(json["partitions"].as_array().unwrap().len(), 2);
        assert_eq!(json["jobs"].as_array().unwrap().len(), 4);
        assert!(!text.contains("COMPLETED"), "people see sums unless they ask for jobs: {text}");
    }

    #[test]
    fn an_empty_queue_is_a_sentence() {
        let text = write(&document(&[], &Shown::default()), Format::Table, Screen::file(), None);
        assert_eq!(text, "No jobs.\n");
    }
}
