//! The archive's runs, one by one, for those who ask for a user's jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_array::RecordBatch;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::cells::{real, texts, times, whole};
use super::manifest::{Entry, Manifest};
use super::read::Wanted;
use super::{Archive, ArchiveError, Day, Part};
use crate::jobs::{Answer, JobRun, Question, Whose, is_like};

/// What is told of a run.
const COLUMNS: &[&str] = &[
    "account",
    "alloc_cpus",
    "alloc_gpus",
    "alloc_mem_mb",
    "cluster",
    "collected_at",
    "elapsed_seconds",
    "end_time",
    "gpu_used_seconds",
    "is_complete",
    "job_id",
    "job_id_raw",
    "job_name",
    "max_rss_mb",
    "node_list",
    "partition",
    "req_mem_mb",
    "start_time",
    "state",
    "submit_time",
    "total_cpu_seconds",
    "user",
    "wait_seconds",
];

impl Archive {
    /// The runs that are asked for. Somebody's own jobs are nobody's here: whoever asks for them
    /// must have said whose they are.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn jobs(&self, question: &Question) -> Result<Answer, ArchiveError> {
        let Some(window) = question.window() else { return Ok(Answer::default()) };
        self.consistently(|manifest| self.newest(manifest, question, window))
    }

    /// The same of what this manifest names; `None` if a writer was quicker.
    fn newest(
        &self,
        manifest: &Manifest,
        question: &Question,
        window: Window,
    ) -> Result<Option<Answer>, ArchiveError> {
        let mut newest = Newest::new(question.limit);
        for (before, name, part, file) in newest_first(manifest, question, window) {
            if newest.needs_nothing_before(before) {
                newest.cut = true;
                break;
            }
            let Some(table) = self.open(name, part, file)? else { return Ok(None) };
            let wanted = wanted(question);
            for batch in table.matching(COLUMNS, wanted, "submit_time", window.to())? {
                add(&batch?, window, &mut newest);
            }
        }
        Ok(Some(newest.answer()))
    }
}

/// The files that may hold runs of the window, each with the moment before which all of its runs
/// were submitted, and its cluster.
fn newest_first<'m>(
    manifest: &'m Manifest,
    question: &Question,
    window: Window,
) -> Vec<(Timestamp, &'m str, Part, Entry)> {
    let mut files = Vec::new();
    for (name, entry) in &manifest.clusters {
        if !question.clusters.is_empty() && !question.clusters.contains(name) {
            continue;
        }
        let days = entry.days.range(Day::of(window.from())..);
        files.extend(days.map(|(day, file)| (day.end(), name.as_str(), Part::Day(*day), *file)));
        let open =
            entry.open.map(|file| (Timestamp::new(i64::MAX), name.as_str(), Part::Open, file));
        files.extend(open);
    }
    if let Some(number) = question.job_id.as_ref().and_then(|id| id.parse::<i64>().ok()) {
        // A job that is not there would cost reading, or fetching, every file.
        let may_hold = |(least, most)| (i64::from(least)..=i64::from(most)).contains(&number);
        files.retain(|(.., file)| file.jobs.is_none_or(may_hold));
    }
    files.sort_by_key(|(before, ..)| Reverse(*before));
    files
}

/// What the texts of a run must be like. The user comes first: few are left after that.
fn wanted(question: &Question) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut one_of = |column: &'static str, names: &[String]| {
        let names = names.to_vec();
        let test = move |text: &str| names.iter().any(|name| name == text);
        wanted.push(Wanted::Text(column, Box::new(test)));
    };
    match &question.whose {
        Whose::All => {}
        Whose::Own => one_of("user", &[]),
        Whose::Of(users) => one_of("user", users),
    }
    for (column, names) in [
        ("account", &question.accounts),
        ("partition", &question.partitions),
        ("state", &question.states),
    ] {
        if !names.is_empty() {
            one_of(column, names);
        }
    }
    if let Some(pattern) = question.name.clone() {
        wanted.push(Wanted::Text("job_name", Box::new(move |text| is_like(text, &pattern))));
    }
    if let Some(id) = question.job_id.clone() {
        wanted.push(match id.parse() {
            Ok(number) => Wanted::Whole("job_id_raw", number),
            Err(_) => Wanted::Text("job_id", Box::new(move |text| text == id)),
        });
    }
    wanted
}

