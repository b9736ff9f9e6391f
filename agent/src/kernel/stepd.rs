//! Slurm's own daemon beside a job's processes: never counted as the job, and the sign that a job
//! without processes is idle rather than over.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steward_common::id::JobId;
use steward_common::slurm::stepd;

use super::cgroup::Pid;
use super::process::{Handle, Stat};

/// As the kernel cuts it to 15 bytes.
const NAME: &str = "slurmstepd";

/// Whether this process is a slurmstepd: root's, by that name. A user may take the name, not the
/// owner.
#[must_use]
pub fn is_stepd(process: &Handle, stat: &Stat) -> bool {
    stat.name == NAME && process.real_uid().is_ok_and(|uid| uid == 0)
}

/// The jobs that a slurmstepd on this host looks after, by the titles of those processes.
///
/// Looked up at most once a scan, and only if some job directory has no process.
#[derive(Debug)]
pub struct LiveSteps {
    proc_root: PathBuf,
    jobs: OnceCell<BTreeSet<JobId>>,
}

impl LiveSteps {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(proc_root: &Path) -> Self {
        Self { proc_root: proc_root.to_path_buf(), jobs: OnceCell::new() }
    }

    /// Whether a slurmstepd looks after `job`.
    #[must_use]
    pub fn has(&self, job: JobId) -> bool {
        self.jobs.get_or_init(|| titles(&self.proc_root)).contains(&job)
    }
}

/// The job of a directory that has no number in its name, told by the title of one of the
/// slurmstepds in it.
#[must_use]
pub fn job_of(proc_root: &Path, stepds: &BTreeSet<Pid>) -> Option<JobId> {
    stepds.iter().find_map(|pid| job_by_title(proc_root, *pid))
}

fn titles(proc_root: &Path) -> BTreeSet<JobId> {
    let Ok(entries) = std::fs::read_dir(proc_root) else {
        return BTreeSet::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<Pid>().ok())
        .filter_map(|pid| job_by_title(proc_root, pid))
        .collect()
}

fn job_by_title(proc_root: &Path, pid: Pid) -> Option<JobId> {
    let process = Handle::open(proc_root, pid).ok()?;
    is_stepd(&process, &process.stat().ok()?).then_some(())?;
    let title = process.bytes("cmdline").ok()?;
    let title = String::from_utf8_lossy(&title);
    stepd::title(title.trim_end_matches('\0')).map(|(job, _)| job)
}
