//! The archive's runs as the jobs that rules and reports are about.

use arrow_array::RecordBatch;
use steward_common::id::JobId;
use steward_common::intern::{Name, Names};
use steward_common::job::Source;
use steward_common::limit::Limit;
use steward_common::rule::{Figure, Gathering, Job, JobKey, NodeUsage, Origin, Share, Usage};
use steward_common::slurm::duration::TimeLimit;
use steward_common::slurm::state::JobState;
use steward_common::unit::Bytes;
use steward_common::window::Window;

use super::cells::{real, texts, times, whole};
use super::manifest::Manifest;
use super::measured;
use super::processed::NODE_USAGE;
use super::rows::interned;
use super::{Archive, ArchiveError, Day, Part};

/// Names that many runs share.
const NAMES: &[&str] = &[
    "account",
    "cpu_source",
    "job_name",
    "memory_source",
    "node_list",
    "partition",
    "qos",
    "state",
    "time_limit_kind",
    "user",
];

/// What else rules look at.
const FIGURES: &[&str] = &[
    "admin_comment",
    "agent_coverage",
    "alloc_cpus",
    "alloc_gpus",
    "alloc_mem_mb",
    "alloc_nodes",
    "array_job_id",
    "array_task_id",
    "billing",
    "collected_at",
    "elapsed_seconds",
    "end_time",
    "job_id_raw",
    "max_rss_mb",
    NODE_USAGE,
    "start_time",
    "submit_time",
    "time_limit_seconds",
    "total_cpu_seconds",
];

/// The columns that rules look at.
#[must_use]
pub fn columns() -> Vec<&'static str> {
    NAMES.iter().chain(FIGURES).copied().collect()
}

/// Someone who takes jobs with what the administrator's comment says of them, which may be empty.
pub type Take<'a> = &'a mut dyn FnMut(Job, &str, &mut Gathering);

impl Archive {
    /// Shows `take` the runs of a cluster that ended and held something in the window. Whether all of
    /// them were shown: if not, a writer was quicker, and what was shown does not count.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn ended(
        &self,
        manifest: &Manifest,
        cluster: &str,
        window: Window,
        gathering: &mut Gathering,
        take: Take<'_>,
    ) -> Result<bool, ArchiveError> {
        let Some(entry) = manifest.clusters.get(cluster) else { return Ok(true) };
        let columns = columns();
        let files = || entry.days.range(Day::of(window.from())..);
        let rows: u64 =
            files().filter(|(day, _)| day.start() < window.to()).map(|(_, file)| file.rows).sum();
        gathering.reserve(usize::try_from(rows).unwrap_or(0));
        for (day, file) in files() {
            let Some(table) = self.open(cluster, Part::Day(*day), *file)? else { return Ok(false) };
            // A run that ended after the window is of interest if it began before its end.
            let later = day.start() >= window.to();
            if later && table.least_time("start_time").is_some_and(|least| least >= window.to()) {
                continue;
            }
            for batch in table.coded(&columns, NAMES)? {
                add(&batch?, window, Course::Ended, gathering, take);
            }
        }
        Ok(true)
    }

    /// Shows `take` the runs of a cluster that had not ended when they were last collected, and held
    /// something in the window by then. Whether all of them were shown.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn unended(
        &self,
        manifest: &Manifest,
        cluster: &str,
        window: Window,
        gathering: &mut Gathering,
        take: Take<'_>,
    ) -> Result<bool, ArchiveError> {
        let Some(file) = manifest.clusters.get(cluster).and_then(|entry| entry.open) else {
            return Ok(true);
        };
        let Some(table) = self.open(cluster, Part::Open, file)? else { return Ok(false) };
        let columns: Vec<&str> = NAMES.iter().chain(FIGURES).copied().collect();
        for batch in table.coded(&columns, NAMES)? {
            add(&batch?, window, Course::Open, gathering, take);
        }
        Ok(true)
    }
}

/// Whether runs have ended.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    Ended,
    Open,
}

/// Each distinct text of a column is looked at once, however many rows have it.
fn of_each<T: Clone, R: Fn(&str) -> T>(
    names: &Names,
    column: &[Name],
    read: R,
) -> impl Fn(usize) -> Option<T> + use<T, R> {
    let mut known: Vec<Option<T>> = Vec::new();
    for name in column {
        let place = name.index();
        if place >= known.len() {
            known.resize(place + 1, None);
        }
        if let Some(slot) = known.get_mut(place).filter(|slot| slot.is_none()) {
            *slot = Some(read(names.text(*name)));
        }
    }
    let places: Vec<usize> = column.iter().map(|name| name.index()).collect();
    move |row| known.get(*places.get(row)?)?.clone()
}

