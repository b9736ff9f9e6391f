//! The threads of a job: what they do, where they may run, and how often they were put aside.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::kernel::cgroup::Pid;
use crate::kernel::cpu_set::CpuSet;
use crate::kernel::process::ProcessId;
use crate::kernel::thread::Threads;
use crate::table::Table;

/// Sums over the threads of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTotals {
    /// Those that run or would if a CPU were free (state `R`).
    pub running: u64,
    /// Those that nothing can wake but what they wait for, mostly I/O (state `D`).
    pub uninterruptible: u64,
    /// Those that may use only a part of the job's CPUs.
    pub confined: u64,
    /// How many CPUs there are that some thread may use.
    pub cpus_reachable: u64,
    /// How often a thread was put aside while it wanted to go on; ended threads included, up to
    /// when they were last seen.
    pub involuntary_switches: u64,
}

/// What is kept of the threads over a restart of the agent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct ThreadBase {
    involuntary_switches: u64,
}

/// A thread, sorted by its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ThreadId {
    pid: Pid,
    started: u64,
    tid: Pid,
}

impl ThreadId {
    const fn new(process: ProcessId, tid: Pid) -> Self {
        Self { pid: process.pid, started: process.started, tid }
    }
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    switches: u64,
    /// Whether this scan has met it.
    met: bool,
}

/// What the scan that is under way has met.
#[derive(Debug, Default)]
struct Met {
    running: u64,
    uninterruptible: u64,
    /// How many threads have which CPUs.
    cpus: HashMap<CpuSet, u64>,
    /// See [`ThreadLedger::unmet`].
    unmet: HashSet<Pid>,
}

/// The threads of a job from scan to scan, so that the switches of ended ones stay in the total.
#[derive(Debug, Default)]
pub struct ThreadLedger {
    switches: u64,
    live: Table<ThreadId, Seen>,
    met: Met,
    /// After a restart of the agent and before it has met the job: the threads that it meets are
    /// in the total that was kept.
    resuming: bool,
    /// Processes that could not be read then; the same holds when they can.
    unmet: HashSet<Pid>,
}

impl ThreadLedger {
    /// Goes on from what an earlier agent knew. What the threads did while there was no agent is
    /// lost: nothing is counted twice.
    #[must_use]
    pub fn resumed(kept: ThreadBase) -> Self {
        Self { switches: kept.involuntary_switches, resuming: true, ..Self::default() }
    }

    /// What a restarted agent must know.
    #[must_use]
    pub const fn base(&self) -> ThreadBase {
        ThreadBase { involuntary_switches: self.switches }
    }

    /// Begins a scan of `processes` processes.
    pub fn begin(&mut self, processes: usize) {
        self.live.iter_mut().for_each(|(_, seen)| seen.met = false);
        self.live.make_room(processes);
        self.met = Met::default();
    }

    /// A process of this scan.
    pub fn see(&mut self, process: ProcessId, threads: &Threads) {
        let counted_before = self.resuming || self.unmet.contains(&process.pid);
        for thread in &threads.list {
            self.met.running += u64::from(thread.state == 'R');
            self.met.uninterruptible += u64::from(thread.state == 'D');
            // An ended one runs nowhere.
            if !matches!(thread.state, 'Z' | 'X') {
                match self.met.cpus.get_mut(&thread.cpus) {
                    Some(count) => *count += 1,
                    None => _ = self.met.cpus.insert(thread.cpus.clone(), 1),
                }
            }
            let switches = thread.involuntary_switches;
            let seen = Seen { switches, met: true };
            let grown = match self.live.insert(ThreadId::new(process, thread.tid), seen) {
                // A lower value is that of a new thread under an old number.
                Some(last) => switches.checked_sub(last.switches).unwrap_or(switches),
                None if counted_before => 0,
                None => switches,
            };
            self.switches = self.switches.saturating_add(grown);
        }
        for tid in &threads.unread {
            if let Some(seen) = self.live.get_mut(ThreadId::new(process, *tid)) {
                seen.met = true;
            } else if counted_before {
                self.met.unmet.insert(process.pid);
            }
        }
    }

