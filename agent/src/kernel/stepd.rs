//! Slurm's own daemon beside a job's processes: never counted as the job, and the sign that a job
//! without processes is idle rather than over.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use steward_common::id::JobId;
use steward_common::slurm::stepd;

use super::cgroup::Pid;
use super::process::{Proc, Stat};

/// As the kernel cuts it to 15 bytes.
const NAME: &str = "slurmstepd";

/// Whether this process is a slurmstepd: root's, by that name. A user may take the name, not the
/// owner.
pub fn is_stepd(proc: &mut Proc, pid: Pid, stat: &Stat) -> bool {
    stat.name == NAME && proc.real_uid(pid).is_ok_and(|uid| uid == 0)
}

/// What the extern step runs to keep itself alive: not the job's doing.
const PLACEHOLDER: &[u8] = b"sleep\x00100000000\x00";

/// Whether this process of an extern step is its placeholder.
pub fn is_placeholder(proc: &mut Proc, pid: Pid, stat: &Stat) -> bool {
    stat.name == "sleep" && proc.command_line(pid).is_ok_and(|line| line == PLACEHOLDER)
}

/// The jobs that a slurmstepd on this host looks after, by the titles of those processes.
///
/// Looked up at most once a scan, and only if some job directory has no process.
#[derive(Debug, Default)]
pub struct LiveSteps {
    jobs: OnceCell<BTreeSet<JobId>>,
}

impl LiveSteps {
    /// Whether a slurmstepd looks after `job`.
    pub fn has(&self, job: JobId, proc: &mut Proc) -> bool {
        self.jobs.get_or_init(|| titles(proc)).contains(&job)
    }
}

/// The job of a directory that has no number in its name, told by the title of one of the
/// slurmstepds in it.
pub fn job_of(stepds: &BTreeSet<Pid>, proc: &mut Proc) -> Option<JobId> {
    stepds.iter().find_map(|pid| job_by_title(proc, *pid))
}

fn titles(proc: &mut Proc) -> BTreeSet<JobId> {
    let Ok(entries) = std::fs::read_dir(proc.root()) else { return BTreeSet::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<Pid>().ok())
        .filter_map(|pid| job_by_title(proc, pid))
        .collect()
}

fn job_by_title(proc: &mut Proc, pid: Pid) -> Option<JobId> {
    let stat = proc.stat(pid).ok()?;
    is_stepd(proc, pid, &stat).then_some(())?;
    let title = proc.command_line(pid).ok()?;
    let title = String::from_utf8_lossy(&title);
    stepd::title(title.trim_end_matches('\0')).map(|(job, _)| job)
}
