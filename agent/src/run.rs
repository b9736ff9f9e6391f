//! One run of a job on a node, from its first sight to its last.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use steward_common::id::{JobId, Uid};
use steward_common::slurm::sluid::Sluid;

use crate::counts::{CountLedger, PartLedger};
use crate::group::{Found, Group};
use crate::kernel::cgroup::Generation;
use crate::kernel::environment::{self, Environment};
use crate::kernel::error::{Errors, ReadError};
use crate::kernel::process::{Proc, ProcessId};
use crate::kernel::risky::Risky;
use crate::ledger::{CpuLedger, IoBase, IoLedger};
use crate::node::{JobSample, Peaks};
use crate::reading::PartsSeen;
use crate::threads::{ThreadBase, ThreadLedger, ThreadTotals};

/// How many environments of one job are looked at in one scan; the first is nearly always the one.
const ENVIRONMENTS_A_SCAN: usize = 4;

/// After so many in vain, a job whose processes cleaned their environment is left alone.
const ENVIRONMENTS_A_RUN: usize = 32;

/// The processes of a job from scan to scan: what a reader takes with it.
#[derive(Debug, Default)]
pub struct Trail {
    /// What need not be read again.
    pub group: Group,
    /// I/O so far.
    pub io: IoLedger,
    /// Threads so far.
    pub threads: ThreadLedger,
}

/// What the next scan must know about a job.
#[derive(Debug, Default)]
pub struct Run {
    /// The id that tells requeues apart, from Slurm 26.05 on.
    pub sluid: Option<Sluid>,
    /// CPU time so far.
    pub cpu: CpuLedger,
    /// The kernel's other counters so far.
    pub counts: CountLedger,
    /// Those that stand in the directories of steps.
    pub parts: PartLedger,
    /// When those were last read.
    pub parts_seen: PartsSeen,
    /// What the threads were when they were last read; `None` inside if some could not be.
    pub thread_totals: Option<(u64, Option<ThreadTotals>)>,
    /// From when on the counters count.
    pub since: Option<SystemTime>,
    /// Since when it has had no process.
    pub idle_since: Option<SystemTime>,
    /// Its end has been told.
    pub told: bool,
    /// The highest figures so far.
    pub peaks: Peaks,
    /// Where the kernel tells that something of the job begins or ends.
    pub watched: Vec<PathBuf>,
    /// Its processes; `None` while a reader that hangs has it.
    pub trail: Option<Box<Trail>>,
    /// What of that is kept over a restart of the agent.
    pub bases: (IoBase, ThreadBase),
    /// What Slurm told its processes.
    pub environment: Option<Environment>,
    /// The last sample, and what an earlier one had that it lacks.
    pub last: Option<JobSample>,
    /// Not to be reported.
    pub hidden: bool,
    /// Since when it has been gone.
    pub gone: Option<Instant>,
    /// For how many scans it has been gone.
    pub lingered: u32,
    /// Its directory was made anew, and whether for the same run is not known yet.
    pub doubtful: bool,
    /// Left by an agent that has been away for long: another directory is another run.
    pub same_directory_only: bool,
    owner: Option<Uid>,
    environments_read: HashSet<(ProcessId, String)>,
    before: Option<(Instant, Duration)>,
    /// Cores kept busy, as of the last full scan.
    busy: Option<f64>,
    /// SLURM_RESTART_COUNT when the environment was last learnt; the inner one is Slurm's own.
    restarts_before: Option<Option<String>>,
}

impl Run {
    /// A run that begins.
    pub fn new(sluid: Option<Sluid>, environment: Option<Environment>) -> Self {
        let trail = Some(Box::default());
        Self { sluid, environment, trail, ..Self::default() }
    }

    /// Tells apart what SLURM_RESTART_COUNT was when an earlier agent saw the run.
    #[must_use]
    pub fn restarted_before(self, restarts: Option<String>) -> Self {
        Self { restarts_before: Some(restarts), ..self }
    }

    /// What SLURM_RESTART_COUNT was when the environment was last learnt.
    #[must_use]
    pub fn restarts(&self) -> Option<String> {
        let known = self.environment.as_ref().map(|known| known.restarts.clone());
        known.or_else(|| self.restarts_before.clone()).flatten()
    }

    /// Whether another run than this one is in the directory: it has another SLUID, or it is another
    /// directory after the agent has been away for long.
    pub fn is_over(&self, sluid: Option<Sluid>, generation: Generation) -> bool {
        self.sluid != sluid || (self.same_directory_only && self.cpu.is_remade(generation))
    }

    /// Keeps the counters alone: what a job that is gone needs to go on if it comes back.
    pub fn forget_processes(&mut self) {
        self.last = None;
        self.watched = Vec::new();
        if let Some(trail) = &mut self.trail {
            trail.group = Group::default();
        }
    }