    /// A process that is there and whose threads could not be read: they stand as they were. False
    /// if they were never read.
    pub fn keep(&mut self, pid: Pid) -> bool {
        if self.resuming || self.unmet.contains(&pid) {
            self.met.unmet.insert(pid);
        }
        let mut known = false;
        for (_, seen) in self.live.iter_mut().filter(|(id, _)| id.pid == pid) {
            seen.met = true;
            known = true;
        }
        known
    }

    /// Ends the scan and gives the job's totals. `cpuset` is what the job is confined to; if it is
    /// not, its CPUs are those that its threads may use.
    pub fn finish(&mut self, cpuset: Option<&[u32]>) -> ThreadTotals {
        self.live.retain(|seen| seen.met);
        let met = std::mem::take(&mut self.met);
        self.resuming &= self.live.is_empty();
        self.unmet = met.unmet;
        let mut reachable = CpuSet::default();
        met.cpus.keys().for_each(|cpus| reachable.add(cpus));
        let cpus_reachable = reachable.count();
        let all = cpuset.map_or(reachable, |cpus| cpus.iter().copied().collect());
        let confined = met.cpus.iter().filter(|(cpus, _)| cpus.is_part_of(&all));
        ThreadTotals {
            running: met.running,
            uninterruptible: met.uninterruptible,
            confined: confined.map(|(_, count)| count).sum(),
            cpus_reachable,
            involuntary_switches: self.switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::thread::Thread;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use std::path::Path;

    fn process(pid: Pid) -> ProcessId {
        ProcessId { pid, started: 1 }
    }

    fn threads(list: &[(Pid, u64)]) -> Threads {
        let thread = |(tid, involuntary_switches)| {
            let cpus = [0].into_iter().collect();
            Thread { tid, state: 'S', cpus, involuntary_switches }
        };
        Threads { list: list.iter().copied().map(thread).collect(), ..Threads::default() }
    }

    /// One scan that meets these threads of one process; their switches in all.
    fn scan(ledger: &mut ThreadLedger, list: &[(Pid, u64)]) -> u64 {
        ledger.begin(1);
        ledger.see(process(1), &threads(list));
        ledger.finish(None).involuntary_switches
    }

    fn restarted(ledger: &ThreadLedger) -> ThreadLedger {
        let text = serde_json::to_string(&ledger.base()).unwrap();
        ThreadLedger::resumed(serde_json::from_str(&text).unwrap())
    }

    /// One scan that meets these threads in two processes: each its state and its CPUs.
    fn totals(cpuset: Option<&[u32]>, met: &str) -> ThreadTotals {
        let mut ledger = ThreadLedger::default();
        ledger.begin(1);
        for (tid, word) in (1..).zip(met.split_whitespace()) {
            let mut one = threads(&[(tid, 1)]);
            one.list[0].state = word.chars().next().unwrap();
            one.list[0].cpus = CpuSet::parse(Path::new("status"), &word[1..]).unwrap();
            ledger.see(process(tid % 2), &one);
        }
        ledger.finish(cpuset)
    }

    #[test]
    fn states_are_summed_over_processes_and_an_ended_thread_runs_nowhere() {
        let sum = totals(None, "R0-1 D0 R0-1 Z9");
        assert_eq!((sum.running, sum.uninterruptible, sum.involuntary_switches), (2, 1, 4));
        assert_eq!((sum.confined, sum.cpus_reachable), (1, 2));
    }

    #[test]
    fn threads_are_measured_by_what_the_job_is_confined_to() {
        for (cpuset, met, expected) in [
            // All on one core of four: the classic mistake, seen only against the cpuset.
            (Some([0, 1, 2, 3].as_slice()), "S0 S0", (2, 1)),
            (None, "S0 S0", (0, 1)),
            (None, "S0 S1 S0-1", (2, 2)),
            (Some(&[0, 1]), "S0-1 S0-1", (0, 2)),
            // Not a part of the job's CPUs.
            (Some(&[0, 1]), "S0-2 S1-2", (0, 3)),
            (Some(&[0]), "", (0, 0)),
        ] {
            let sum = totals(cpuset, met);
            assert_eq!((sum.confined, sum.cpus_reachable), expected, "{met} of {cpuset:?}");
        }
    }

    #[test]
    fn ended_threads_and_processes_stay_in_the_total() {
        let mut ledger = ThreadLedger::default();
        assert_eq!(scan(&mut ledger, &[(1, 10), (2, 20)]), 30);
        assert_eq!(scan(&mut ledger, &[(1, 11)]), 31);
        assert_eq!(scan(&mut ledger, &[(1, 12), (3, 5)]), 37);
        assert_eq!(scan(&mut ledger, &[]), 37);
        // The number is used again: by a thread, then by another process.
        assert_eq!(scan(&mut ledger, &[(1, 12)]), 49);
        assert_eq!(scan(&mut ledger, &[(1, 3)]), 52);
        ledger.begin(1);
        ledger.see(ProcessId { pid: 1, started: 2 }, &threads(&[(1, 4)]));
        assert_eq!(ledger.finish(None).involuntary_switches, 56);
    }

    #[test]
    fn what_cannot_be_read_for_a_moment_is_not_counted_again() {
        let mut ledger = ThreadLedger::default();
        scan(&mut ledger, &[(1, 10), (2, 20)]);
        ledger.begin(1);
        ledger.see(process(1), &Threads { unread: vec![2], ..threads(&[(1, 10)]) });
        ledger.finish(None);
        assert_eq!(scan(&mut ledger, &[(1, 10), (2, 21)]), 31);
        ledger.begin(1);
        assert!(ledger.keep(1));
        assert!(!ledger.keep(2), "one that was never read is not known");
        assert_eq!(ledger.finish(None).involuntary_switches, 31);
        assert_eq!(scan(&mut ledger, &[(1, 11), (2, 21)]), 32);
    }

    #[test]
    fn a_restarted_agent_counts_nothing_twice() {
        let mut first = ThreadLedger::default();
        scan(&mut first, &[(1, 10), (2, 20)]);
        let mut ledger = restarted(&first);
        // A scan that meets nothing settles nothing.
        ledger.begin(1);
        assert_eq!(ledger.finish(None).involuntary_switches, 30);
        assert_eq!(scan(&mut ledger, &[(1, 14), (2, 20)]), 30);
        assert_eq!(scan(&mut ledger, &[(1, 15), (2, 20), (3, 2)]), 33);
    }

    #[test]
    fn a_process_that_a_restarted_agent_cannot_read_at_first_is_not_counted_twice() {
        let mut first = ThreadLedger::default();
        scan(&mut first, &[(1, 10)]);
        let mut ledger = restarted(&first);
        for _ in 0..2 {
            ledger.begin(1);
            ledger.see(process(7), &threads(&[(7, 100)]));
            ledger.keep(1);
            assert_eq!(ledger.finish(None).involuntary_switches, 10);
        }
        ledger.begin(1);
        ledger.see(process(7), &threads(&[(7, 100)]));
        ledger.see(process(1), &Threads { unread: vec![2], ..threads(&[(1, 12)]) });
        assert_eq!(ledger.finish(None).involuntary_switches, 10);
        assert_eq!(scan(&mut ledger, &[(1, 13), (2, 50)]), 11);
        assert_eq!(scan(&mut ledger, &[(1, 13), (2, 51), (3, 4)]), 16);
    }

    proptest! {
        #[test]
        fn the_total_never_goes_backwards_even_over_restarts(
            scans in vec((btree_map(1..6_u32, 0..=u64::MAX / 64, 0..6), 0..8), 1..30),
        ) {
            let (mut ledger, mut last) = (ThreadLedger::default(), 0);
            for (met, dice) in scans {
                if dice == 0 {
                    ledger = restarted(&ledger);
                }
                let total = scan(&mut ledger, &met.into_iter().collect::<Vec<_>>());
                prop_assert!(total >= last);
                last = total;
            }
        }
    }
}
