//! The queue counted: by state, partition, account, user and reason, in one pass.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::job::CurrentJob;
use crate::slurm::state::JobState;
use crate::unit::Bytes;

/// What a job does that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waits.
    Pending,
    /// Holds its nodes.
    Running,
    /// Is suspended.
    Suspended,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 3] = [Phase::Pending, Phase::Running, Phase::Suspended];

    /// The word for labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Running => "running",
            Phase::Suspended => "suspended",
        }
    }

    /// The phase of a job; `None` if it has ended or is in a state that is none of them.
    #[must_use]
    pub fn of(job: &CurrentJob) -> Option<Phase> {
        if job.state.is_pending() {
            Some(Phase::Pending)
        } else if job.state == JobState::Suspended {
            Some(Phase::Suspended)
        } else {
            job.holds_nodes().then_some(Phase::Running)
        }
    }
}

/// How many jobs, and what they hold or ask for. What is not known of a job adds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Jobs, array tasks counted each.
    pub jobs: u64,
    /// CPUs.
    pub cpus: u64,
    /// GPUs.
    pub gpus: u64,
    /// Bytes of memory.
    pub memory: u64,
}

impl Load {
    fn of(job: &CurrentJob) -> Load {
        let tasks = job.tasks();
        let times = |amount: u64| amount.saturating_mul(tasks);
        Load {
            jobs: tasks,
            cpus: times(job.cpus.unwrap_or(0)),
            gpus: times(job.gpus.total),
            memory: times(job.memory.map_or(0, Bytes::get)),
        }
    }

    fn add(&mut self, other: Load) {
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.cpus = self.cpus.saturating_add(other.cpus);
        self.gpus = self.gpus.saturating_add(other.gpus);
        self.memory = self.memory.saturating_add(other.memory);
    }
}

/// The jobs of somebody, by phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loads {
    pending: Load,
    running: Load,
    suspended: Load,
}

impl Loads {
    /// Those of a phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Load {
        match phase {
            Phase::Pending => self.pending,
            Phase::Running => self.running,
            Phase::Suspended => self.suspended,
        }
    }

    fn add(&mut self, phase: Phase, load: Load) {
        match phase {
            Phase::Pending => self.pending.add(load),
            Phase::Running => self.running.add(load),
            Phase::Suspended => self.suspended.add(load),
        }
    }

    fn join(&mut self, other: &Loads) {
        for phase in Phase::ALL {
            self.add(phase, other.get(phase));
        }
    }

    fn jobs(&self) -> u64 {
        Phase::ALL.iter().fold(0, |sum, phase| sum.saturating_add(self.get(*phase).jobs))
    }
}

/// Loads by name.
pub type ByName = HashMap<Arc<str>, Loads>;

/// A queue, counted.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Jobs by Slurm's state.
    pub states: BTreeMap<String, u64>,
    /// Loads by partition. A job that waits for several counts in each.
    pub partitions: ByName,
    /// Loads by account.
    pub accounts: ByName,
    /// Loads by user, by number where there is no name.
    pub users: ByName,
    /// Jobs that wait, by reason.
    pub reasons: HashMap<Arc<str>, u64>,
    /// Jobs by the host that they were submitted from.
    pub hosts: HashMap<Arc<str>, u64>,
    /// Jobs that wait for another job.
    pub dependent: u64,
}

impl Tally {
    /// Counts jobs.
    #[must_use]
    pub fn of(jobs: &[CurrentJob]) -> Tally {
        let mut tally = Tally::default();
        let mut states: HashMap<&str, u64> = HashMap::new();
        for job in jobs {
            *states.entry(job.state.name()).or_default() += job.tasks();
            if let Some(host) = &job.submit_host {
                *tally.hosts.entry(Arc::clone(host)).or_default() += job.tasks();
            }
            let Some(phase) = Phase::of(job) else { continue };
            let load = Load::of(job);
            for partition in job.partition.split(',') {
                put(&mut tally.partitions, &job.partition, partition, phase, load);
            }
            put(&mut tally.accounts, &job.account, &job.account, phase, load);
            if job.user.is_empty() {
                let uid: Arc<str> = Arc::from(job.uid.map_or(String::new(), |uid| uid.to_string()));
                put(&mut tally.users, &uid, &uid, phase, load);
            } else {
                put(&mut tally.users, &job.user, &job.user, phase, load);
            }
            if phase == Phase::Pending {
                let reason = job.reason.clone().unwrap_or_else(|| Arc::from("None"));
                if reason.starts_with("Dependency") {
                    tally.dependent += load.jobs;
                }
                *tally.reasons.entry(reason).or_default() += load.jobs;
            }
        }
        tally.states = states.into_iter().map(|(state, jobs)| (state.to_owned(), jobs)).collect();
        tally
    }
}

