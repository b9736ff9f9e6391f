//! Slurm's own daemon beside a job's processes: never counted as the job, and the sign that a job
//! without processes is idle rather than over.

use std::collections::{BTreeSet, HashMap};

use steward_common::id::JobId;
use steward_common::slurm::stepd;

use super::cgroup::Pid;
use super::process::{Proc, ProcessId, Stat};
use super::risky::Risky;

/// As the kernel cuts it to 15 bytes.
const NAME: &str = "slurmstepd";

/// Whether this process is a slurmstepd: root's, by that name. A user may take the name, not the
/// owner.
pub fn is_stepd(proc: &mut Proc, pid: Pid, stat: &Stat) -> bool {
    stat.name == NAME && proc.real_uid(pid).is_ok_and(|uid| uid == 0)
}

/// What the extern step runs to keep itself alive: not the job's doing.
const PLACEHOLDER: &[u8] = b"sleep\x00100000000\x00";

/// Whether this process of an extern step is its placeholder; `None` if it does not say now.
pub fn is_placeholder(risky: &mut Risky, id: ProcessId, stat: &Stat) -> Option<bool> {
    if stat.state == 'D' {
        return None;
    }
    let line = risky.read(id, "cmdline").ok()?;
    // In the middle of an exec there is none.
    (!line.is_empty()).then(|| line == PLACEHOLDER)
}

/// The jobs that slurmstepds on this host look after, by the titles of those processes. A title is
/// read once in the life of its process.
#[derive(Debug, Default)]
pub struct LiveSteps {
    titles: HashMap<ProcessId, JobId>,
    /// Jobs without one, and for how many scans more that is believed.
    absent: HashMap<JobId, u32>,
    listed: bool,
}

/// Listing all processes is dear; a directory that was left behind stays so.
const LIST_EVERY: u32 = 20;

impl LiveSteps {
    /// A new scan may list the processes once more, if some job directory has none.
    pub fn begin_scan(&mut self) {
        self.listed = false;
        self.absent.retain(|_, scans| {
            *scans = scans.saturating_sub(1);
            *scans > 0
        });
    }

    /// Whether a slurmstepd looks after `job`; the one of a `new` job may come any moment.
    pub fn has(&mut self, job: JobId, new: bool, proc: &mut Proc, risky: &mut Risky) -> bool {
        let known = |titles: &HashMap<ProcessId, JobId>, risky: &mut Risky| {
            titles.iter().any(|(id, of)| {
                *of == job && risky.stat(id.pid).is_ok_and(|stat| stat.started == id.started)
            })
        };
        if known(&self.titles, risky) {
            return true;
        }
        if !new && self.absent.contains_key(&job) {
            return false;
        }
        if !self.listed {
            self.listed = true;
            self.list(proc, risky);
        }
        let found = known(&self.titles, risky);
        if !found {
            self.absent.insert(job, LIST_EVERY);
        }
        found
    }

    fn list(&mut self, proc: &mut Proc, risky: &mut Risky) {
        let Ok(entries) = std::fs::read_dir(proc.root()) else { return };
        let pids: Vec<Pid> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        let mut titles = HashMap::new();
        for pid in pids {
            let Some(id) = by_name(pid, proc, risky) else { continue };
            let job = self.titles.get(&id).copied().or_else(|| title(id, risky));
            titles.extend(job.map(|job| (id, job)));
        }
        self.titles = titles;
    }
}

/// The job of a directory that has no number in its name, told by the title of one of the
/// slurmstepds in it.
pub fn job_of(stepds: &BTreeSet<Pid>, proc: &mut Proc, risky: &mut Risky) -> Option<JobId> {
    stepds.iter().find_map(|pid| {
        let id = by_name(*pid, proc, risky)?;
        title(id, risky)
    })
}

/// This process, if it is a slurmstepd. The files that tell it answer at once, whatever the process
/// is: any on the host may be asked.
fn by_name(pid: Pid, proc: &mut Proc, risky: &mut Risky) -> Option<ProcessId> {
    (proc.name(pid).ok()? == NAME.as_bytes() && proc.real_uid(pid).ok()? == 0).then_some(())?;
    Some(ProcessId { pid, started: risky.stat(pid).ok()?.started })
}

fn title(id: ProcessId, risky: &mut Risky) -> Option<JobId> {
    let line = risky.read(id, "cmdline").ok()?;
    let line = String::from_utf8_lossy(&line);
    stepd::title(line.trim_end_matches('\0')).map(|(job, _)| job)
}
