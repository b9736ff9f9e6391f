//! What agents say of jobs, as Prometheus has it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::intern::Names;
use steward_common::metric::{self, JOB_LABEL};
use steward_common::rule::usage::NodeThreads;
use steward_common::rule::{Figure, Job, NodeUsage, Origin, Share, Work};
use steward_common::slurm::hostlist;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;
use steward_common::window::Window;

use super::Troubles;
use super::question::{Oracle, Series, figure, label, least, most, node, together};
use crate::source::promql;

/// How far the clocks of nodes and controller may be apart, in seconds.
const APART: f64 = 5.0;

/// An agent that has not scanned for so long says nothing about this moment.
const FRESH: Duration = Duration::from_secs(180);

/// An agent that has not looked at a running job for so long, in seconds, is dead or hangs.
const LAG: f64 = 60.0;

/// Nodes of a job whose agents give cause for doubt.
#[derive(Debug, Default)]
pub struct Odd {
    /// They spoke of another time than that of the job.
    pub elsewhen: Vec<String>,
    /// They fell silent while it runs.
    pub silent: Vec<String>,
}

/// What an agent said of a job.
#[derive(Debug, Clone, Default)]
struct Seen {
    figures: BTreeMap<&'static str, f64>,
    cores: BTreeMap<String, f64>,
}