    /// Whether the environment says that this is another run than the one before. It is asked when
    /// the directory was made anew: a new step of the same run, or a requeue.
    pub fn is_requeue(&self) -> bool {
        let now = self.environment.as_ref().map(|known| known.restarts.clone());
        match (&self.restarts_before, now) {
            (Some(before), Some(now)) => *before != now,
            _ => false,
        }
    }

    /// Cores kept busy since the full scan before. `now` is when the CPU time was read. A look in
    /// between tells what the scan before told, or, of a new job, what it has done since its first.
    pub fn rate(
        &mut self,
        total: Option<Duration>,
        now: Instant,
        full: bool,
        least: Duration,
    ) -> Option<f64> {
        let total = total?;
        let Some((then, earlier)) = self.before else {
            self.before = Some((now, total));
            return None;
        };
        // The kernel's account moves in ticks: over a few of them a rate is chance.
        let elapsed = now.saturating_duration_since(then);
        if elapsed < least || (!full && self.busy.is_some()) {
            return self.busy;
        }
        let elapsed = elapsed.as_secs_f64();
        let busy = (elapsed > 0.0).then(|| total.saturating_sub(earlier).as_secs_f64() / elapsed);
        if full {
            self.before = Some((now, total));
            self.busy = busy;
        }
        busy
    }

    /// Whose it is: by the path, else by its processes. Root's are no proof while another's may
    /// come: Slurm's own start before the user's.
    pub fn owner(&mut self, by_path: Option<Uid>, found: &Found, proc: &mut Proc) -> Option<Uid> {
        if self.owner.is_none() {
            self.owner = by_path;
        }
        if self.owner.is_some() {
            return self.owner;
        }
        let mut root = None;
        for (id, _) in &found.first {
            match proc.real_uid(id.pid) {
                Ok(0) => root = Some(Uid::new(0)),
                Ok(uid) => {
                    self.owner = Some(Uid::new(uid));
                    return self.owner;
                }
                Err(_) => {}
            }
        }
        root
    }

    /// Forgets what Slurm told the job's processes, but for what a requeue is told by.
    pub fn forget_environment(&mut self) {
        if let Some(known) = self.environment.take() {
            self.restarts_before = Some(known.restarts);
        }
    }

    /// Looks for what Slurm told the job's processes, unless it is known.
    pub fn learn_environment(
        &mut self,
        job: JobId,
        found: &Found,
        risky: &mut Risky,
        errors: &mut Errors,
    ) {
        let mut looked_at = 0;
        for (id, stat) in &found.first {
            if self.environment.is_some()
                || looked_at == ENVIRONMENTS_A_SCAN
                || self.environments_read.len() >= ENVIRONMENTS_A_RUN
            {
                return;
            }
            // Reading takes the target's memory lock; one that sleeps in the kernel may hold it.
            // The name tells a process from what it was before it began another program.
            if stat.state == 'D' || !self.environments_read.insert((*id, stat.name.clone())) {
                continue;
            }
            looked_at += 1;
            let read = environment::read(risky, *id);
            if matches!(read, Err(ReadError::Stuck { .. } | ReadError::Vanished { .. })) {
                // Its one reader may come back, or it is in the middle of an exec.
                self.environments_read.remove(&(*id, stat.name.clone()));
            }
            if let Some(read) = errors.take(read)
                && read.job.as_deref() == Some(job.to_string().as_str())
            {
                self.environment = Some(read);
                self.environments_read.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// SARC's counter has nanoseconds: 0, 30e9 and 90e9 of them. What was busy on average and at most
    /// is made of these, and judged by `irregular-cpu`.
    #[test]
    fn n8_one_core_is_busy_in_the_first_half_minute_and_two_in_the_second() {
        let (start, mut run) = (Instant::now(), Run::new(None, None));
        let scans = [(0, 0), (30, 30_000_000_000), (60, 90_000_000_000)];
        let busy = scans.map(|(at, nanos)| {
            run.rate(Some(Duration::from_nanos(nanos)), start + seconds(at), true, seconds(1))
        });
        assert_eq!(busy, [None, Some(1.0), Some(2.0)]);
    }

    #[test]
    fn a_look_between_scans_tells_the_rate_of_the_scan_before_and_a_counter_that_fell_is_no_use() {
        let (start, mut run) = (Instant::now(), Run::new(None, None));
        let mut rate =
            |at, cpu, full| run.rate(Some(seconds(cpu)), start + seconds(at), full, seconds(1));
        assert_eq!(rate(0, 0, true), None);
        assert_eq!(rate(10, 20, false), Some(2.0), "a new job's, since its first scan");
        assert_eq!(rate(30, 30, true), Some(1.0), "since the scan before, not the look");
        assert_eq!(rate(40, 70, false), Some(1.0));
        assert_eq!(rate(60, 20, true), Some(0.0));
        assert_eq!(run.rate(None, start + seconds(90), true, seconds(1)), None);
    }
}
