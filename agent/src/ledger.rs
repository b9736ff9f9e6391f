//! Counters that never go backwards within a run of a job.
//!
//! The kernel's own start anew when a directory is re-created, and lose what a process did when it
//! ends. Here stands what went before.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::kernel::cgroup::{CpuStats, Generation, Pid};
use crate::kernel::process::{Io, ProcessId};
use crate::table::Table;

/// One CPU time that goes on when its directory is made anew.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Counter {
    base: Duration,
    last: Duration,
}

impl Counter {
    /// A lower value in the same directory is the kernel's rounding, not a new start: it is held.
    fn observe(&mut self, raw: Duration) -> Duration {
        self.last = self.last.max(raw);
        self.base + self.last
    }

    /// The directory was made anew.
    fn begin_anew(&mut self) {
        self.base += std::mem::take(&mut self.last);
    }
}

/// The CPU times of a job. All of it is kept over a restart of the agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CpuLedger {
    generation: Option<Generation>,
    total: Counter,
    user: Counter,
    system: Counter,
    cores: HashMap<u32, Counter>,
}

impl CpuLedger {
    /// Takes what the kernel says now; `generation` tells one making of the directory from the next.
    pub fn observe(&mut self, now: CpuStats, generation: Generation) -> CpuStats {
        let recreated = self.is_remade(generation);
        // One of another controller, while accounting could not be listed, says nothing. A first
        // look may come before there is any other; then that of accounting takes its place.
        if self.generation.is_none_or(|old| generation.accounting || !old.accounting) {
            self.generation = Some(generation);
        }
        // All of them, also one that cannot be read just now.
        if recreated {
            let own = [&mut self.total, &mut self.user, &mut self.system];
            own.into_iter().chain(self.cores.values_mut()).for_each(Counter::begin_anew);
        }
        let mut cores = |(core, raw)| (core, self.cores.entry(core).or_default().observe(raw));
        CpuStats {
            cores: now.cores.map(|list| list.into_iter().map(&mut cores).collect()),
            total: now.total.map(|raw| self.total.observe(raw)),
            user: now.user.map(|raw| self.user.observe(raw)),
            system: now.system.map(|raw| self.system.observe(raw)),
        }
    }

    /// What a restarted agent must know.
    #[must_use]
    pub fn base(&self) -> CpuBase {
        self.clone()
    }

    /// Whether the directory has been made anew since it was seen last.
    #[must_use]
    pub fn is_remade(&self, generation: Generation) -> bool {
        self.generation.is_some_and(|old| {
            old.accounting == generation.accounting && old.inode != generation.inode
        })
    }
}

/// A process and its I/O.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Seen {
    /// Its parent when it was last seen.
    parent: Pid,
    /// What it had read and written then, its reaped children included.
    io: [u64; 6],
    /// Whether this scan has met it, or the last one if none is under way.
    #[serde(skip)]
    met: bool,
    /// It ended, and nobody has waited for it.
    zombie: bool,
}

/// What is kept of the CPU times over a restart of the agent.
pub type CpuBase = CpuLedger;

/// What is kept of the I/O over a restart of the agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct IoBase {
    base: [u64; 6],
    shown: [u64; 6],
    /// Zombies are in no list from which a new agent could learn of them; and those who take them
    /// and the waiting over, by whose growth it will be told.
    zombies: Vec<(ProcessId, Seen)>,
    waiting: Vec<Seen>,
}

/// The I/O of a job: that of its live processes, and that of ended ones which nobody carries on.
///
/// When a process is waited for, the kernel adds its I/O to the parent's. So an ended process
/// counts here only if no process of the job took it over; else it would count twice.
#[derive(Debug, Default)]
pub struct IoLedger {
    base: [u64; 6],
    live: Table<ProcessId, Seen>,
    /// By how much the processes of this scan have grown since the one before; the others have not.
    grown: HashMap<ProcessId, [u64; 6]>,
    /// Ended, and not found in an heir yet: the heir may have been read before it was waited for,
    /// so the next scan looks once more.
    waiting: Vec<Seen>,
    shown: [u64; 6],
}

impl IoLedger {
    /// Goes on from what an earlier agent knew.
    #[must_use]
    pub fn resumed(kept: IoBase) -> Self {
        let known = |(id, seen): (ProcessId, Seen)| (id, Seen { met: true, ..seen });
        let live = kept.zombies.into_iter().map(known).collect();
        let IoBase { base, shown, waiting, .. } = kept;
        Self { base, shown, live, waiting, ..Self::default() }
    }

    /// What a restarted agent must know.
    #[must_use]
    pub fn base(&self) -> IoBase {
        let zombies = self.live.iter().filter(|(_, seen)| seen.zombie);
        let mut zombies: HashMap<ProcessId, Seen> = zombies.map(|(id, seen)| (id, *seen)).collect();
        let ended = zombies.values().chain(&self.waiting);
        let heirs: Vec<_> = ended.filter_map(|seen| self.heir(seen.parent)).collect();
        zombies.extend(heirs);
        IoBase {
            base: self.base,
            shown: self.shown,
            zombies: zombies.into_iter().collect(),
            waiting: self.waiting.clone(),
        }
    }

