//! From what was read of a job to a sample: whose it is, which run of it, and what it adds up to.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steward_common::id::{JobId, Uid};

use crate::config::{Config, UserRef};
use crate::kernel::error::{Errors, Reason};
use crate::kernel::process::Proc;
use crate::kernel::risky::Risky;
use crate::kernel::stepd::LiveSteps;
use crate::kernel::watch::EVENTS;
use crate::names::{Names, Slow};
use crate::node::JobSample;
use crate::reading::{Read, Reading};
use crate::run::Run;
use crate::scheduler::Scheduler;
use crate::sluid::Sluids;

/// What a reading turned out to be.
#[derive(Debug)]
pub enum Verdict {
    /// A job.
    Job(Box<JobSample>, Box<Run>),
    /// A directory that no job holds any more.
    Leftover(Box<Run>),
    /// Another run than the one that was known: to be read again, from nothing.
    Again(Box<Run>),
    /// A job that is not to be reported.
    Hidden(Box<Run>),
    /// Its directory went, or was made anew, while it was read: it stands as it was.
    Unread(Box<Run>),
}

/// Where readings are judged, with the books that it takes.
#[derive(Debug)]
pub struct Desk {
    scheduler: Arc<dyn Scheduler>,
    excluded: Vec<UserRef>,
    proc: Proc,
    risky: Risky,
    names: Names,
    live_steps: LiveSteps,
    full: bool,
    /// The shortest time over which a rate means something.
    least_window: Duration,
}