/// Adds under `name`, of which `whole` is the shared copy if there is nothing else in it.
fn put(all: &mut ByName, whole: &Arc<str>, name: &str, phase: Phase, load: Load) {
    if let Some(loads) = all.get_mut(name) {
        loads.add(phase, load);
    } else {
        let key = if whole.len() == name.len() { Arc::clone(whole) } else { Arc::from(name) };
        all.entry(key).or_default().add(phase, load);
    }
}

/// The name of all that are beyond a limit.
pub const OTHER: &str = "other";

/// The `most` names with the most jobs, in order of names, and the rest as [`OTHER`]; and how many
/// that were.
#[must_use]
pub fn top(all: &ByName, most: usize) -> (BTreeMap<&str, Loads>, u64) {
    cut(all, most, Loads::jobs, Loads::join)
}

/// The same for plain counts.
#[must_use]
pub fn top_counts(all: &HashMap<Arc<str>, u64>, most: usize) -> (BTreeMap<&str, u64>, u64) {
    cut(all, most, |count| *count, |sum, count| *sum = sum.saturating_add(*count))
}

fn cut<T: Copy + Default>(
    all: &HashMap<Arc<str>, T>,
    most: usize,
    weight: impl Fn(&T) -> u64,
    join: impl Fn(&mut T, &T),
) -> (BTreeMap<&str, T>, u64) {
    let mut names: Vec<(&str, &T)> = all.iter().map(|(name, what)| (&**name, what)).collect();
    let mut folded = 0;
    let mut kept = BTreeMap::new();
    if names.len() > most {
        names.sort_unstable_by(|(a, x), (b, y)| weight(y).cmp(&weight(x)).then(a.cmp(b)));
        for (_, what) in names.drain(most..) {
            join(kept.entry(OTHER).or_default(), what);
            folded += 1;
        }
    }
    for (name, what) in names {
        join(kept.entry(name).or_default(), what);
    }
    (kept, folded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_name(counts: &[(&str, u64)]) -> HashMap<Arc<str>, u64> {
        counts.iter().map(|(name, count)| (Arc::from(*name), *count)).collect()
    }

    #[test]
    fn beyond_the_limit_is_other_and_counted() {
        let all = by_name(&[("a", 1), ("b", 5), ("c", 5), ("d", 2)]);
        let (kept, folded) = top_counts(&all, 2);
        assert_eq!(kept, [("b", 5), ("c", 5), (OTHER, 3)].into());
        assert_eq!(folded, 2);
        assert_eq!(top_counts(&all, 4).1, 0);
        let all = by_name(&[("other", 9), ("a", 1)]);
        let (kept, _) = top_counts(&all, 1);
        assert_eq!(kept, [(OTHER, 10)].into(), "one whose name it is");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_by_cutting(counts in prop::collection::hash_map("[a-z]{1,3}", 0..1000u64, 0..30), most in 0..40usize) {
            let all: HashMap<Arc<str>, u64> =
                counts.iter().map(|(name, count)| (Arc::from(name.as_str()), *count)).collect();
            let (kept, folded) = top_counts(&all, most);
            prop_assert_eq!(kept.values().sum::<u64>(), counts.values().sum::<u64>());
            prop_assert!(kept.len() <= most + 1);
            prop_assert_eq!(folded as usize, counts.len().saturating_sub(most));
        }
    }
}
