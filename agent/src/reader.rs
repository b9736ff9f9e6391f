//! Reads jobs on a thread that can be left behind.
//!
//! A file of a process may hang in the kernel for as long as its file server is away. The scan does
//! not wait for it: the reader is abandoned with the job it hangs in, the other jobs go to a new
//! one. The abandoned job has no second reader until the first comes back.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_gettime};

use crate::kernel::cgroup::JobPlace;
use crate::kernel::error::{Errors, Reason};
use crate::reading::{Key, Kit, Progress, Reading, Site, Task};

/// A reader that has not moved for so long, and does not wait for a CPU either, is stuck. A cgroup
/// file may have to wait for others who make and remove cgroups; files of processes come from memory.
const fn patience(hangs: Hangs) -> Duration {
    match hangs {
        Hangs::Cgroup => Duration::from_secs(5),
        Hangs::Process => Duration::from_secs(1),
    }
}

/// After the deadline, the job that is being read has so much time more.
const GRACE: Duration = Duration::from_secs(2);

/// How often the scan looks whether the reader still moves.
const LOOK: Duration = Duration::from_millis(100);

/// With so many readers left behind, no new one is risked.
const MOST_STUCK: usize = 64;

/// What one scan got.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Jobs that were read.
    pub read: Vec<Reading>,
    /// Jobs for which the time did not suffice.
    pub unread: Vec<Task>,
    /// Jobs whose reader hangs, and has their trail.
    pub lost: Vec<(Key, JobPlace)>,
    /// CPU time that the readers took.
    pub cpu: Duration,
}

/// Readers, one of which works.
#[derive(Debug)]
pub struct Readers {
    site: Arc<Site>,
    current: Option<Reader>,
    done: (Sender<Reading>, Receiver<Reading>),
    stuck: BTreeMap<Key, Hangs>,
}

/// What a reader hangs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangs {
    /// A file of the job's cgroup: nothing of the job can be read.
    Cgroup,
    /// A file of a process: what the kernel says of the job as a whole can be read all the same.
    Process,
}

#[derive(Debug)]
struct Reader {
    work: Sender<Arc<Batch>>,
    /// The kernel's number of the thread; 0 until it runs.
    thread: Arc<AtomicI32>,
}

/// The jobs of one scan that are still to be read.
#[derive(Debug, Default)]
struct Batch {
    /// Whether all jobs are in it.
    whole: bool,
    tasks: Mutex<VecDeque<Task>>,
    current: Mutex<Option<(Key, JobPlace)>>,
    progress: Progress,
    /// CPU time of the reader, in nanoseconds.
    cpu: AtomicU64,
    abandoned: AtomicBool,
}

/// How many files all readers keep open: each costs the kernel about 3 KB, and the agent's listener
/// needs descriptors too.
fn open_files() -> usize {
    const MOST: usize = 4096;
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    usize::try_from(soft / 2).unwrap_or(MOST).min(MOST)
}