/// The newest runs, so many at most.
struct Newest {
    limit: usize,
    /// The oldest on top.
    runs: BinaryHeap<Reverse<ByAge>>,
    cut: bool,
}

struct ByAge(JobRun);

impl PartialEq for ByAge {
    fn eq(&self, other: &Self) -> bool {
        self.0.age() == other.0.age()
    }
}

impl Eq for ByAge {}

impl PartialOrd for ByAge {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByAge {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.age().cmp(&other.0.age())
    }
}

impl Newest {
    fn new(limit: usize) -> Newest {
        let limit = if limit == 0 { usize::MAX } else { limit };
        Newest { limit, runs: BinaryHeap::new(), cut: false }
    }

    fn push(&mut self, run: JobRun) {
        self.runs.push(Reverse(ByAge(run)));
        if self.runs.len() > self.limit {
            self.runs.pop();
            self.cut = true;
        }
    }

    /// Whether there are enough runs that were submitted at this moment or later.
    fn needs_nothing_before(&self, moment: Timestamp) -> bool {
        let oldest = self.runs.peek().map(|Reverse(ByAge(run))| run.submit_time);
        self.runs.len() >= self.limit && oldest.is_some_and(|oldest| oldest >= moment.get())
    }

    fn answer(self) -> Answer {
        let runs = self.runs.into_sorted_vec();
        Answer { runs: runs.into_iter().map(|Reverse(ByAge(run))| run).collect(), cut: self.cut }
    }
}

/// Adds the runs of a batch that waited or ran in the window.
fn add(batch: &RecordBatch, window: Window, newest: &mut Newest) {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    let text = |column: &str| texts(batch, column).map(|text| text.unwrap_or_default().to_owned());
    let small = |column: &str| {
        whole(batch, column).map(|value| value.and_then(|value| u32::try_from(value).ok()))
    };
    let seconds = |column: &str| times(batch, column).map(|moment| moment.map(Timestamp::get));
    let complete = batch.column_by_name("is_complete").and_then(|column| column.as_boolean_opt());
    let (mut cluster, mut job_id, mut user) = (text("cluster"), text("job_id"), text("user"));
    let (mut name, mut account) = (text("job_name"), text("account"));
    let (mut partition, mut state) = (text("partition"), text("state"));
    let mut nodes = text("node_list");
    let (mut raw, mut wait) = (small("job_id_raw"), small("wait_seconds"));
    let (mut elapsed, mut cpus) = (small("elapsed_seconds"), small("alloc_cpus"));
    let mut gpus = small("alloc_gpus");
    let (mut submit, mut start) = (seconds("submit_time"), seconds("start_time"));
    let (mut end, mut collected) = (seconds("end_time"), seconds("collected_at"));
    let (mut cpu, mut gpu) = (real(batch, "total_cpu_seconds"), real(batch, "gpu_used_seconds"));
    let (mut asked, mut peak) = (real(batch, "req_mem_mb"), real(batch, "max_rss_mb"));
    let mut memory = real(batch, "alloc_mem_mb");
    for row in 0..batch.num_rows() {
        let ended = complete.is_some_and(|column| column.is_valid(row) && column.value(row));
        let run = JobRun {
            cluster: cluster.next().unwrap_or_default(),
            job_id: job_id.next().unwrap_or_default(),
            job_id_raw: raw.next().flatten(),
            user: user.next().unwrap_or_default(),
            job_name: name.next().unwrap_or_default(),
            account: account.next().unwrap_or_default(),
            partition: partition.next().unwrap_or_default(),
            state: state.next().unwrap_or_default(),
            submit_time: submit.next().flatten().unwrap_or(0),
            start_time: start.next().flatten(),
            end_time: end.next().flatten().filter(|_| ended),
            wait_seconds: wait.next().flatten(),
            elapsed_seconds: elapsed.next().flatten(),
            alloc_cpus: cpus.next().flatten(),
            alloc_gpus: gpus.next().flatten(),
            total_cpu_seconds: cpu.next().flatten(),
            gpu_used_seconds: gpu.next().flatten(),
            req_mem_mb: asked.next().flatten(),
            alloc_mem_mb: memory.next().flatten(),
            max_rss_mb: peak.next().flatten(),
            node_list: nodes.next().unwrap_or_default(),
            collected_at: collected.next().flatten(),
        };
        let over = run.end_time.is_some_and(|end| end < window.from().get());
        if run.submit_time < window.to().get() && !over {
            newest.push(run);
        }
    }
}
