//! Counters that never go backwards within a run of a job.
//!
//! The kernel's own start anew when a directory is re-created, and lose what a process did when it
//! ends. Here stands what went before.

use std::collections::HashMap;
use std::time::Duration;

use crate::kernel::cgroup::{CpuStats, Pid};
use crate::kernel::process::{Io, ProcessId};

/// One CPU time that goes on when its directory is made anew.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    base: Duration,
    last: Duration,
}

impl Counter {
    /// A lower value in the same directory is the kernel's rounding, not a new start: it is held.
    fn observe(&mut self, raw: Duration, recreated: bool) -> Duration {
        if recreated {
            self.base += self.last;
            self.last = raw;
        } else {
            self.last = self.last.max(raw);
        }
        self.base + self.last
    }
}

/// The CPU times of a job.
#[derive(Debug, Default)]
pub struct CpuLedger {
    generation: Option<u64>,
    total: Counter,
    user: Counter,
    system: Counter,
    cores: HashMap<u32, Counter>,
}

impl CpuLedger {
    /// Takes what the kernel says now; `generation` tells one making of the directory from the next.
    pub fn observe(&mut self, now: CpuStats, generation: Option<u64>) -> CpuStats {
        let recreated = self.generation.is_some() && generation != self.generation;
        self.generation = generation;
        let cores = now.cores.map(|cores| {
            cores
                .into_iter()
                .map(|(core, raw)| {
                    (core, self.cores.entry(core).or_default().observe(raw, recreated))
                })
                .collect()
        });
        CpuStats {
            total: now.total.map(|raw| self.total.observe(raw, recreated)),
            user: now.user.map(|raw| self.user.observe(raw, recreated)),
            system: now.system.map(|raw| self.system.observe(raw, recreated)),
            cores,
        }
    }
}

/// A process and its I/O as last seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its parent at that time.
    pub parent: Pid,
    /// What it had read and written, its reaped children included.
    pub io: Io,
}

/// The I/O of a job: that of its live processes, and that of ended ones which nobody carries on.
///
/// When a process is waited for, the kernel adds its I/O to the parent's. So an ended process
/// counts here only if no process of the job took it over; else it would count twice.
#[derive(Debug, Default)]
pub struct IoLedger {
    base: [u64; 6],
    live: HashMap<ProcessId, Seen>,
    shown: [u64; 6],
}

impl IoLedger {
    /// The processes of the last observation.
    pub fn live(&self) -> impl Iterator<Item = (&ProcessId, &Seen)> {
        self.live.iter()
    }

    /// Takes the processes of this scan (a zombie that nobody has waited for is one of them) and
    /// gives the job's totals.
    pub fn observe(&mut self, now: HashMap<ProcessId, Seen>) -> Io {
        let mut gone: Vec<(ProcessId, Seen)> = self
            .live
            .iter()
            .filter(|(id, _)| !now.contains_key(id))
            .map(|(id, seen)| (*id, *seen))
            .collect();
        // The largest first, so that a small one cannot use up the growth that proves a large one.
        gone.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.io.counts().iter().sum::<u64>()));
        let mut growth: HashMap<ProcessId, [u64; 6]> = HashMap::new();
        for (_, seen) in &gone {
            let heir = self.heir(seen.parent, &now);
            let taken_over = heir.is_some_and(|(id, before, after)| {
                let left = growth.entry(id).or_insert_with(|| {
                    zip(after.io.counts(), before.io.counts(), u64::saturating_sub)
                });
                take(left, seen.io.counts())
            });
            if !taken_over {
                self.base = zip(self.base, seen.io.counts(), u64::saturating_add);
            }
        }
        let live =
            now.values().fold([0; 6], |sum, seen| zip(sum, seen.io.counts(), u64::saturating_add));
        self.live = now;
        // Never more than the truth and never less than before: the truth only grows.
        self.shown = zip(self.shown, zip(self.base, live, u64::saturating_add), u64::max);
        Io::from_counts(self.shown)
    }

    /// The nearest living ancestor in the job, as it was and as it is: the one to whom the kernel
    /// hands the I/O of a line of ended processes, if each was waited for.
    fn heir(&self, parent: Pid, now: &HashMap<ProcessId, Seen>) -> Option<(ProcessId, Seen, Seen)> {
        let mut pid = parent;
        // A line of ancestors is shorter than the list; the bound guards against a pid used again.
        for _ in 0..=self.live.len() {
            let (id, before) = self.live.iter().find(|(id, _)| id.pid == pid)?;
            if let Some(after) = now.get(id) {
                return Some((*id, *before, *after));
            }
            pid = before.parent;
        }
        None
    }
}

/// Takes `wanted` out of `left` if all of it is there.
fn take(left: &mut [u64; 6], wanted: [u64; 6]) -> bool {
    let fits = left.iter().zip(wanted).all(|(left, wanted)| *left >= wanted);
    if fits {
        *left = zip(*left, wanted, u64::saturating_sub);
    }
    fits
}

