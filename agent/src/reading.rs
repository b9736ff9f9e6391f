//! What is read of a job: its cgroup, its processes and, more seldom, their threads.
//!
//! On a reader's thread, which says where it is as it goes: any file of a process may hang.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use steward_common::id::{JobId, NodeName};
use steward_common::slurm::cgroup_path::Version;

use crate::config::Scratch;
use crate::file_class::FileClasses;
use crate::group::{Found, Tools};
use crate::kernel::cgroup::{self, CgroupStats, Generation, JobPlace};
use crate::kernel::cgroup_v1;
use crate::kernel::count::Counts;
use crate::kernel::error::{Errors, ReadError};
use crate::kernel::file;
use crate::kernel::members::{self, Members};
use crate::kernel::mount::MountTables;
use crate::kernel::process::{Proc, ProcessId};
use crate::kernel::risky::Risky;
use crate::kernel::thread;
use crate::run::Trail;
use crate::scheduler::Scheduler;
use crate::threads::{ThreadLedger, ThreadTotals};

/// A job on a node.
pub type Key = (NodeName, JobId);

/// A job to be read, with what is known of it.
#[derive(Debug)]
pub struct Task {
    /// Which job.
    pub key: Key,
    /// Its directories.
    pub place: JobPlace,
    /// Its processes from scan to scan; without it, they are not read.
    pub trail: Option<Box<Trail>>,
    /// When the counters of its steps were last read.
    pub parts_seen: PartsSeen,
    /// Whether each of its threads is read.
    pub threads: bool,
}

/// When the counters of a job's steps (v1) were last read: the job's own counter then, and how many
/// scans ago it was.
pub type PartsSeen = Option<(u64, u32)>;

/// What was read of a job.
#[derive(Debug)]
pub struct Reading {
    /// The job.
    pub task: Task,
    /// `None` if its directory was removed, or made anew, meanwhile: not one moment's truth.
    pub read: Option<Read>,
    /// What went wrong.
    pub errors: Errors,
}

/// The figures of one moment.
#[derive(Debug)]
pub struct Read {
    /// Tells one making of the job's directory from the next.
    pub generation: Generation,
    /// When the counters were read, on the clock that never jumps.
    pub at: Instant,
    /// The same by the wall clock.
    pub time: SystemTime,
    /// What the cgroup files say.
    pub stats: CgroupStats,
    /// Whether Slurm's own daemon is in it, by the directory that it has for itself.
    pub stepd: bool,
    /// See [`Members::frozen`].
    pub frozen: Option<bool>,
    /// See [`Members::outermost`].
    pub outermost: Vec<PathBuf>,
    /// What its processes do.
    pub found: Found,
    /// Counters that v1 keeps in the directories of steps, if they were read.
    pub parts: Option<Vec<(PathBuf, Counts)>>,
    /// When those were last read.
    pub parts_seen: PartsSeen,
    /// How often threads were put aside, and what they do, if they were read.
    pub threads: Option<(u64, Option<ThreadTotals>)>,
}

/// What a reader needs to know about the host.
#[derive(Debug)]
pub struct Site {
    /// The proc mount.
    pub proc: PathBuf,
    /// Which hierarchy.
    pub layout: Version,
    /// How jobs are laid out in it.
    pub scheduler: Arc<dyn Scheduler>,
    /// What counts as scratch.
    pub scratch: Scratch,
    /// Classes of files.
    pub classes: FileClasses,
}

/// How far a reader is, for whoever watches it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Counts up with each process.
    pub steps: AtomicU64,
    /// Whether it is at the processes of its job.
    pub in_process: AtomicBool,
}

/// What one reader reads with, from scan to scan.
#[derive(Debug)]
pub struct Kit {
    site: Arc<Site>,
    proc: Proc,
    risky: Risky,
    /// As they are in this scan.
    mounts: MountTables,
}

impl Kit {
    /// For the thread that calls, which keeps up to `open_files` files open from now on.
    #[must_use]
    pub fn new(site: Arc<Site>, open_files: usize) -> Self {
        file::keep_open(open_files);
        let (proc, risky) = (Proc::new(&site.proc), Risky::new(&site.proc));
        let mounts = MountTables::new(&site.proc);
        Self { site, proc, risky, mounts }
    }