fn add(
    batch: &RecordBatch,
    window: Window,
    course: Course,
    gathering: &mut Gathering,
    take: Take<'_>,
) {
    let names = gathering.names();
    let nothing = names.intern("");
    let mut text = |column: &str| interned(batch, column, names, nothing);
    let (user, account, partition) = (text("user"), text("account"), text("partition"));
    let (qos, name, nodes) = (text("qos"), text("job_name"), text("node_list"));
    let (states, kinds) = (text("state"), text("time_limit_kind"));
    let (cpu_sources, memory_sources) = (text("cpu_source"), text("memory_source"));
    let state = of_each(names, &states, |text| JobState::from(text));
    let kind = of_each(names, &kinds, str::to_owned);
    let origin =
        |sources: &[Name]| of_each(names, sources, |text| Source::of_name(text).map(Origin::from));
    let (cpu_origin, memory_origin) = (origin(&cpu_sources), origin(&memory_sources));
    let mut comments = texts(batch, "admin_comment");
    let small = |column: &str| {
        whole(batch, column).map(|value| value.and_then(|value| u32::try_from(value).ok()))
    };
    let (mut id, mut elapsed) = (small("job_id_raw"), small("elapsed_seconds"));
    let (mut cpus, mut gpus, mut count) =
        (small("alloc_cpus"), small("alloc_gpus"), small("alloc_nodes"));
    let (mut array, mut task) = (small("array_job_id"), small("array_task_id"));
    let (mut limit, mut billing) = (whole(batch, "time_limit_seconds"), whole(batch, "billing"));
    let (mut submit, mut start) = (times(batch, "submit_time"), times(batch, "start_time"));
    let (mut end, mut collected) = (times(batch, "end_time"), times(batch, "collected_at"));
    let (mut held_memory, mut peak) = (real(batch, "alloc_mem_mb"), real(batch, "max_rss_mb"));
    let (mut cpu, mut coverage) = (real(batch, "total_cpu_seconds"), real(batch, "agent_coverage"));
    for row in 0..batch.num_rows() {
        let of = |list: &[Name]| list.get(row).copied().unwrap_or(nothing);
        let id = id.next().flatten().and_then(JobId::new);
        let submit = submit.next().flatten();
        let (start, end) = (start.next().flatten(), end.next().flatten());
        let coverage = coverage.next().flatten().and_then(Share::new);
        let own_limit = limit.next().flatten().and_then(|limit| u64::try_from(limit).ok());
        let used = Used {
            cpu: cpu.next().flatten().zip(cpu_origin(row).flatten()),
            peak: peak.next().flatten().and_then(mebibytes).zip(memory_origin(row).flatten()),
            coverage,
        };
        let task = task.next().flatten();
        let array = array.next().flatten().map(|job| (job, task));
        let (elapsed, cpus) = (elapsed.next().flatten(), cpus.next().flatten());
        let (node_count, gpus) = (count.next().flatten(), gpus.next().flatten());
        let memory = held_memory.next().flatten().and_then(mebibytes);
        let billing = billing.next().flatten().and_then(|weight| u64::try_from(weight).ok());
        let comment = comments.next().flatten().unwrap_or_default();
        let collected = collected.next().flatten();
        // Every column has moved on by one row: now a row may be passed over.
        let (end, elapsed, seen) = match course {
            Course::Ended => (end, elapsed, end),
            Course::Open => {
                let known = || collected?.since(start?).and_then(small_time);
                (None, elapsed.or_else(known), collected)
            }
        };
        let held = seen.is_some_and(|seen| seen >= window.from())
            && start.is_some_and(|start| start < window.to());
        let (Some(id), Some(submit), true) = (id, submit, held) else { continue };
        let mut job = Job {
            key: JobKey { id, submit },
            array,
            user: of(&user),
            account: of(&account),
            partition: of(&partition),
            qos: of(&qos),
            name: of(&name),
            nodes: of(&nodes),
            licences: None,
            state: state(row).unwrap_or(JobState::Other("".into())),
            start,
            end,
            elapsed,
            time_limit: time_limit(kind(row).as_deref(), own_limit),
            cpus,
            node_count,
            gpus,
            memory,
            billing,
            usage: used.usage(),
        };
        if let Some(coverage) = coverage {
            by_node(batch, row, coverage, &mut job, gathering.names());
        }
        take(job, comment, gathering);
    }
}

fn small_time(time: std::time::Duration) -> Option<u32> {
    u32::try_from(time.as_secs()).ok()
}

/// What the archive says of a run's use.
struct Used {
    cpu: Option<(f64, Origin)>,
    peak: Option<(Bytes, Origin)>,
    coverage: Option<Share>,
}

impl Used {
    fn usage(self) -> Usage {
        // Slurm's accounting is about the whole run.
        let share = |origin| match origin {
            Origin::Agent => self.coverage.unwrap_or(Share::NONE),
            _ => Share::ALL,
        };
        Usage {
            cpu_seconds: self.cpu.map(|(value, origin)| Figure {
                value,
                origin,
                coverage: share(origin),
            }),
            peak_memory: self.peak.map(|(value, origin)| Figure {
                value,
                origin,
                coverage: share(origin),
            }),
            ..Usage::default()
        }
    }
}

/// What the agents measured on each node.
fn by_node(batch: &RecordBatch, row: usize, coverage: Share, job: &mut Job, names: &mut Names) {
    let nodes = measured::nodes(batch, row);
    let nodes: Box<[NodeUsage]> = nodes
        .into_iter()
        .map(|node| NodeUsage {
            node: names.intern(&node.node),
            cpus: None,
            cpu_seconds: node.cpu_seconds,
            peak_memory: node.peak_memory_bytes.map(Bytes::new),
            memory: None,
        })
        .collect();
    if !nodes.is_empty() {
        job.usage.nodes = Some(Box::new(Figure { value: nodes, origin: Origin::Agent, coverage }));
    }
}

fn time_limit(kind: Option<&str>, seconds: Option<u64>) -> Option<TimeLimit> {
    match kind? {
        "own" => Some(TimeLimit::Own(Limit::At(std::time::Duration::from_secs(seconds?)))),
        "unlimited" => Some(TimeLimit::Own(Limit::Unlimited)),
        "partition" => Some(TimeLimit::OfPartition),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn mebibytes(number: f64) -> Option<Bytes> {
    (0.0..8e12).contains(&number).then(|| Bytes::new((number * 1_048_576.0).round() as u64))
}
