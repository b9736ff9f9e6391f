//! The processes of one job: read every scan, with what need not be read again kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use steward_common::unit::Bytes;

use crate::config::Scratch;
use crate::file_class::{FileClass, FileClasses};
use crate::kernel::cgroup::Pid;
use crate::kernel::descriptor;
use crate::kernel::error::{Errors, ReadError};
use crate::kernel::members::Members;
use crate::kernel::mount::{Mount, MountTables};
use crate::kernel::process::{Io, Proc, ProcessId, Stat};
use crate::kernel::risky::Risky;
use crate::kernel::stepd;
use crate::ledger::IoLedger;
use crate::node::{Files, Processes};
use crate::table::Table;

/// The links of a process's descriptors are read when it is new, when their number changes, and
/// every so many scans: a file closed and another opened leave the number as it was.
const LINKS_EVERY: u8 = 40;

/// So many processes of a job are enough to learn whose it is.
const FIRST: usize = 16;

/// What is kept of a process from scan to scan.
#[derive(Debug)]
struct Kept {
    started: u64,
    descriptors: u64,
    /// After how many scans the links are read again.
    links_in: u8,
    /// Whether this scan has met it.
    met: bool,
    files: Box<[KeptFile]>,
}

/// An open file by the hash of its path: told apart by 64 bits, and small.
#[derive(Clone, Copy, Debug)]
struct KeptFile {
    path: u64,
    class: FileClass,
    on_scratch: bool,
}

/// The processes of a job, from scan to scan.
#[derive(Debug, Default)]
pub struct Group {
    kept: Table<Pid, Kept>,
    /// Processes of the extern step by the name of its placeholder, and whether they are it.
    placeholders: HashMap<ProcessId, bool>,
}

/// What one scan found; a part that could not be read of some process is absent as a whole. All
/// jobs of a scan are held at once, so it has no list of processes.
#[derive(Debug, Default)]
pub struct Found {
    /// The first processes in full: those that are asked whose job it is.
    pub first: Vec<(ProcessId, Stat)>,
    /// Whether a slurmstepd was among them.
    pub stepd: bool,
    /// Sums over the processes.
    pub totals: Option<Processes>,
    /// Sums over their files.
    pub files: Option<Files>,
    /// Their I/O, and that of those who went before.
    pub io: Option<Io>,
}

impl Found {
    /// Whether the job is known to have no process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.totals.as_ref().is_some_and(|all| all.count == 0)
    }
}

/// What a scan works with.
pub struct Tools<'a> {
    /// The proc mount.
    pub proc: &'a mut Proc,
    /// Reads what may hang.
    pub risky: &'a mut Risky,
    /// Counts up with each process, so that a watchdog can tell slow from stuck.
    pub progress: &'a AtomicU64,
    /// The mounts.
    pub mounts: &'a mut MountTables,
    /// What counts as scratch.
    pub scratch: &'a Scratch,
    /// Classes of files.
    pub classes: &'a FileClasses,
    /// What goes wrong.
    pub errors: &'a mut Errors,
}

impl Group {
    /// Reads all processes of `members`; their I/O goes to `ledger`. Also lists them, slurmstepd
    /// and placeholders left out.
    pub fn read(
        &mut self,
        members: &Members,
        ledger: &mut IoLedger,
        tools: &mut Tools,
    ) -> (Found, Vec<ProcessId>) {
        let count = members.processes.len() + members.of_extern.len();
        self.kept.iter_mut().for_each(|(_, kept)| kept.met = false);
        self.kept.make_room(count);
        ledger.begin(count);
        let (mut found, mut processes) = (Found::default(), Vec::with_capacity(count));
        let (mut totals, mut threads) = (Processes::default(), BTreeMap::<String, u64>::new());
        let (mut all_read, mut files_known, mut io_known) = (true, true, true);
        let mut descriptors = 0_u64;
        let externs = members.of_extern.iter().map(|pid| (*pid, true));
        for (pid, of_extern) in members.processes.iter().map(|pid| (*pid, false)).chain(externs) {
            tools.progress.fetch_add(1, Ordering::Relaxed);
            let stat = match tools.proc.stat(pid) {
                Ok(stat) => stat,
                Err(error) => {
                    if !matches!(error, ReadError::Vanished { .. }) {
                        all_read = false;
                        files_known = false;
                        io_known &= ledger.keep(pid);
                    }
                    tools.errors.add(error);
                    continue;
                }
            };
            if stepd::is_stepd(tools.proc, pid, &stat) {
                found.stepd = true;
                continue;
            }
            let id = ProcessId { pid, started: stat.started };
            if of_extern && stat.name == "sleep" && self.is_placeholder(id, &stat, tools) {
                continue;
            }
            io_known &= read_io(id, stat.parent, ledger, tools);
            let (mut open, mut rss) = (id, stat.rss);
            if stat.state == 'Z' && stat.threads > 1 {
                let Some((tid, thread)) = tools.proc.live_thread(pid) else { continue };
                (open, rss) = (ProcessId { pid: tid, started: thread.started }, thread.rss);
            }
            match self.descriptors(open, tools) {
                Ok(count) => descriptors += count,
                Err(error) => {
                    files_known &= matches!(error, ReadError::Vanished { .. });
                    tools.errors.add(error);
                }
            }
            totals.count += 1;
            totals.rss = Bytes::new(totals.rss.get().saturating_add(rss.get()));
            match threads.get_mut(stat.name.as_str()) {
                Some(count) => *count += stat.threads,
                None => {
                    threads.insert(stat.name.clone(), stat.threads);
                }
            }
            processes.push(id);
            if found.first.len() < FIRST {
                found.first.push((id, stat));
            }
        }
        self.kept.retain(|kept| kept.met);
        self.placeholders.retain(|id, _| members.of_extern.contains(&id.pid));
        if !members.complete {
            ledger.keep_all();
        }
        keep_zombies(ledger, tools);
        // Also if it is not known: what ended must not be taken for growth by the next scan.
        let io = ledger.finish();
        if members.complete {
            totals.threads = threads;
            found.totals = all_read.then_some(totals);
            found.files = files_known.then(|| self.files(descriptors, tools.classes));
            found.io = io_known.then_some(io);
        }
        (found, processes)
    }