    /// Ends a scan, or a look if it was not a `whole` one.
    pub fn end_scan(&mut self, whole: bool) {
        self.mounts = MountTables::new(&self.site.proc);
        file::end_scan(whole);
        if whole {
            self.risky.begin_scan();
        }
    }

    /// Reads one job.
    pub fn read(&mut self, mut task: Task, progress: &Progress) -> Reading {
        let site = &self.site;
        let mut errors = Errors::default();
        progress.in_process.store(false, Ordering::SeqCst);
        let generation = task.place.generation();
        let (at, time) = (Instant::now(), SystemTime::now());
        let stats = cgroup::read(site.layout, &task.place, &mut errors);
        let (Some(generation), true) = (generation, generation == task.place.generation()) else {
            return Reading { task, read: None, errors };
        };
        let members = members::read(site.layout, site.scheduler.as_ref(), &task.place, &mut errors);
        let (parts, parts_seen) = match site.layout {
            Version::V1 => memory_events(&task.place, task.parts_seen, &mut errors),
            Version::V2 => (None, None),
        };
        progress.in_process.store(true, Ordering::SeqCst);
        let (mut found, mut thread_totals) = (Found::default(), None);
        if let Some(trail) = &mut task.trail {
            let mut tools = Tools {
                proc: &mut self.proc,
                risky: &mut self.risky,
                progress: &progress.steps,
                mounts: &mut self.mounts,
                scratch: &site.scratch,
                classes: &site.classes,
                errors: &mut errors,
            };
            let processes;
            (found, processes) = trail.group.read(&members, &mut trail.io, &mut tools);
            if task.threads {
                let cpuset = stats.cpuset.as_deref();
                let ledger = &mut trail.threads;
                let (totals, all) =
                    threads(ledger, &processes, cpuset, site, progress, &mut errors);
                let complete = all && found.totals.is_some();
                thread_totals = Some((totals.involuntary_switches, complete.then_some(totals)));
            }
        }
        let threads = thread_totals;
        let Members { stepds, frozen, outermost, .. } = members;
        let read = Read {
            generation,
            at,
            time,
            stats,
            stepd: !stepds.is_empty(),
            frozen,
            outermost,
            found,
            parts,
            parts_seen,
            threads,
        };
        Reading { task, read: Some(read), errors }
    }
}

/// Of a process with more threads than this only so many are read, and the job's figures are
/// incomplete.
const MOST_THREADS: usize = 4096;

/// What the threads of `processes` do, and whether that is all of them.
fn threads(
    ledger: &mut ThreadLedger,
    processes: &[ProcessId],
    cpuset: Option<&[u32]>,
    site: &Site,
    progress: &Progress,
    errors: &mut Errors,
) -> (ThreadTotals, bool) {
    let mut complete = true;
    ledger.begin(processes.len());
    for id in processes {
        progress.steps.fetch_add(1, Ordering::Relaxed);
        match thread::read(&site.proc, id.pid, MOST_THREADS, errors) {
            Ok(threads) => {
                complete &= threads.unread.is_empty() && !threads.cut;
                ledger.see(*id, &threads);
            }
            Err(error) => {
                if !matches!(error, ReadError::Vanished { .. }) {
                    complete = false;
                    ledger.keep(id.pid);
                }
                errors.add(error);
            }
        }
    }
    (ledger.finish(cpuset), complete)
}

/// Walking the directories of all steps is dear, so it is done when the job's own counter moved,
/// and every so many scans for a step with a limit of its own.
const PARTS_EVERY: u32 = 8;

fn memory_events(
    place: &JobPlace,
    seen: PartsSeen,
    errors: &mut Errors,
) -> (Option<Vec<(PathBuf, Counts)>>, PartsSeen) {
    let hits = cgroup_v1::limit_hits(place, errors);
    match (seen, hits) {
        (Some((seen, scans)), Some(now)) if now == seen && scans < PARTS_EVERY => {
            (None, Some((seen, scans + 1)))
        }
        _ => (Some(cgroup_v1::memory_events(place, errors)), hits.map(|hits| (hits, 0))),
    }
}
