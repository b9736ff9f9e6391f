//! One run of a job on a node, from its first sight to its last.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use steward_common::id::{JobId, Uid};
use steward_common::slurm::sluid::Sluid;

use crate::group::{Found, Group};
use crate::kernel::environment::{self, Environment};
use crate::kernel::error::Errors;
use crate::kernel::process::{Proc, ProcessId};
use crate::ledger::{CpuLedger, IoBase, IoLedger};
use crate::node::JobSample;

/// How many environments of one job are looked at in one scan; the first is nearly always the one.
const ENVIRONMENTS_A_SCAN: usize = 4;

/// After so many in vain, a job whose processes cleaned their environment is left alone.
const ENVIRONMENTS_A_RUN: usize = 32;

/// What the next scan must know about a job.
#[derive(Debug, Default)]
pub struct Run {
    /// The id that tells requeues apart, from Slurm 26.05 on.
    pub sluid: Option<Sluid>,
    /// CPU time so far.
    pub cpu: CpuLedger,
    /// I/O so far.
    pub io: IoLedger,
    /// Its processes.
    pub group: Group,
    /// What Slurm told its processes.
    pub environment: Option<Environment>,
    /// The last sample.
    pub last: Option<JobSample>,
    /// For how many scans it has been gone.
    pub lingered: u32,
    /// Left by an agent that has been away for long: another directory is another run.
    pub same_directory_only: bool,
    owner: Option<Uid>,
    environments_read: HashSet<(ProcessId, String)>,
    before: Option<(Instant, Duration)>,
    /// SLURM_RESTART_COUNT when the environment was last learnt; the inner one is Slurm's own.
    restarts_before: Option<Option<String>>,
}

impl Run {
    /// A run that begins.
    pub fn new(sluid: Option<Sluid>, environment: Option<Environment>) -> Self {
        Self { sluid, environment, ..Self::default() }
    }

    /// A run that an earlier agent saw.
    pub fn resumed(
        sluid: Option<Sluid>,
        restarts: Option<String>,
        cpu: CpuLedger,
        io: IoBase,
    ) -> Self {
        let io = IoLedger::resumed(io);
        Self { sluid, cpu, io, restarts_before: Some(restarts), ..Self::default() }
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

    /// Cores kept busy since the scan before. `now` is when the CPU time was read.
    pub fn rate(&mut self, total: Option<Duration>, now: Instant) -> Option<f64> {
        let total = total?;
        let (then, earlier) = self.before.replace((now, total))?;
        let elapsed = now.saturating_duration_since(then).as_secs_f64();
        (elapsed > 0.0).then(|| total.saturating_sub(earlier).as_secs_f64() / elapsed)
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
        for (id, _) in &found.processes {
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
        proc: &mut Proc,
        errors: &mut Errors,
    ) {
        let mut looked_at = 0;
        for (id, stat) in &found.processes {
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
            let read = proc.handle(*id).and_then(|handle| environment::read(&handle));
            if let Some(read) = errors.take(read)
                && read.job.as_deref() == Some(job.to_string().as_str())
            {
                self.environment = Some(read);
                self.environments_read.clear();
            }
        }
    }
}