    fn is_placeholder(&mut self, id: ProcessId, stat: &Stat, tools: &mut Tools) -> bool {
        if let Some(known) = self.placeholders.get(&id) {
            return *known;
        }
        let found = stepd::is_placeholder(tools.risky, id, stat);
        self.placeholders.extend(found.map(|found| (id, found)));
        found.unwrap_or(false)
    }

    /// The number of a process's descriptors; their links are read if they may have changed.
    fn descriptors(&mut self, id: ProcessId, tools: &mut Tools) -> Result<u64, ReadError> {
        let count = tools.proc.descriptors(id.pid)?;
        // At first spread, so that not all processes come due in the same scan.
        let spread = id.pid % u32::from(LINKS_EVERY);
        let mut links_in = u8::try_from(spread).unwrap_or(LINKS_EVERY);
        if let Some(kept) = self.kept.get_mut(id.pid)
            && kept.started == id.started
        {
            if kept.descriptors == count && kept.links_in > 0 {
                (kept.met, kept.links_in) = (true, kept.links_in - 1);
                return Ok(count);
            }
            links_in = LINKS_EVERY - 1;
        }
        let handle = tools.proc.handle(id)?;
        let read = descriptor::read(&handle, tools.mounts, tools.errors)?;
        let files = read
            .files
            .iter()
            .map(|file| KeptFile {
                path: hash(&file.path),
                class: tools.classes.of(&file.path, &file.mount),
                on_scratch: on_scratch(tools.scratch, &file.path, &file.mount),
            })
            .collect();
        let kept = Kept { started: id.started, descriptors: count, links_in, met: true, files };
        self.kept.insert(id.pid, kept);
        Ok(count)
    }

    /// Distinct files over all processes.
    fn files(&self, descriptors: u64, classes: &FileClasses) -> Files {
        let mut distinct = BTreeSet::new();
        let mut files = Files { descriptors, ..Files::default() };
        let mut by_class: HashMap<FileClass, u64> = HashMap::new();
        for file in self.kept.iter().flat_map(|(_, kept)| &kept.files) {
            if distinct.insert(file.path) {
                files.distinct += 1;
                files.on_scratch += u64::from(file.on_scratch);
                *by_class.entry(file.class).or_insert(0) += 1;
            }
        }
        // A class that nobody uses is a true zero.
        let count = |class| by_class.get(&class).copied().unwrap_or(0);
        files.by_class =
            classes.all().map(|(class, name)| (name.to_owned(), count(class))).collect();
        files
    }
}

/// False if the process is there and its I/O is not known.
fn read_io(id: ProcessId, parent: Pid, ledger: &mut IoLedger, tools: &mut Tools) -> bool {
    match tools.proc.io(id.pid) {
        Ok(io) => {
            ledger.see(id, parent, io);
            true
        }
        Err(error) => {
            let known = matches!(error, ReadError::Vanished { .. }) || ledger.keep(id.pid);
            tools.errors.add(error);
            known
        }
    }
}

/// Zombies are in no cgroup any more, yet nobody has taken their I/O over.
fn keep_zombies(ledger: &mut IoLedger, tools: &mut Tools) {
    for id in ledger.missing() {
        let zombie = tools
            .proc
            .stat(id.pid)
            .is_ok_and(|stat| stat.started == id.started && stat.state == 'Z');
        if zombie && let (Ok(io), Some(parent)) = (tools.proc.io(id.pid), ledger.parent(id)) {
            ledger.see_zombie(id, parent, io);
        }
    }
}

/// By text alone: the file system may hang.
fn on_scratch(scratch: &Scratch, path: &Path, mount: &Mount) -> bool {
    scratch.paths.iter().any(|prefix| path.starts_with(prefix))
        || scratch.mount_types.contains(&mount.kind)
}

fn hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}
