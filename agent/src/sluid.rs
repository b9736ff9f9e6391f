//! Which job a SLUID names: Slurm 26.05 and later call a job's directory by it.
//!
//! The title of the slurmstepd in the directory says it, and root wrote that. The environment of a
//! process says it too, in a user's hand. The names of slurmstepd sockets say which jobs there are:
//! the title's must be among them, and the only one that is nobody's is that of the only directory
//! without a name. Where they disagree, the title is believed and the disagreement counted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use steward_common::id::{JobId, NodeName};
use steward_common::slurm::sluid::Sluid;
use steward_common::slurm::stepd as text;

use crate::kernel::environment::{self, Environment};
use crate::kernel::error::{Errors, Reason};
use crate::kernel::members::Members;
use crate::kernel::process::{Proc, ProcessId};
use crate::kernel::risky::Risky;
use crate::kernel::stepd;

/// How many processes are asked for a job whose slurmstepd says nothing.
const ENVIRONMENTS: usize = 4;

/// SLUIDs whose job is known.
#[derive(Debug, Default)]
pub struct Sluids {
    known: HashMap<Sluid, JobId>,
    /// By a user's word, until root's is heard.
    by_word: HashMap<Sluid, JobId>,
    asked: HashSet<ProcessId>,
    /// Disagreement is counted once for each.
    doubted: BTreeSet<Sluid>,
}

impl Sluids {
    /// The job, if it has been found out.
    #[must_use]
    pub fn get(&self, sluid: Sluid) -> Option<JobId> {
        self.known.get(&sluid).copied()
    }

    /// Finds out which job the directory with these members is. `sockets` are the jobs that have a
    /// slurmstepd socket, if those can be listed; `alone` says that this directory has been there
    /// for a while and is the only one without a name.
    pub fn resolve(
        &mut self,
        sluid: Sluid,
        members: &Members,
        sockets: Option<&BTreeSet<JobId>>,
        alone: bool,
        (proc, risky): (&mut Proc, &mut Risky),
        errors: &mut Errors,
    ) -> Option<JobId> {
        if let Some(job) = stepd::job_of(&members.stepds, proc, risky) {
            if sockets.is_some_and(|sockets| !sockets.contains(&job)) {
                self.doubt(sluid, errors);
            }
            self.known.insert(sluid, job);
            return Some(job);
        }
        if !self.by_word.contains_key(&sluid) {
            let told = self.by_environment(sluid, members, risky);
            self.by_word.extend(told.map(|job| (sluid, job)));
        }
        let told = self.by_word.get(&sluid).copied();
        told.or_else(|| self.by_elimination(sockets.filter(|_| alone)?))
    }

    /// The job that a process with this SLUID in its environment names.
    fn by_environment(
        &mut self,
        sluid: Sluid,
        members: &Members,
        risky: &mut Risky,
    ) -> Option<JobId> {
        members.processes.iter().take(ENVIRONMENTS).find_map(|pid| {
            let stat = risky.stat(*pid).ok().filter(|stat| stat.state != 'D')?;
            let id = ProcessId { pid: *pid, started: stat.started };
            self.asked.insert(id).then_some(())?;
            let told = environment::read(risky, id).ok()?;
            (told.sluid.as_deref()?.parse() == Ok(sluid)).then_some(())?;
            told.job?.parse().ok()
        })
    }

    /// Compares what a process was told with what is known.
    pub fn confirm(&mut self, sluid: Sluid, job: JobId, told: &Environment, errors: &mut Errors) {
        let other_sluid = told.sluid.as_deref().is_some_and(|text| text.parse() != Ok(sluid));
        let other_job = told.job.as_deref().is_some_and(|text| text.parse() != Ok(job));
        if other_sluid || other_job {
            self.doubt(sluid, errors);
        }
    }

    /// Forgets those that are gone.
    pub fn retain(&mut self, present: &BTreeSet<Sluid>) {
        self.known.retain(|sluid, _| present.contains(sluid));
        self.by_word.retain(|sluid, _| present.contains(sluid));
        if present.len() == self.known.len() {
            self.asked.clear();
        }
        self.doubted.retain(|sluid| present.contains(sluid));
    }

    /// The one job that has a socket and is no other directory's.
    fn by_elimination(&self, sockets: &BTreeSet<JobId>) -> Option<JobId> {
        let mut free = sockets.iter().filter(|job| !self.known.values().any(|taken| taken == *job));
        let only = free.next().copied();
        if free.next().is_none() { only } else { None }
    }

    fn doubt(&mut self, sluid: Sluid, errors: &mut Errors) {
        if self.doubted.insert(sluid) {
            errors.count(Reason::Identity);
        }
    }
}

/// The jobs of `node` that have a slurmstepd socket in `dir`; `None` if it cannot be listed.
pub fn sockets(dir: &Path, node: &NodeName) -> Option<BTreeSet<JobId>> {
    let entries = std::fs::read_dir(dir).ok()?;
    let jobs = entries.filter_map(|entry| {
        let (of, job, _) = text::socket(entry.ok()?.file_name().to_str()?)?;
        (of == *node).then_some(job)
    });
    Some(jobs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u32) -> JobId {
        JobId::new(id).unwrap()
    }

    fn sluid() -> Sluid {
        "s5K1KKYAYG5D00".parse().unwrap()
    }

    fn told(job: &str, sluid: Option<&str>) -> Environment {
        let (job, sluid) = (Some(job.to_owned()), sluid.map(str::to_owned));
        Environment { job, sluid, ..Environment::default() }
    }

    #[test]
    fn disagreement_is_counted_once_for_each() {
        let (mut sluids, mut errors) = (Sluids::default(), Errors::default());
        sluids.confirm(sluid(), job(7), &told("7", None), &mut errors);
        sluids.confirm(sluid(), job(7), &told("7", Some("s5K1KKYAYG5D00")), &mut errors);
        assert_eq!(errors.counts().count(), 0);
        sluids.confirm(sluid(), job(7), &told("8", None), &mut errors);
        sluids.confirm(sluid(), job(7), &told("7", Some("s5K1KKYAYG5D01")), &mut errors);
        assert_eq!(errors.counts().collect::<Vec<_>>(), [(Reason::Identity, 1)]);
    }

    #[test]
    fn the_only_socket_that_is_nobodys_names_the_job() {
        let mut sluids = Sluids::default();
        assert_eq!(sluids.by_elimination(&BTreeSet::from([job(1)])), Some(job(1)));
        assert_eq!(sluids.by_elimination(&BTreeSet::from([job(1), job(2)])), None);
        sluids.known.insert(sluid(), job(1));
        assert_eq!(sluids.by_elimination(&BTreeSet::from([job(1), job(2)])), Some(job(2)));
        assert_eq!(sluids.by_elimination(&BTreeSet::new()), None);
    }

    #[test]
    fn sockets_are_those_of_the_node() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["n1_7.4294967291", "n1_7.0", "n1_8.0", "n2_9.0", "cred_state", "n1_x.0"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let node: NodeName = "n1".parse().unwrap();
        assert_eq!(sockets(dir.path(), &node), Some(BTreeSet::from([job(7), job(8)])));
        assert_eq!(sockets(&dir.path().join("absent"), &node), None);
    }
}
