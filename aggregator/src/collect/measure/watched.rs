//! What agents said of jobs in a window of time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::job::{AgentUse, NodeUse, Run};
use steward_common::metric::{self, MetricDef, NODE_LABELS};
use steward_common::slurm::hostlist;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::source::prometheus::{PrometheusError, Series};
use crate::source::promql::{Extreme, over};

/// How long before and after a window its runs may have points: final values linger.
const SLACK: Duration = Duration::from_secs(300);

/// What one question asks for at most, of all jobs.
const PIECE: Duration = Duration::from_secs(6 * 3600);

/// The same of jobs that are named.
const LONG_PIECE: Duration = Duration::from_secs(24 * 3600);

/// How many jobs a question names.
const AT_ONCE: usize = 200;

/// How far back a run's memory is followed.
const REACH: Duration = Duration::from_secs(32 * 24 * 3600);

/// A job that was watched this long before the end of what was asked for may go on.
const ALIVE: Duration = Duration::from_secs(90);

/// How far the clocks of nodes and controller may be apart, in seconds.
const APART: f64 = 5.0;

/// What an agent said of a job in a window.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// From when it watched the run: the least and the most of what it said.
    from: Option<(f64, f64)>,
    until: Option<f64>,
    cpu: Option<f64>,
    anon: Option<f64>,
    shmem: Option<f64>,
    /// The kernel's highest mark, page cache included.
    peak: Option<f64>,
    gpus: Option<f64>,
    read: Option<f64>,
    written: Option<f64>,
    /// Whether it began before the window and may go on: its memory was not followed.
    may_go_on: bool,
}

impl Seen {
    /// The one run that it is about: from when to when it was watched.
    fn run(&self) -> Option<(f64, f64)> {
        let ((least, most), until) = (self.from?, self.until?);
        (most - least < 1.0 && until >= least).then_some((least, until))
    }

    /// The most memory that could not be dropped: no page cache. Anonymous and shared memory may
    /// have been highest at different times, but never above the kernel's mark.
    fn memory(&self) -> Option<f64> {
        let held = self.anon? + self.shmem.unwrap_or(0.0);
        Some(self.peak.map_or(held, |peak| held.min(peak)))
    }
}

/// What agents said in a window, by job and node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Watched {
    jobs: HashMap<u32, BTreeMap<String, Seen>>,
}

impl Watched {
    /// What stands here of a run.
    pub(super) fn of(&self, run: &Run<'_>) -> Option<AgentUse> {
        let seen = self.jobs.get(&run.job.get())?;
        let (start, end) = (run.start?.get() as f64, run.end?.get() as f64);
        let names = hostlist::expand(&run.nodes).ok()?;
        let mut nodes = Vec::new();
        let (mut covered, mut read, mut written) = (0.0, Some(0.0), Some(0.0));
        let add = |sum: Option<f64>, more: Option<f64>| Some(sum? + more?);
        for name in &names {
            let Some(seen) = seen.get(name.as_str()) else { continue };
            let Some((from, until)) = seen.run() else { continue };
            // Of another run of this job.
            if from < start - APART || from > end + APART {
                continue;
            }
            if seen.may_go_on {
                return None;
            }
            covered += (until.min(end) - from.max(start)).max(0.0);
            (read, written) = (add(read, seen.read), add(written, seen.written));
            nodes.push(NodeUse {
                node: name.to_string(),
                cpu_seconds: seen.cpu,
                peak_memory_bytes: seen.memory().and_then(whole),
                gpus: seen.gpus.and_then(whole).and_then(|gpus| u32::try_from(gpus).ok()),
            });
        }
        if nodes.is_empty() {
            return None;
        }
        Some(AgentUse {
            nodes,
            gpu_seconds: None,
            read_bytes: read.and_then(whole),
            written_bytes: written.and_then(whole),
            coverage: Some((covered / (names.len() as f64 * (end - start))).min(1.0)),
        })
    }
}

/// A whole number that is not negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn whole(value: f64) -> Option<u64> {
    (0.0..9e18).contains(&value).then_some(value.round() as u64)
}