fn zip(a: [u64; 6], b: [u64; 6], combine: fn(u64, u64) -> u64) -> [u64; 6] {
    let mut out = [0; 6];
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = combine(a, b);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPD: Pid = 10;

    fn io(bytes: u64) -> Io {
        Io::from_counts([bytes, bytes, bytes / 10, bytes / 10, bytes, bytes])
    }

    fn processes(list: &[(Pid, Pid, u64)]) -> HashMap<ProcessId, Seen> {
        list.iter()
            .map(|(pid, parent, bytes)| {
                let id = ProcessId { pid: *pid, started: u64::from(*pid) };
                (id, Seen { parent: *parent, io: io(*bytes) })
            })
            .collect()
    }

    fn secs(seconds: u64) -> CpuStats {
        CpuStats { total: Some(Duration::from_secs(seconds)), ..CpuStats::default() }
    }

    #[test]
    fn a_recreated_directory_goes_on_from_where_it_was() {
        let mut ledger = CpuLedger::default();
        assert_eq!(ledger.observe(secs(5), Some(1)).total, Some(Duration::from_secs(5)));
        assert_eq!(ledger.observe(secs(30), Some(1)).total, Some(Duration::from_secs(30)));
        assert_eq!(ledger.observe(secs(2), Some(2)).total, Some(Duration::from_secs(32)));
        assert_eq!(ledger.observe(secs(4), Some(2)).total, Some(Duration::from_secs(34)));
    }

    #[test]
    fn a_value_that_slips_back_in_the_same_directory_is_held_and_not_added() {
        let mut ledger = CpuLedger::default();
        ledger.observe(secs(30), Some(1));
        assert_eq!(ledger.observe(secs(29), Some(1)).total, Some(Duration::from_secs(30)));
        assert_eq!(ledger.observe(secs(31), Some(1)).total, Some(Duration::from_secs(31)));
    }

    #[test]
    fn an_unread_value_stays_absent() {
        let mut ledger = CpuLedger::default();
        ledger.observe(secs(30), Some(1));
        assert_eq!(ledger.observe(CpuStats::default(), Some(1)).total, None);
    }

    #[test]
    fn a_child_that_its_parent_waited_for_counts_once() {
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 100), (2, 1, 5000)]));
        // The child did 1000 more before it ended; the kernel added all of it to the shell.
        let total = ledger.observe(processes(&[(1, STEPD, 100 + 6000)]));
        assert_eq!(total.rchar, 6100);
    }

    #[test]
    fn a_process_that_nobody_took_over_stays_in_the_total() {
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 100), (2, STEPD, 5000)]));
        assert_eq!(ledger.observe(processes(&[(1, STEPD, 150)])).rchar, 5150);
        assert_eq!(ledger.observe(processes(&[])).rchar, 5150);
    }

    #[test]
    fn a_child_of_a_parent_that_ignores_children_stays_in_the_total() {
        // With SIGCHLD ignored the kernel drops the child's I/O instead of adding it.
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 100), (2, 1, 5000)]));
        assert_eq!(ledger.observe(processes(&[(1, STEPD, 120)])).rchar, 5120);
    }

    #[test]
    fn a_line_of_ended_processes_is_found_in_the_ancestor_that_lives() {
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 100), (2, 1, 200), (3, 2, 3000)]));
        assert_eq!(ledger.observe(processes(&[(1, STEPD, 3400)])).rchar, 3400);
    }

    #[test]
    fn several_children_need_the_growth_of_all_of_them() {
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 100), (2, 1, 8), (3, 1, 1000)]));
        // Only the large one was waited for; the small one is lost to the parent.
        assert_eq!(ledger.observe(processes(&[(1, STEPD, 1100)])).rchar, 1108);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut ledger = IoLedger::default();
        ledger.observe(processes(&[(1, STEPD, 700)]));
        let again = HashMap::from([(
            ProcessId { pid: 1, started: 999 },
            Seen { parent: STEPD, io: io(5) },
        )]);
        assert_eq!(ledger.observe(again).rchar, 705);
    }

    #[test]
    fn the_total_never_goes_backwards() {
        let mut ledger = IoLedger::default();
        let mut last = 0;
        for step in 0_u64..200 {
            let list: Vec<(Pid, Pid, u64)> = (1..=5)
                .filter(|pid| !(step + u64::from(*pid) * 7).is_multiple_of(11))
                .map(|pid| (pid, if pid == 1 { STEPD } else { 1 }, step * u64::from(pid)))
                .collect();
            let total = ledger.observe(processes(&list)).rchar;
            assert!(total >= last, "step {step}: {total} after {last}");
            last = total;
        }
    }
}