    /// Begins a scan that will meet about `count` processes.
    pub fn begin(&mut self, count: usize) {
        self.live.iter_mut().for_each(|(_, seen)| seen.met = false);
        self.live.make_room(count);
        self.grown.clear();
    }

    /// A process of this scan.
    pub fn see(&mut self, id: ProcessId, parent: Pid, io: Io) {
        let io = io.counts();
        let before = self.live.insert(id, Seen { parent, io, met: true, zombie: false });
        if let Some(before) = before.filter(|before| before.io != io) {
            self.grown.insert(id, zip(io, before.io, u64::saturating_sub));
        }
    }

    /// A process that ended and that nobody has waited for.
    pub fn see_zombie(&mut self, id: ProcessId, parent: Pid, io: Io) {
        self.see(id, parent, io);
        if let Some(seen) = self.live.get_mut(id) {
            seen.zombie = true;
        }
    }

    /// A process that is there and could not be read: it stands as it was. False if it was never
    /// read, so that the job's I/O is not known.
    pub fn keep(&mut self, pid: Pid) -> bool {
        let seen = self.of(pid).map(|(id, _)| id).and_then(|id| self.live.get_mut(id));
        seen.map(|seen| seen.met = true).is_some()
    }

    /// The list of processes was not whole: those that it lacked stand as they were.
    pub fn keep_all(&mut self) {
        self.live.iter_mut().for_each(|(_, seen)| seen.met = true);
    }

    /// Those of earlier scans that this one has not met.
    #[must_use]
    pub fn missing(&self) -> Vec<ProcessId> {
        self.live.iter().filter(|(_, seen)| !seen.met).map(|(id, _)| id).collect()
    }

    /// The parent of a process of an earlier scan.
    #[must_use]
    pub fn parent(&self, id: ProcessId) -> Option<Pid> {
        self.live.get(id).map(|seen| seen.parent)
    }