fn least(one: Option<f64>, other: f64) -> f64 {
    one.map_or(other, |one| one.min(other))
}

fn most(one: Option<f64>, other: f64) -> f64 {
    one.map_or(other, |one| one.max(other))
}

/// Someone who answers questions in PromQL.
pub(super) type Ask<'a> = &'a mut dyn FnMut(String) -> Result<Vec<Series>, PrometheusError>;

/// What is to be found out.
pub(super) struct Question<'a> {
    /// The cluster.
    pub(super) cluster: &'a ClusterName,
    /// When the runs ended.
    pub(super) window: Window,
    /// Prometheus knows no more.
    pub(super) now: Timestamp,
}

impl Question<'_> {
    /// Asks.
    pub(super) fn answer(&self, ask: Ask<'_>) -> Result<Watched, PrometheusError> {
        let mut watched = Watched::default();
        let begin = self.window.from().before(SLACK);
        let end = self.window.to().after(SLACK).min(self.now);
        for piece in pieces(begin, end, PIECE) {
            let mut any = false;
            self.each(
                ask,
                &metric::JOBS_COVERED_FROM,
                Extreme::Least,
                &[],
                piece,
                |job, series| {
                    any = true;
                    let seen = watched.seen(job, series);
                    let (low, high) = seen.from.unwrap_or((series.value, series.value));
                    seen.from = Some((low.min(series.value), high.max(series.value)));
                },
            )?;
            // No agent watched a job then; far back, Prometheus has forgotten.
            if !any {
                continue;
            }
            self.piece(ask, &mut watched, piece)?;
        }
        self.long(ask, &mut watched, begin, end)?;
        Ok(watched)
    }

    /// The other figures of a piece of time.
    fn piece(
        &self,
        ask: Ask<'_>,
        watched: &mut Watched,
        piece: Window,
    ) -> Result<(), PrometheusError> {
        type Put = fn(&mut Seen, &Series);
        let figures: [(&MetricDef, Extreme, Put); 8] = [
            (&metric::JOBS_COVERED_FROM, Extreme::Most, |seen, series| {
                let (low, high) = seen.from.unwrap_or((series.value, series.value));
                seen.from = Some((low.min(series.value), high.max(series.value)));
            }),
            (&metric::JOBS_COVERED_UNTIL, Extreme::Most, |seen, series| {
                seen.until = Some(most(seen.until, series.value));
            }),
            (&metric::JOBS_CPU_USAGE_SECONDS, Extreme::Most, |seen, series| {
                seen.cpu = Some(most(seen.cpu, series.value));
            }),
            (&metric::JOBS_MEMORY_ANON, Extreme::Most, |seen, series| {
                seen.anon = Some(most(seen.anon, series.value));
            }),
            (&metric::JOBS_MEMORY_SHMEM, Extreme::Most, |seen, series| {
                seen.shmem = Some(most(seen.shmem, series.value));
            }),
            (&metric::JOBS_MEMORY_PEAK, Extreme::Most, |seen, series| {
                seen.peak = Some(most(seen.peak, series.value));
            }),
            (&metric::JOBS_GPU_ASSIGNED, Extreme::Number, |seen, series| {
                seen.gpus = Some(most(seen.gpus, series.value));
            }),
            (&metric::JOBS_IO_BYTES, Extreme::Most, |seen, series| {
                match series.labels.get("direction").map(String::as_str) {
                    Some("read") => seen.read = Some(most(seen.read, series.value)),
                    Some("write") => seen.written = Some(most(seen.written, series.value)),
                    _ => {}
                }
            }),
        ];
        for (def, extreme, put) in figures {
            self.each(ask, def, extreme, &[], piece, |job, series| {
                put(watched.seen(job, series), series);
            })?;
        }
        Ok(())
    }

    /// Counters and the kernel's mark say at the end what they said before; the memory of runs
    /// that began before the window is asked for up to where they began. Those that may go on are
    /// left: they are asked for when they have ended.
    fn long(
        &self,
        ask: Ask<'_>,
        watched: &mut Watched,
        begin: Timestamp,
        end: Timestamp,
    ) -> Result<(), PrometheusError> {
        let (first, alive) = (begin.get() as f64, end.before(ALIVE).get() as f64);
        let mut ended: BTreeMap<u32, f64> = BTreeMap::new();
        for (job, nodes) in &mut watched.jobs {
            for seen in nodes.values_mut() {
                let Some((from, until)) = seen.run().filter(|(from, _)| *from < first) else {
                    continue;
                };
                if until >= alive {
                    seen.may_go_on = true;
                } else if from < begin.before(REACH).get() as f64 {
                    (seen.anon, seen.shmem) = (None, None);
                } else {
                    ended.insert(*job, least(ended.get(job).copied(), from));
                }
            }
        }
        let mut to = begin;
        while !ended.is_empty() {
            let from = to.before(LONG_PIECE);
            let Some(piece) = Window::new(from, to) else { break };
            let jobs: Vec<u32> = ended.keys().copied().collect();
            for jobs in jobs.chunks(AT_ONCE) {
                self.long_piece(ask, watched, jobs, piece)?;
            }
            ended.retain(|_, since| *since < from.get() as f64);
            to = from;
        }
        Ok(())
    }

    fn long_piece(
        &self,
        ask: Ask<'_>,
        watched: &mut Watched,
        jobs: &[u32],
        piece: Window,
    ) -> Result<(), PrometheusError> {
        let mut others: BTreeSet<(u32, String)> = BTreeSet::new();
        self.each(ask, &metric::JOBS_COVERED_FROM, Extreme::Least, jobs, piece, |job, series| {
            // Another run of the job, on the same node and the same day.
            if watched.known(job, series).is_some_and(|(from, _)| series.value < from - 1.0) {
                others.extend(node(series).map(|node| (job, node.to_owned())));
            }
        })?;
        for (def, put) in [
            (
                &metric::JOBS_MEMORY_ANON,
                (|seen, value| seen.anon = Some(most(seen.anon, value))) as fn(&mut Seen, f64),
            ),
            (&metric::JOBS_MEMORY_SHMEM, |seen, value| seen.shmem = Some(most(seen.shmem, value))),
        ] {
            self.each(ask, def, Extreme::Most, jobs, piece, |job, series| {
                if watched
                    .known(job, series)
                    .is_some_and(|(from, _)| from < piece.to().get() as f64)
                {
                    put(watched.seen(job, series), series.value);
                }
            })?;
        }
        for (job, node) in others {
            if let Some(seen) = watched.jobs.get_mut(&job).and_then(|nodes| nodes.get_mut(&node)) {
                // Its memory and the other run's cannot be told apart.
                (seen.anon, seen.shmem) = (None, None);
            }
        }
        Ok(())
    }

    fn each(
        &self,
        ask: Ask<'_>,
        def: &MetricDef,
        extreme: Extreme,
        jobs: &[u32],
        piece: Window,
        mut take: impl FnMut(u32, &Series),
    ) -> Result<(), PrometheusError> {
        for series in ask(over(def, extreme, self.cluster, jobs, piece))? {
            if series.value.is_finite() && node(&series).is_some() {
                take(series.job.1.get(), &series);
            }
        }
        Ok(())
    }
}

fn node(series: &Series) -> Option<&str> {
    let [_, instance] = NODE_LABELS;
    series.labels.get(instance).map(String::as_str)
}

impl Watched {
    /// The place for what a series says.
    fn seen(&mut self, job: u32, series: &Series) -> &mut Seen {
        let node = node(series).unwrap_or_default().to_owned();
        self.jobs.entry(job).or_default().entry(node).or_default()
    }

    /// The run that is known of the series' job on its node.
    fn known(&self, job: u32, series: &Series) -> Option<(f64, f64)> {
        self.jobs.get(&job)?.get(node(series)?)?.run()
    }
}

/// A time in pieces of at most this length.
fn pieces(begin: Timestamp, end: Timestamp, length: Duration) -> Vec<Window> {
    let mut pieces = Vec::new();
    let mut from = begin;
    while let Some(piece) = Window::new(from, from.after(length).min(end)) {
        from = piece.to();
        pieces.push(piece);
    }
    pieces
}
