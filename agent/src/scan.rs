//! One scan: from directories and processes to nodes with their jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use steward_common::id::{JobId, NodeName};
use steward_common::slurm::cgroup_path::JobDir;
use steward_common::slurm::sluid::Sluid;

use crate::config::Config;
use crate::ending::Ending;
use crate::file_class::FileClasses;
use crate::host::Host;
use crate::job::{Desk, Verdict};
use crate::kernel::cgroup::{Hierarchy, JobPlace, NothingToRead};
use crate::kernel::error::Errors;
use crate::kernel::members;
use crate::node::{JobSample, Node};
use crate::reader::{Hangs, Readers};
use crate::reading::{Key, Reading, Site, Task};
use crate::run::Run;
use crate::scheduler;
use crate::sluid::{self, Sluids};
use crate::state::State;

/// For so long a job is new, and looked at between scans.
pub const NEW: Duration = Duration::from_secs(15);

/// For so long a job that is gone is remembered: without an extern step, Slurm removes a job's
/// directory between two steps.
const DORMANT: Duration = Duration::from_secs(3600);

/// No more than this many of them.
const MOST_DORMANT: usize = 128;

/// How long cgroup files alone may take.
const BARE: Duration = Duration::from_secs(2);

/// Which jobs are read.
#[derive(Clone, Copy, Debug)]
pub enum Focus<'a> {
    /// All of them: a scan.
    All,
    /// New ones, and those in whose directories something changed: a look.
    Changed(&'a BTreeSet<PathBuf>),
    /// Only those in whose directories something changed.
    Only(&'a BTreeSet<PathBuf>),
}

/// What one scan found.
#[derive(Debug)]
pub struct Scan {
    /// The nodes of this host; none while the cluster's name is not known.
    pub nodes: Vec<Node>,
    /// What could not be read.
    pub errors: Errors,
    /// Jobs that ended since the scan before, summed up.
    pub ended: Vec<Ending>,
    /// Jobs for which the time did not suffice: they stand as they were.
    pub skipped: u64,
    /// Jobs and files whose readers have not come back.
    pub stuck: u64,
    /// CPU time that its readers took.
    pub cpu: Duration,
}

/// Scans, and remembers what the next scan must know.
#[derive(Debug)]
pub struct Scanner {
    config: Config,
    host: Host,
    hierarchy: Hierarchy,
    readers: Readers,
    desk: Desk,
    runs: BTreeMap<Key, Run>,
    sluids: Sluids,
    /// When each job directory appeared; `None` for those that were there before the agent.
    arrivals: BTreeMap<Key, Option<Instant>>,
    /// Since when there is a SLUID whose job is not known.
    nameless: BTreeMap<Sluid, Instant>,
    leftovers: BTreeMap<NodeName, u64>,
    scanned: bool,
    /// When the threads are to be read next.
    threads_due: Option<Instant>,
}

impl Scanner {
    /// Looks where things are.
    ///
    /// # Errors
    /// If there are no cgroups or no processes.
    pub fn new(config: Config) -> Result<Self, NothingToRead> {
        let proc = &config.paths.proc;
        if !proc.join("self").exists() && !proc.join("1").exists() {
            return Err(NothingToRead::NoProcesses(proc.clone()));
        }
        let scheduler = scheduler::from_config(&config.scheduler)
            .map_err(|why| NothingToRead::Setting("scheduler.pattern", why))?;
        let classes = FileClasses::new(config.file_classes.clone())
            .map_err(|why| NothingToRead::Setting("file_classes", why.to_string()))?;
        let hierarchy = Hierarchy::detect(&config.paths.cgroup, &scheduler)?;
        let site = Site {
            proc: config.paths.proc.clone(),
            layout: hierarchy.layout(),
            scheduler: scheduler.clone(),
            scratch: config.scratch.clone(),
            classes,
        };
        Ok(Self {
            hierarchy,
            host: Host::discover(&config),
            readers: Readers::new(site),
            desk: Desk::new(&config, scheduler),
            runs: BTreeMap::new(),
            sluids: Sluids::default(),
            arrivals: BTreeMap::new(),
            nameless: BTreeMap::new(),
            leftovers: BTreeMap::new(),
            scanned: false,
            threads_due: (config.threads.interval.0 > Duration::ZERO).then(Instant::now),
            config,
        })
    }

    /// Who this host is.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The hierarchy it reads.
    #[must_use]
    pub const fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Goes on from what an earlier agent left in `state`.
    ///
    /// # Errors
    /// If the file cannot be understood; everything starts anew then.
    pub fn resume(&mut self, state: &State) -> Result<(), String> {
        self.runs = state.load()?;
        Ok(())
    }

    /// Leaves what a later agent must know in `state`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, state: &State) -> Result<(), String> {
        state.save(&self.runs)
    }

    /// How many step and task directories the jobs of `node` have.
    #[must_use]
    pub fn steps_and_tasks(&mut self, node: &NodeName) -> (usize, usize) {
        let mut errors = Errors::default();
        let places = self.hierarchy.jobs(true, &mut errors);
        places
            .iter()
            .filter(|place| self.host.node_of(place.node.as_ref()).as_ref() == Some(node))
            .map(|place| place.steps_and_tasks(&mut errors))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Whether some job is new.
    #[must_use]
    pub fn has_new_jobs(&self) -> bool {
        let young = |since: &Instant| since.elapsed() < NEW;
        self.arrivals.values().flatten().any(young) || self.nameless.values().any(young)
    }

    /// Where jobs, and parts of them, begin and end.
    #[must_use]
    pub fn watched(&self) -> BTreeSet<PathBuf> {
        let jobs = self.runs.values().flat_map(|run| run.watched.iter());
        self.hierarchy.holders().iter().chain(jobs).cloned().collect()
    }

    fn threads_are_due(&mut self) -> bool {
        let now = Instant::now();
        let due = self.threads_due.is_some_and(|at| now >= at);
        if due {
            self.threads_due = Some(now + self.config.threads.interval.0);
        }
        due
    }

    fn is_new(&self, key: &Key) -> bool {
        matches!(self.arrivals.get(key), Some(Some(at)) if at.elapsed() < NEW)
    }

    /// Reads everything that `focus` asks for; the rest stands as it was.
    pub fn scan(&mut self, focus: Focus) -> Scan {
        let full = matches!(focus, Focus::All);
        let deadline = Instant::now() + self.config.deadline.0;
        let mut errors = Errors::default();
        for task in self.readers.returned() {
            // Its run may have gone, or begun anew, meanwhile.
            let run = self.runs.get_mut(&task.key).filter(|run| run.trail.is_none());
            if let Some(run) = run {
                run.trail = task.trail;
            }
        }
        self.desk.begin_scan(full);

        let mut round = Round::default();
        let places = self.hierarchy.jobs(full, &mut errors);
        let threads = full && self.threads_are_due();
        let tasks = self.tasks(places, focus, threads, &mut round, &mut errors);
        let mut outcome = self.readers.read(tasks, full, deadline, &mut errors);
        // What the kernel says of a job whose processes hang needs no trail.
        let bare =
            |(key, place)| Task { key, place, trail: None, parts_seen: None, threads: false };
        let lost: Vec<Task> = std::mem::take(&mut outcome.lost).into_iter().map(bare).collect();
        if !lost.is_empty() {
            let more = self.readers.read(lost, false, Instant::now() + BARE, &mut errors);
            outcome.read.extend(more.read);
            outcome.unread.extend(more.unread);
        }
        for reading in std::mem::take(&mut outcome.read) {
            self.judge(reading, deadline, &mut round, &mut errors);
        }
        round.skipped = outcome.unread.len().try_into().unwrap_or(u64::MAX);
        for task in std::mem::take(&mut outcome.unread) {
            let Some(run) = self.runs.get_mut(&task.key) else { continue };
            if task.trail.is_some() {
                run.trail = task.trail;
            }
        }
        self.let_stand(&mut round);
        if full {
            self.leftovers = std::mem::take(&mut round.leftovers);
        }
        self.scanned = true;

        if self.host.cluster.is_none() {
            self.learn_cluster(round.jobs.values());
        }
        let unlisted = errors.unlisted();
        let ended = self.linger(&mut round, full, unlisted);
        let stuck = self.readers.stuck().len() + self.desk.stuck();
        Scan {
            nodes: self.nodes(round.jobs),
            errors,
            ended,
            skipped: round.skipped,
            stuck: stuck.try_into().unwrap_or(u64::MAX),
            cpu: outcome.cpu,
        }
    }

    /// Jobs whose directory is there and that were not read are shown as they were, with the time
    /// until which they are covered. One that has ended does not come back that way.
    fn let_stand(&self, round: &mut Round) {
        for key in &round.present {
            let standing = self.runs.get(key).filter(|run| !run.told && !run.hidden);
            if let Some(last) = standing.and_then(|run| run.last.clone())
                && !round.jobs.contains_key(key)
            {
                round.jobs.insert(key.clone(), last);
            }
        }
    }

    fn judge(
        &mut self,
        reading: Reading,
        deadline: Instant,
        round: &mut Round,
        errors: &mut Errors,
    ) {
        let (key, place) = (reading.task.key.clone(), reading.task.place.clone());
        let threads = reading.task.threads;
        let new = self.is_new(&key);
        let run = self.runs.remove(&key).unwrap_or_default();
        let mut verdict = self.desk.judge(reading, run, new, &mut self.sluids, errors);
        if let Verdict::Again(mut run) = verdict {
            let trail = run.trail.take();
            let task = Task { key: key.clone(), place, trail, parts_seen: None, threads };
            let again = self.readers.read(vec![task], false, deadline, errors).read.pop();
            let Some(reading) = again else { return };
            verdict = self.desk.judge(reading, *run, new, &mut self.sluids, errors);
        }
        round.take(key, verdict, &mut self.runs);
    }

    /// What is to be read, longest unread first; what stands goes to `round` at once.
    fn tasks(
        &mut self,
        places: Vec<JobPlace>,
        focus: Focus,
        threads: bool,
        round: &mut Round,
        errors: &mut Errors,
    ) -> Vec<Task> {
        let mut places = self.name(places, errors);
        // Of two directories for one job, the one of the later run is the job's.
        places.sort_by_cached_key(|(key, place)| (key.clone(), Reverse(place.sluid())));
        let mut tasks = Vec::new();
        for (key, place) in places {
            if !round.present.insert(key.clone()) {
                // The other is what an earlier run left behind.
                *round.leftovers.entry(key.0).or_insert(0) += 1;
                continue;
            }
            let now = self.scanned.then(Instant::now);
            self.arrivals.entry(key.clone()).or_insert(now);
            if self.readers.stuck().get(&key) == Some(&Hangs::Cgroup) {
                continue;
            }
            let wanted = match focus {
                Focus::All => true,
                Focus::Changed(paths) => self.is_new(&key) || place.holds_any(paths),
                Focus::Only(paths) => place.holds_any(paths),
            };
            if wanted {
                let run =
                    self.runs.entry(key.clone()).or_insert_with(|| Run::new(place.sluid(), None));
                let (trail, parts_seen) = (run.trail.take(), run.parts_seen);
                tasks.push(Task { key, place, trail, parts_seen, threads });
            }
        }
        self.arrivals.retain(|key, _| round.present.contains(key));
        tasks.sort_by_cached_key(|task| {
            self.runs.get(&task.key)?.last.as_ref().map(|last| last.covered_until)
        });
        tasks
    }

    /// The job of each directory; one that cannot be told yet is left out.
    fn name(&mut self, places: Vec<JobPlace>, errors: &mut Errors) -> Vec<(Key, JobPlace)> {
        let mut present = BTreeSet::new();
        let unnamed = |sluids: &Sluids, place: &JobPlace| {
            place.sluid().is_some_and(|sluid| sluids.get(sluid).is_none())
        };
        let alone = places.iter().filter(|place| unnamed(&self.sluids, place)).count() == 1;
        let mut named = Vec::new();
        for place in places {
            let Some(node) = self.host.node_of(place.node.as_ref()) else { continue };
            let id = match place.job {
                JobDir::Id(id) => Some(id),
                JobDir::Sluid(sluid) => {
                    present.insert(sluid);
                    let known = self.sluids.get(sluid);
                    let id = known.or_else(|| self.resolve(&place, &node, alone, errors));
                    if id.is_some() {
                        self.nameless.remove(&sluid);
                    } else {
                        self.nameless.entry(sluid).or_insert_with(Instant::now);
                    }
                    id
                }
            };
            named.extend(id.map(|id| ((node, id), place)));
        }
        self.sluids.retain(&present);
        self.nameless.retain(|sluid, _| present.contains(sluid));
        named
    }

    fn resolve(
        &mut self,
        place: &JobPlace,
        node: &NodeName,
        alone: bool,
        errors: &mut Errors,
    ) -> Option<JobId> {
        let sluid = place.sluid()?;
        let layout = self.hierarchy.layout();
        let members = members::read(layout, self.desk.scheduler(), place, errors);
        let sockets = sluid::sockets(&self.host.spool_dir(node), node);
        // One that is young by its own account may have a name any moment.
        let age = place.age().unwrap_or_default();
        let alone = alone && age > NEW;
        let tools = self.desk.tools();
        self.sluids.resolve(sluid, &members, sockets.as_ref(), alone, tools, errors)
    }

    /// The last word on the cluster's name: slurm.conf may have come since, else a job knows it.
    fn learn_cluster<'a>(&mut self, mut running: impl Iterator<Item = &'a JobSample>) {
        self.host = Host::discover(&self.config);
        if self.host.cluster.is_none() {
            self.host.cluster =
                running.find_map(|job| job.environment.cluster.as_deref()?.parse().ok());
        }
    }

    /// Adds the final values of jobs that are gone, for as long as they are to be seen, and sums up
    /// those that went just now. A rate is no final value: nothing runs any more. Where something
    /// could not be listed, nobody is gone.
    fn linger(&mut self, round: &mut Round, full: bool, unlisted: bool) -> Vec<Ending> {
        let most = self.config.linger;
        let mut endings = Vec::new();
        self.runs.retain(|key, run| {
            if round.jobs.contains_key(key) {
                (run.lingered, run.gone) = (0, None);
                return true;
            }
            if run.hidden && round.present.contains(key) {
                return true;
            }
            if !unlisted && !run.told {
                run.told = true;
                endings.extend(Ending::of(key, run));
            }
            if !unlisted && full {
                run.lingered += 1;
            }
            let lingers = run.lingered <= most;
            if lingers && let Some(last) = run.last.clone() {
                let ended = JobSample { ended: !unlisted, cores_busy: None, ..last };
                round.jobs.insert(key.clone(), ended);
            }
            // The next step may make the directory anew, and the counters go on then.
            let gone = *run.gone.get_or_insert_with(Instant::now);
            if !lingers {
                run.forget_processes();
            }
            lingers || gone.elapsed() < DORMANT
        });
        self.forget_oldest();
        endings
    }

    /// Of jobs that are gone, only so many are remembered.
    fn forget_oldest(&mut self) {
        let dormant = |run: &Run| run.lingered > self.config.linger;
        let mut gone: Vec<Instant> =
            self.runs.values().filter(|run| dormant(run)).filter_map(|run| run.gone).collect();
        if gone.len() <= MOST_DORMANT {
            return;
        }
        gone.sort_unstable();
        let Some(oldest) = gone.get(gone.len() - MOST_DORMANT).copied() else { return };
        let most = self.config.linger;
        self.runs.retain(|_, run| run.lingered <= most || run.gone.is_none_or(|at| at >= oldest));
    }

    fn nodes(&self, jobs: BTreeMap<Key, JobSample>) -> Vec<Node> {
        let Some(cluster) = &self.host.cluster else { return Vec::new() };
        let with_jobs: BTreeSet<NodeName> = jobs.keys().map(|key| key.0.clone()).collect();
        let names = self.host.nodes(&self.hierarchy.named_nodes());
        let mut nodes: BTreeMap<NodeName, Node> = names
            .union(&with_jobs)
            .map(|name| {
                let leftovers = self.leftovers.get(name).copied().unwrap_or(0);
                let (cluster, name) = (cluster.clone(), name.clone());
                (name.clone(), Node { cluster, name, jobs: Vec::new(), leftovers })
            })
            .collect();
        for (key, sample) in jobs {
            if let Some(node) = nodes.get_mut(&key.0) {
                node.jobs.push(sample);
            }
        }
        nodes.into_values().collect()
    }
}

/// What one scan has found so far.
#[derive(Debug, Default)]
struct Round {
    jobs: BTreeMap<Key, JobSample>,
    leftovers: BTreeMap<NodeName, u64>,
    skipped: u64,
    /// All jobs whose directory is there.
    present: BTreeSet<Key>,
}

impl Round {
    fn take(&mut self, key: Key, verdict: Verdict, runs: &mut BTreeMap<Key, Run>) {
        match verdict {
            Verdict::Job(sample, run) => {
                self.jobs.insert(key.clone(), *sample);
                runs.insert(key, *run);
            }
            Verdict::Leftover(run) => {
                *self.leftovers.entry(key.0.clone()).or_insert(0) += 1;
                self.present.remove(&key);
                // Its last values linger if it was a job a moment ago.
                if run.since.is_some() {
                    runs.insert(key, *run);
                }
            }
            Verdict::Hidden(run) | Verdict::Unread(run) => _ = runs.insert(key, *run),
            Verdict::Again(_) => {}
        }
    }
}