/// CPU time of this thread.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// A lock that cannot be poisoned for long: what it guards is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readers {
    /// No reader yet.
    #[must_use]
    pub fn new(site: Site) -> Self {
        let site = Arc::new(site);
        Self { site, current: None, done: channel(), stuck: BTreeMap::new() }
    }

    /// The jobs whose readers have not come back.
    #[must_use]
    pub const fn stuck(&self) -> &BTreeMap<Key, Hangs> {
        &self.stuck
    }

    /// Jobs whose readers have come back after all; what they read is too old to be told.
    pub fn returned(&mut self) -> Vec<Task> {
        let back: Vec<Reading> = self.done.1.try_iter().collect();
        let back = back.into_iter().filter(|reading| self.is_back(&reading.task));
        back.map(|reading| reading.task).collect()
    }

    /// Whether this is a job that was given up, and no later reading of its cgroup alone.
    fn is_back(&mut self, task: &Task) -> bool {
        let whole = self.stuck.get(&task.key) == Some(&Hangs::Cgroup);
        (whole || task.trail.is_some()) && self.stuck.remove(&task.key).is_some()
    }

    /// Reads all of `tasks`, or as many as can be until `deadline`.
    pub fn read(
        &mut self,
        tasks: Vec<Task>,
        whole: bool,
        deadline: Instant,
        errors: &mut Errors,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left: VecDeque<Task> = tasks.into();
        while !left.is_empty() {
            let exhausted = self.current.is_none() && self.stuck.len() >= MOST_STUCK;
            if exhausted || Instant::now() >= deadline {
                break;
            }
            left = self.batch(left, whole, deadline, &mut outcome, errors);
        }
        outcome.unread.extend(left);
        outcome
    }

    /// Gives `tasks` to one reader; returns those that it left when it got stuck.
    fn batch(
        &mut self,
        tasks: VecDeque<Task>,
        whole: bool,
        deadline: Instant,
        outcome: &mut Outcome,
        errors: &mut Errors,
    ) -> VecDeque<Task> {
        let mut waiting = tasks.len();
        let batch = Arc::new(Batch { whole, tasks: Mutex::new(tasks), ..Batch::default() });
        let reader = match self.current.take() {
            Some(reader) => reader,
            None => Reader::start(Arc::clone(&self.site), self.done.0.clone()),
        };
        if reader.work.send(Arc::clone(&batch)).is_err() {
            // No thread could be had: the jobs stand as they were.
            outcome.unread.extend(lock(&batch.tasks).drain(..));
            return VecDeque::new();
        }
        let mut moved = (0, Instant::now());
        // The job that was told last. Until the reader takes the next, it stands as the current one.
        let mut told: Option<Key> = None;
        while waiting > 0 {
            match self.done.1.recv_timeout(LOOK) {
                Ok(reading) if self.is_back(&reading.task) => {
                    // One that was given up came back: it is no part of this batch.
                    outcome.unread.push(reading.task);
                }
                Ok(reading) => {
                    waiting -= 1;
                    told = Some(reading.task.key.clone());
                    outcome.read.push(reading);
                    moved = (batch.progress.steps.load(Ordering::Relaxed), Instant::now());
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let late = Instant::now().checked_duration_since(deadline);
            if late.is_some() {
                // The job that is being read is waited for, the others are not.
                let rest = std::mem::take(&mut *lock(&batch.tasks));
                waiting = waiting.saturating_sub(rest.len());
                outcome.unread.extend(rest);
            }
            let progress = batch.progress.steps.load(Ordering::Relaxed);
            if progress != moved.0 {
                moved = (progress, Instant::now());
            }
            let hangs = batch.at();
            let too_late = late.is_some_and(|late| late >= GRACE);
            let stuck = moved.1.elapsed() >= patience(hangs) && !reader.wants_cpu();
            if waiting > 0 && (too_late || stuck) {
                batch.abandoned.store(true, Ordering::SeqCst);
                let left = std::mem::take(&mut *lock(&batch.tasks));
                let current = lock(&batch.current).take();
                // It may have come to an end at this very moment, or before and not moved on since.
                let mut done = current.as_ref().is_some_and(|(key, _)| told.as_ref() == Some(key));
                while let Ok(reading) = self.done.1.try_recv() {
                    if self.is_back(&reading.task) {
                        outcome.unread.push(reading.task);
                    } else {
                        done |= current.as_ref().is_some_and(|(key, _)| *key == reading.task.key);
                        outcome.read.push(reading);
                    }
                }
                if let Some((key, place)) = current.filter(|_| !done) {
                    errors.count(Reason::Stuck);
                    self.stuck.insert(key.clone(), hangs);
                    if hangs == Hangs::Process {
                        outcome.lost.push((key, place));
                    }
                }
                return left;
            }
        }
        outcome.cpu += Duration::from_nanos(batch.cpu.load(Ordering::SeqCst));
        self.current = Some(reader);
        VecDeque::new()
    }
}

impl Reader {
    fn start(site: Arc<Site>, done: Sender<Reading>) -> Self {
        let (work, inbox) = channel::<Arc<Batch>>();
        let thread = Arc::new(AtomicI32::new(0));
        let number = Arc::clone(&thread);
        let run = move || {
            number.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
            let mut kit = Kit::new(site, open_files());
            for batch in inbox {
                let began = cpu_time();
                while let Some(task) = batch.next() {
                    let reading = kit.read(task, &batch.progress);
                    let spent = cpu_time().saturating_sub(began).as_nanos();
                    batch.cpu.store(spent.try_into().unwrap_or(u64::MAX), Ordering::SeqCst);
                    if done.send(reading).is_err() || batch.abandoned.load(Ordering::SeqCst) {
                        return;
                    }
                }
                kit.end_scan(batch.whole);
            }
        };
        // Without a thread the inbox is gone, and every batch is refused.
        let _unless_refused = Builder::new().name("reader".to_owned()).spawn(run);
        Self { work, thread }
    }

    /// Whether it could go on if it got a CPU: a busy node starves it, and that is as it should be.
    fn wants_cpu(&self) -> bool {
        let number = self.thread.load(Ordering::Relaxed);
        let path = PathBuf::from(format!("/proc/self/task/{number}/stat"));
        let state = std::fs::read_to_string(path).ok();
        state
            .and_then(|text| text.rsplit_once(") ").map(|(_, rest)| rest.starts_with('R')))
            .unwrap_or(number == 0)
    }
}

impl Batch {
    /// Where the reader is.
    fn at(&self) -> Hangs {
        if self.progress.in_process.load(Ordering::SeqCst) { Hangs::Process } else { Hangs::Cgroup }
    }

    fn next(&self) -> Option<Task> {
        // Both locks, so that whoever takes the rest away knows which job is being read.
        let mut tasks = lock(&self.tasks);
        let task = tasks.pop_front();
        *lock(&self.current) = task.as_ref().map(|task| (task.key.clone(), task.place.clone()));
        task
    }
}