impl Seen {
    fn get(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure).copied()
    }

    /// The one run that it is about: from when to when it was watched.
    fn run(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.get("from")?, self.get("from_last")?);
        let until = self.get("until")?;
        (last - first < 1.0 && until >= first).then_some((first, until))
    }

    /// The most memory that could not be dropped, never above the kernel's mark.
    fn memory(&self) -> Option<Bytes> {
        let held = self.get("anon")? + self.get("shmem").unwrap_or(0.0);
        let held = self.get("peak").map_or(held, |peak| held.min(peak));
        whole(held).map(Bytes::new)
    }

    /// Bytes read and written.
    fn moved(&self, read: &str, write: &str) -> Option<f64> {
        Some(self.get(read)? + self.get(write)?)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn whole(value: f64) -> Option<u64> {
    (0.0..9e18).contains(&value).then_some(value.round() as u64)
}

fn small(value: f64) -> Option<u32> {
    whole(value).and_then(|value| u32::try_from(value).ok())
}

/// What agents said in a window, by job and node.
#[derive(Debug, Default)]
pub struct Agents {
    jobs: HashMap<u32, BTreeMap<String, Seen>>,
    window: Option<Window>,
}

/// The figures that are asked for, and where each answer goes.
const FIGURES: &[&str] = &[
    "from",
    "from_last",
    "until",
    "cpu",
    "cpus",
    "busy",
    "anon",
    "shmem",
    "peak",
    "limit",
    "read",
    "write",
    "asked_read",
    "asked_write",
    "files",
    "scratch",
    "threads",
    "idle",
    "processes",
];

impl Agents {
    /// Asks about all jobs of a cluster in a window; `now` if the window ends at this moment. A
    /// question without an answer is a trouble.
    pub fn ask(
        oracle: &Oracle,
        cluster: &ClusterName,
        window: Window,
        now: bool,
        troubles: &mut Troubles<'_>,
    ) -> Agents {
        let mut agents = Agents { window: Some(window), ..Agents::default() };
        let most = |def| most(def, cluster, window);
        let coverage = [
            ("from", least(&metric::JOBS_COVERED_FROM, cluster, window)),
            ("from_last", most(&metric::JOBS_COVERED_FROM)),
            ("until", most(&metric::JOBS_COVERED_UNTIL)),
        ];
        match oracle.ask(together(&coverage)) {
            Ok(series) => agents.take(series),
            Err(error) => {
                troubles.add("agents", format!("{error}; nothing that they measured is known"));
                return agents;
            }
        }
        if agents.jobs.is_empty() {
            return agents;
        }
        let threads = format!(
            "max by (cluster, instance, {JOB_LABEL}) ({})",
            most(&metric::JOBS_THREAD_COUNT)
        );
        let mut questions = vec![
            (
                "CPU time",
                together(&[
                    ("cpu", most(&metric::JOBS_CPU_USAGE_SECONDS)),
                    ("cpus", most(&metric::JOBS_CPUS)),
                    ("busy", most(&metric::JOBS_CPU_CORES_BUSY)),
                ]),
            ),
            (
                "memory",
                together(&[
                    ("anon", most(&metric::JOBS_MEMORY_ANON)),
                    ("shmem", most(&metric::JOBS_MEMORY_SHMEM)),
                    ("peak", most(&metric::JOBS_MEMORY_PEAK)),
                    ("limit", most(&metric::JOBS_MEMORY_LIMIT)),
                ]),
            ),
            (
                "data",
                together(&[
                    ("", most(&metric::JOBS_IO_BYTES)),
                    ("asked_", most(&metric::JOBS_IO_REQUESTED_BYTES)),
                ]),
            ),
            (
                "files",
                together(&[
                    ("files", most(&metric::JOBS_OPEN_FILES)),
                    ("scratch", most(&metric::JOBS_SCRATCH_OPEN_FILES)),
                ]),
            ),
            ("threads", together(&[("threads", threads)])),
            ("cores", together(&[("core", most(&metric::JOBS_CPU_CORE_SECONDS))])),
        ];
        if now {
            let at = |def| promql::series(def, Some(cluster), FRESH);
            let processes = [
                ("idle", at(&metric::JOBS_IDLE_SINCE)),
                ("processes", at(&metric::JOBS_PROCESSES)),
            ];
            questions.push(("processes", together(&processes)));
        }
        for (what, question) in questions {
            match oracle.ask(question) {
                Ok(series) => agents.take(series),
                Err(error) => troubles.add(format!("{what} of agents"), error),
            }
        }
        agents
    }

    fn take(&mut self, series: Vec<Series>) {
        for (labels, value) in series {
            let Ok(job) = label(&labels, JOB_LABEL).parse::<u32>() else { continue };
            if !value.is_finite() {
                continue;
            }
            let seen =
                self.jobs.entry(job).or_default().entry(node(&labels).to_owned()).or_default();
            let name = format!("{}{}", figure(&labels), label(&labels, "direction"));
            if name == "core" {
                seen.cores.insert(label(&labels, "core").to_owned(), value);
            } else if let Some(name) = FIGURES.iter().find(|known| **known == name) {
                seen.figures.insert(name, value);
            }
        }
    }

    /// Adds to a job what agents saw of it and nobody else knows. Says what is odd about them.
    pub fn add_to(&self, job: &mut Job, names: &mut Names, now: Timestamp) -> Odd {
        let mut odd = Odd::default();
        let (Some(jobs), Some(window)) = (self.jobs.get(&job.key.id.get()), self.window) else {
            return odd;
        };
        let Some(start) = job.start.map(|start| start.get() as f64) else { return odd };
        let end = job.end.unwrap_or(now).get() as f64;
        let Ok(list) = hostlist::expand(names.text(job.nodes)) else { return odd };
        let mut watched: Vec<(&str, &Seen)> = Vec::new();
        let (mut covered, mut of_window) = (0.0, 0.0);
        let begin = window.from().get() as f64;
        for name in &list {
            let Some(seen) = jobs.get(name.as_str()) else { continue };
            let Some((from, until)) = seen.run() else { continue };
            if from < start - APART || from > end + APART {
                odd.elsewhen.push(name.to_string());
                continue;
            }
            if job.is_running() && end - until > LAG {
                odd.silent.push(name.to_string());
            }
            covered += (until.min(end) - from.max(start)).max(0.0);
            of_window += (until.min(end) - from.max(start).max(begin)).max(0.0);
            watched.push((name.as_str(), seen));
        }
        if watched.is_empty() {
            return odd;
        }
        let held = list.len() as f64 * (end - start).max(1.0);
        // Counters hold all of the run; the highest of anything only what the window holds.
        let share = |seconds: f64| Share::new((seconds / held).min(1.0)).unwrap_or(Share::NONE);
        let (of_run, of_window) = (share(covered), share(of_window));
        let all = watched.len() == list.len();
        if job.usage.nodes.is_none() {
            let nodes = watched.iter().map(|(name, seen)| NodeUsage {
                node: names.intern(name),
                cpus: seen.get("cpus").and_then(small),
                cpu_seconds: seen.get("cpu"),
                peak_memory: seen.memory(),
                memory: seen.get("limit").and_then(whole).map(Bytes::new),
            });
            let value: Box<[NodeUsage]> = nodes.collect();
            let figure = Figure { value, origin: Origin::Agent, coverage: of_window };
            job.usage.nodes = Some(Box::new(figure));
        }
        if job.usage.cpu_seconds.is_none() && all {
            let sum: Option<f64> = watched.iter().map(|(_, seen)| seen.get("cpu")).sum();
            job.usage.cpu_seconds =
                sum.map(|value| Figure { value, origin: Origin::Agent, coverage: of_run });
        }
        if job.usage.peak_memory.is_none() && all {
            let sum = watched
                .iter()
                .try_fold(Bytes::default(), |sum, (_, seen)| sum.checked_add(seen.memory()?));
            job.usage.peak_memory =
                sum.map(|value| Figure { value, origin: Origin::Agent, coverage: of_window });
        }
        let work = work(&watched, all, job.end.is_none(), names);
        job.usage.work =
            Some(Box::new(Figure { value: work, origin: Origin::Agent, coverage: of_window }));
        odd
    }
}

/// What the agents saw of a job's processes.
fn work(watched: &[(&str, &Seen)], all: bool, running: bool, names: &mut Names) -> Work {
    let sum = |get: &dyn Fn(&Seen) -> Option<f64>| -> Option<f64> {
        if all { watched.iter().map(|(_, seen)| get(seen)).sum() } else { None }
    };
    let mean = |seen: &Seen| {
        let (from, until) = seen.run()?;
        (until > from).then_some(seen.get("cpu")? / (until - from))
    };
    let cores: Box<[f64]> =
        watched.iter().flat_map(|(_, seen)| seen.cores.values().copied()).collect();
    let threads = watched.iter().map(|(name, seen)| {
        Some(NodeThreads {
            node: names.intern(name),
            cpus: seen.get("cpus").and_then(small)?,
            threads: seen.get("threads").and_then(small)?,
        })
    });
    let threads: Option<Box<[NodeThreads]>> = threads.collect();
    let has_cores = all && watched.iter().all(|(_, seen)| !seen.cores.is_empty());
    Work {
        busy_mean: sum(&mean),
        busy_most: sum(&|seen| seen.get("busy")),
        core_seconds: has_cores.then_some(cores),
        requested_bytes: sum(&|seen| seen.moved("asked_read", "asked_write")).and_then(whole),
        moved_bytes: sum(&|seen| seen.moved("read", "write")).and_then(whole),
        open_files: sum(&|seen| seen.get("files")).and_then(whole),
        scratch: scratch(watched, all),
        threads: threads.filter(|_| all),
        without_process_since: if running { without_process(watched, all) } else { None },
    }
}

/// Whether a file in a scratch directory was ever open: one node that says so is enough, that none
/// was takes all.
fn scratch(watched: &[(&str, &Seen)], all: bool) -> Option<bool> {
    let known = || watched.iter().map(|(_, seen)| seen.get("scratch"));
    if known().flatten().any(|files| files > 0.0) {
        return Some(true);
    }
    (all && known().all(|files| files.is_some())).then_some(false)
}

/// Since when there is no process on any node; that there is one is known as soon as one has one.
#[allow(clippy::option_option, reason = "unknown, with a process, without one since")]
fn without_process(watched: &[(&str, &Seen)], all: bool) -> Option<Option<Timestamp>> {
    let mut since: Option<f64> = None;
    let mut known = all;
    for (_, seen) in watched {
        match (seen.get("processes"), seen.get("idle")) {
            (Some(processes), _) if processes > 0.0 => return Some(None),
            (_, Some(idle)) => since = Some(since.map_or(idle, |since| since.max(idle))),
            _ => known = false,
        }
    }
    let since = since.and_then(whole).and_then(|since| i64::try_from(since).ok());
    known.then_some(since.map(Timestamp::new)).filter(Option::is_some)
}