impl Desk {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(config: &Config, scheduler: Arc<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            excluded: config.exclude.users.clone(),
            proc: Proc::new(&config.paths.proc),
            risky: Risky::new(&config.paths.proc),
            names: Names::default(),
            live_steps: LiveSteps::default(),
            full: true,
            least_window: (config.interval.0 / 2).min(Duration::from_secs(1)),
        }
    }

    /// How jobs are laid out.
    #[must_use]
    pub fn scheduler(&self) -> &dyn Scheduler {
        self.scheduler.as_ref()
    }

    /// What reads processes.
    pub const fn tools(&mut self) -> (&mut Proc, &mut Risky) {
        (&mut self.proc, &mut self.risky)
    }

    /// How many files could not be read to their end.
    pub fn stuck(&mut self) -> usize {
        self.risky.stuck()
    }

    /// A new scan; `full` if it is not only a look at some jobs.
    pub fn begin_scan(&mut self, full: bool) {
        self.names.begin_scan();
        self.full = full;
        if full {
            self.live_steps.begin_scan();
            self.risky.begin_scan();
        }
    }

    /// Judges a reading. The slurmstepd of a `new` job may come any moment.
    pub fn judge(
        &mut self,
        reading: Reading,
        mut run: Run,
        new: bool,
        sluids: &mut Sluids,
        errors: &mut Errors,
    ) -> Verdict {
        errors.merge(reading.errors);
        let (key, place) = (reading.task.key, reading.task.place);
        if reading.task.trail.is_some() {
            run.trail = reading.task.trail;
        }
        let Some(read) = reading.read else { return Verdict::Unread(run.into()) };
        let sluid = place.sluid();
        if run.is_over(sluid, read.generation) {
            return Verdict::Again(Run::new(sluid, None).into());
        }
        let found = &read.found;
        let has_stepd = found.stepd || read.stepd;
        if found.is_empty()
            && !has_stepd
            && !(self.scheduler.keeps_idle_jobs()
                && self.live_steps.has(key.1, new, &mut self.proc, &mut self.risky))
        {
            return Verdict::Leftover(run.into());
        }

        let owner = run.owner(place.uid, found, &mut self.proc);
        let user = self.user(owner, errors);
        run.hidden = self.is_excluded(owner, &user);
        if run.hidden {
            return Verdict::Hidden(run.into());
        }
        let remade = run.cpu.is_remade(read.generation);
        if remade {
            run.forget_environment();
            run.doubtful = true;
        }
        let knew = run.environment.is_some();
        run.learn_environment(key.1, found, &mut self.risky, errors);
        // The first look at a new directory may come before its first process.
        if run.doubtful && run.environment.is_some() {
            run.doubtful = false;
            if run.is_requeue() {
                return Verdict::Again(Run::new(run.sluid, run.environment).into());
            }
        }
        if !knew && let (Some(sluid), Some(told)) = (sluid, &run.environment) {
            sluids.confirm(sluid, key.1, told, errors);
        }
        run.watched = watched(&read, &place.dirs);
        // A name that is slow to come is a label that is empty for now.
        let sample = self.sample(key.1, &mut run, read, owner, user.unwrap_or_default());
        Verdict::Job(sample.into(), run.into())
    }

    fn sample(
        &self,
        id: JobId,
        run: &mut Run,
        read: Read,
        owner: Option<Uid>,
        user: Option<String>,
    ) -> JobSample {
        let environment = run.environment.clone().unwrap_or_default();
        let remade = run.cpu.is_remade(read.generation);
        if let Some(trail) = &run.trail {
            run.bases = (trail.io.base(), trail.threads.base());
        }
        if let Some(parts) = read.parts {
            run.parts.observe(parts);
        }
        run.parts_seen = read.parts_seen;
        // While its processes hang, their threads are as unknown as they are.
        run.thread_totals = read.threads.or(run.thread_totals).filter(|_| run.trail.is_some());
        let mut counts = run.counts.observe(&read.stats.counts, remade);
        counts.extend(run.parts.total());
        let cpu = run.cpu.observe(read.stats.cpu, read.generation);
        let cores_busy = run.rate(cpu.total, read.at, self.full, self.least_window);
        let confined = read.stats.cpuset.and_then(|cpus| u32::try_from(cpus.len()).ok());
        let idle = read.found.is_empty();
        run.idle_since = idle.then(|| run.idle_since.unwrap_or(read.time));
        let sample = JobSample {
            id,
            sluid: run.sluid,
            uid: owner,
            user,
            cpus: confined.and_then(NonZeroU32::new).or(environment.cpus),
            environment,
            cpu,
            cores_busy,
            memory: read.stats.memory,
            io: read.found.io,
            files: read.found.files,
            processes: read.found.totals,
            threads: run.thread_totals.and_then(|(_, totals)| totals),
            involuntary_switches: run.thread_totals.map(|(switches, _)| switches),
            counts,
            tasks: read.stats.tasks,
            frozen: read.frozen,
            idle_since: run.idle_since,
            covered_from: *run.since.get_or_insert(read.time),
            covered_until: read.time,
            ended: false,
        };
        run.told = false;
        run.peaks.observe(&sample);
        run.last = Some(sample.clone().or_before(run.last.take()));
        sample
    }

    /// The owner's name, if there is one; `Slow` while it is not known.
    fn user(&mut self, owner: Option<Uid>, errors: &mut Errors) -> Result<Option<String>, Slow> {
        let Some(uid) = owner else { return Ok(None) };
        let name = self.names.of(uid.get());
        if name.is_err() {
            errors.count(Reason::Names);
        }
        name
    }

    /// Whether the job is not to be reported. Where somebody is excluded, a job whose owner is not
    /// known yet may be theirs.
    fn is_excluded(&self, owner: Option<Uid>, user: &Result<Option<String>, Slow>) -> bool {
        match (owner, user) {
            (Some(uid), Ok(name)) => {
                self.excluded.iter().any(|one| one.is(uid.get(), name.as_deref()))
            }
            (None, _) | (_, Err(Slow)) => !self.excluded.is_empty(),
        }
    }
}

/// Where the kernel tells that steps come and go, and (v2) that the last process of one ended.
fn watched(read: &Read, dirs: &[(String, PathBuf)]) -> Vec<PathBuf> {
    let events = read.outermost.iter().map(|dir| dir.join(EVENTS));
    dirs.iter().take(1).map(|(_, dir)| dir.clone()).chain(events).collect()
}