    /// Ends the scan and gives the job's totals.
    pub fn finish(&mut self) -> Io {
        let mut gone: Vec<(Seen, bool)> = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|seen| (seen, true))
            .chain(self.live.iter().filter(|(_, seen)| !seen.met).map(|(_, seen)| (*seen, false)))
            .collect();
        // The largest first, so that a small one cannot use up the growth that proves a large one.
        gone.sort_by_key(|(seen, _)| Reverse(seen.io.iter().sum::<u64>()));
        let mut grown = std::mem::take(&mut self.grown);
        for (seen, waited) in gone {
            let heir = self.heir(seen.parent);
            // One that has not grown may yet be the heir of one that did nothing.
            let left = heir.map(|(id, _)| grown.entry(id).or_default());
            if left.is_some_and(|left| take(left, seen.io)) {
                continue;
            }
            if waited || heir.is_none() {
                self.base = zip(self.base, seen.io, u64::saturating_add);
            } else {
                self.waiting.push(seen);
            }
        }
        self.live.retain(|seen| seen.met);
        let all = self.live.iter().map(|(_, seen)| seen).chain(&self.waiting);
        let live = all.fold([0; 6], |sum, seen| zip(sum, seen.io, u64::saturating_add));
        // The truth only grows; what was shown was true.
        self.shown = zip(self.shown, zip(self.base, live, u64::saturating_add), u64::max);
        Io::from_counts(self.shown)
    }

    /// The nearest living ancestor in the job: the one to whom the kernel hands the I/O of a line
    /// of ended processes, if each was waited for.
    fn heir(&self, parent: Pid) -> Option<(ProcessId, Seen)> {
        let mut pid = parent;
        // A line of ancestors is shorter than the list; the bound guards against a pid used again.
        for _ in 0..=self.live.len() {
            let (id, seen) = self.of(pid)?;
            if seen.met {
                return Some((id, *seen));
            }
            pid = seen.parent;
        }
        None
    }

    /// The process of this number; of two, the one that had it first.
    fn of(&self, pid: Pid) -> Option<(ProcessId, &Seen)> {
        self.live.from(ProcessId { pid, started: 0 }).next().filter(|(id, _)| id.pid == pid)
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

    /// One scan that meets these processes: number, parent, bytes.
    fn scan(ledger: &mut IoLedger, list: &[(Pid, Pid, u64)]) -> u64 {
        ledger.begin(list.len());
        for (pid, parent, bytes) in list {
            let id = ProcessId { pid: *pid, started: u64::from(*pid) };
            ledger.see(id, *parent, io(*bytes));
        }
        ledger.finish().rchar
    }

    fn made(inode: u64) -> Generation {
        Generation { accounting: true, inode }
    }

    fn secs(seconds: u64) -> CpuStats {
        CpuStats { total: Some(Duration::from_secs(seconds)), ..CpuStats::default() }
    }

    #[test]
    fn a_recreated_directory_goes_on_from_where_it_was() {
        let mut ledger = CpuLedger::default();
        assert_eq!(ledger.observe(secs(5), made(1)).total, Some(Duration::from_secs(5)));
        assert_eq!(ledger.observe(secs(30), made(1)).total, Some(Duration::from_secs(30)));
        assert_eq!(ledger.observe(secs(2), made(2)).total, Some(Duration::from_secs(32)));
        assert_eq!(ledger.observe(secs(4), made(2)).total, Some(Duration::from_secs(34)));
    }

    #[test]
    fn a_value_that_slips_back_in_the_same_directory_is_held_and_not_added() {
        let mut ledger = CpuLedger::default();
        ledger.observe(secs(30), made(1));
        assert_eq!(ledger.observe(secs(29), made(1)).total, Some(Duration::from_secs(30)));
        assert_eq!(ledger.observe(secs(31), made(1)).total, Some(Duration::from_secs(31)));
    }

    #[test]
    fn a_first_look_before_accounting_was_there_hides_no_later_new_start() {
        let mut ledger = CpuLedger::default();
        let early = Generation { accounting: false, inode: 7 };
        ledger.observe(CpuStats::default(), early);
        assert!(!ledger.is_remade(made(1)));
        ledger.observe(secs(3), made(1));
        assert!(ledger.is_remade(made(2)));
        assert_eq!(ledger.observe(secs(1), made(2)).total, Some(Duration::from_secs(4)));
    }

    #[test]
    fn a_scan_in_which_accounting_could_not_be_listed_is_no_new_start() {
        let mut ledger = CpuLedger::default();
        ledger.observe(secs(30), made(1));
        let other = Generation { accounting: false, inode: 7 };
        assert_eq!(ledger.observe(CpuStats::default(), other).total, None);
        assert_eq!(ledger.observe(secs(31), made(1)).total, Some(Duration::from_secs(31)));
        assert_eq!(ledger.observe(secs(1), made(2)).total, Some(Duration::from_secs(32)));
    }

    #[test]
    fn an_unread_value_stays_absent() {
        let mut ledger = CpuLedger::default();
        ledger.observe(secs(30), made(1));
        assert_eq!(ledger.observe(CpuStats::default(), made(1)).total, None);
    }

    #[test]
    fn a_child_that_its_parent_waited_for_counts_once() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 5000)]);
        // The child did 1000 more before it ended; the kernel added all of it to the shell.
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 100 + 6000)]), 6100);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 100 + 6000)]), 6100);
    }

    #[test]
    fn a_child_that_is_waited_for_after_its_parent_was_read_counts_once() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 5000)]);
        // The shell was read, then waited for the child, then the child could not be read.
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 100)]), 5100);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 5100)]), 5100);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 5200)]), 5200);
    }

    #[test]
    fn an_agent_that_takes_over_tells_by_growth_who_took_an_ended_process_over() {
        for (grown, total) in [(5100, 5100), (150, 5150)] {
            let mut ledger = IoLedger::default();
            scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 5000)]);
            assert_eq!(scan(&mut ledger, &[(1, STEPD, 100)]), 5100, "waiting");
            let mut ledger = IoLedger::resumed(ledger.base());
            assert_eq!(scan(&mut ledger, &[(1, STEPD, grown)]), total);
            assert_eq!(scan(&mut ledger, &[(1, STEPD, grown)]), total);
        }
    }

    #[test]
    fn a_process_that_nobody_took_over_stays_in_the_total() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, STEPD, 5000)]);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 150)]), 5150);
        assert_eq!(scan(&mut ledger, &[]), 5150);
    }

    #[test]
    fn a_child_of_a_parent_that_ignores_children_stays_in_the_total() {
        // With SIGCHLD ignored the kernel drops the child's I/O instead of adding it.
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 5000)]);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 120)]), 5120);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 140)]), 5140);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 140)]), 5140);
    }

    #[test]
    fn a_line_of_ended_processes_is_found_in_the_ancestor_that_lives() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 200), (3, 2, 3000)]);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 3400)]), 3400);
    }

    #[test]
    fn several_children_need_the_growth_of_all_of_them() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 100), (2, 1, 8), (3, 1, 1000)]);
        // Only the large one was waited for; the small one is lost to the parent.
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 1100)]), 1108);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 1100)]), 1108);
    }

    #[test]
    fn a_process_that_cannot_be_read_for_a_moment_is_not_counted_again() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 700)]);
        ledger.begin(1);
        assert!(ledger.keep(1));
        assert!(!ledger.keep(2), "one that was never read is not known");
        assert_eq!(ledger.finish().rchar, 700);
        assert_eq!(scan(&mut ledger, &[(1, STEPD, 800)]), 800);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut ledger = IoLedger::default();
        scan(&mut ledger, &[(1, STEPD, 700)]);
        ledger.begin(1);
        ledger.see(ProcessId { pid: 1, started: 999 }, STEPD, io(5));
        assert_eq!(ledger.finish().rchar, 705);
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
            let total = scan(&mut ledger, &list);
            assert!(total >= last, "step {step}: {total} after {last}");
            last = total;
        }
    }
}
