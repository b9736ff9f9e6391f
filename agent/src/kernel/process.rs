//! One process: `/proc/PID/stat`, `/proc/PID/io` and the number of its descriptors.
//!
//! On the hot path, so read by us: a path, an open, a read, a close. procfs costs twice as much,
//! reads `stat` as UTF-8 and so fails on a process that gave itself a hostile name, and its count
//! of descriptors is two too many where the kernel gives no size. For what is read once in a
//! process's life (descriptors, environment, mounts) its handle is used: it holds the directory
//! open, so that a pid which is used again answers "gone".

use std::fmt::Write;
use std::path::{Path, PathBuf};

use procfs::ProcError;
use procfs::process::Process;
use serde::{Deserialize, Serialize};
use steward_common::unit::Bytes;

use super::cgroup::Pid;
use super::error::ReadError;
use super::file;

/// A process for as long as it lives: a pid alone is used again.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// What `stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The command's name, as the process set it, with odd bytes replaced.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    /// The parent.
    pub parent: Pid,
    /// Number of threads.
    pub threads: u64,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// Resident set.
    pub rss: Bytes,
}

/// What a process read and wrote, its reaped children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes asked for by reads.
    pub rchar: u64,
    /// Bytes given to writes.
    pub wchar: u64,
    /// Read calls.
    pub syscr: u64,
    /// Write calls.
    pub syscw: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage.
    pub write_bytes: u64,
}

impl Io {
    /// The six counts in one order.
    #[must_use]
    pub const fn counts(self) -> [u64; 6] {
        [self.rchar, self.wchar, self.syscr, self.syscw, self.read_bytes, self.write_bytes]
    }

    /// The inverse of [`Self::counts`].
    #[must_use]
    pub const fn from_counts(counts: [u64; 6]) -> Self {
        let [rchar, wchar, syscr, syscw, read_bytes, write_bytes] = counts;
        Self { rchar, wchar, syscr, syscw, read_bytes, write_bytes }
    }
}

/// The proc mount, and what this kernel can do.
#[derive(Debug)]
pub struct Proc {
    root: PathBuf,
    path: String,
    /// Linux 6.2 and later give the number of descriptors as the size of the directory.
    counts_descriptors: bool,
}

impl Proc {
    /// The mount at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        let own = root.join("self/fd");
        let counts_descriptors = own.metadata().is_ok_and(|fd| fd.len() > 0);
        Self { root: root.to_path_buf(), path: String::new(), counts_descriptors }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path_of(&mut self, pid: Pid, name: &str) -> &Path {
        self.path.clear();
        // Writing to a String cannot fail.
        let _ok = write!(self.path, "{}/{pid}/{name}", self.root.display());
        Path::new(&self.path)
    }

    /// Reads `stat`.
    ///
    /// # Errors
    /// If the process is gone or the text is odd.
    pub fn stat(&mut self, pid: Pid) -> Result<Stat, ReadError> {
        let path = self.path_of(pid, "stat");
        file::bytes(path, |bytes| {
            parse_stat(bytes).ok_or_else(|| {
                let found = String::from_utf8_lossy(bytes);
                ReadError::malformed(path, "a process stat line", &found)
            })
        })?
    }

    /// Reads `io`.
    ///
    /// # Errors
    /// If the process is gone, the agent lacks the right to read it, or the text is odd.
    pub fn io(&mut self, pid: Pid) -> Result<Io, ReadError> {
        let path = self.path_of(pid, "io");
        file::bytes(path, |bytes| {
            parse_io(bytes).ok_or_else(|| {
                ReadError::malformed(path, "six I/O counts", &String::from_utf8_lossy(bytes))
            })
        })?
    }

    /// A thread that goes on after the first one of its process has ended; the process's own files
    /// are empty then, the thread's are not.
    pub fn live_thread(&mut self, pid: Pid) -> Option<(Pid, Stat)> {
        let tasks = std::fs::read_dir(self.path_of(pid, "task")).ok()?;
        let tids: Vec<Pid> =
            tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
        tids.into_iter().find_map(|tid| {
            let stat = self.stat(tid).ok()?;
            (!matches!(stat.state, 'Z' | 'X')).then_some((tid, stat))
        })
    }

    /// The number of open descriptors.
    ///
    /// # Errors
    /// If the process is gone or may not be read.
    pub fn descriptors(&mut self, pid: Pid) -> Result<u64, ReadError> {
        let by_size = self.counts_descriptors;
        let path = self.path_of(pid, "fd");
        let failed = |source| ReadError::from_io(path, source);
        if by_size {
            return path.metadata().map(|fd| fd.len()).map_err(failed);
        }
        let mut count = 0;
        for entry in std::fs::read_dir(path).map_err(failed)? {
            entry.map_err(failed)?;
            count += 1;
        }
        Ok(count)
    }

    /// The name, from `comm`: unlike `stat`, it never has to wait.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn name(&mut self, pid: Pid) -> Result<Vec<u8>, ReadError> {
        file::bytes(self.path_of(pid, "comm"), |bytes| bytes.trim_ascii_end().to_vec())
    }

    /// The real user id, from `status`: the directory's owner is root for a process that is not
    /// dumpable.
    ///
    /// # Errors
    /// If the process is gone or the text is odd.
    pub fn real_uid(&mut self, pid: Pid) -> Result<u32, ReadError> {
        let path = self.path_of(pid, "status");
        file::bytes(path, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            text.lines()
                .find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok())
                .ok_or_else(|| ReadError::malformed(path, "a line 'Uid:'", &text))
        })?
    }

    /// A handle on the very process that `id` names, whoever has its number now.
    ///
    /// # Errors
    /// If it is gone.
    pub fn handle(&mut self, id: ProcessId) -> Result<Handle, ReadError> {
        let path = self.root.join(id.pid.to_string());
        let process =
            Process::new_with_root(path.clone()).map_err(|error| from_procfs(&path, error))?;
        // Opened first, asked afterwards: the number cannot change hands in between.
        if self.stat(id.pid)?.started == id.started {
            Ok(Handle { process, path })
        } else {
            Err(ReadError::Vanished { path })
        }
    }
}

/// An open `/proc/PID`.
#[derive(Debug)]
pub struct Handle {
    process: Process,
    path: PathBuf,
}

impl Handle {
    /// The procfs handle.
    #[must_use]
    pub const fn procfs(&self) -> &Process {
        &self.process
    }

    /// The path of one of its files, for messages.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The bytes of one of its files.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        let path = self.path(name);
        let mut file =
            self.process.open_relative(name).map_err(|error| from_procfs(&path, error))?;
        let mut bytes = Vec::with_capacity(512);
        std::io::Read::read_to_end(&mut file, &mut bytes)
            .map_err(|source| ReadError::from_io(&path, source))?;
        Ok(bytes)
    }
}

/// procfs's errors in our words.
#[must_use]
pub fn from_procfs(path: &Path, error: ProcError) -> ReadError {
    let path = path.to_path_buf();
    match error {
        ProcError::NotFound(_) => ReadError::Vanished { path },
        ProcError::PermissionDenied(_) => ReadError::Denied { path },
        ProcError::Io(source, _) => ReadError::from_io(&path, source),
        ProcError::Incomplete(_) => ReadError::malformed(&path, "a whole file", "half of one"),
        ProcError::Other(text) => ReadError::malformed(&path, "what procfs(5) describes", &text),
        ProcError::InternalError(bug) => {
            ReadError::malformed(&path, "what procfs(5) describes", &bug.to_string())
        }
    }
}

fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    // The name stands in parentheses and may hold any byte, parentheses too: take the outermost.
    let open = bytes.iter().position(|byte| *byte == b'(')?;
    let close = bytes.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
    // Numbered as in proc(5): the state is field 3.
    let mut fields = bytes.get(close + 1..)?.split(|byte| *byte == b' ').skip(1);
    let state = fields.next()?.first().copied().map(char::from)?;
    let parent = number(fields.next()?)?;
    let threads = number(fields.nth(20 - 5)?)?;
    let started = number(fields.nth(22 - 21)?)?;
    let pages = number(fields.nth(24 - 23)?)?;
    Some(Stat {
        name,
        state,
        parent: Pid::try_from(parent).ok()?,
        threads,
        started,
        rss: Bytes::new(pages.checked_mul(procfs::page_size())?),
    })
}

fn parse_io(bytes: &[u8]) -> Option<Io> {
    const KEYS: [&[u8]; 6] =
        [b"rchar: ", b"wchar: ", b"syscr: ", b"syscw: ", b"read_bytes: ", b"write_bytes: "];
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut counts = [0; 6];
    for (count, key) in counts.iter_mut().zip(KEYS) {
        // In this order since Linux 2.6.20; a line more in between would be skipped.
        *count = lines.find_map(|line| line.strip_prefix(key)).and_then(number)?;
    }
    Some(Io::from_counts(counts))
}

/// A decimal number and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written by Linux 6.18 for `sleep 60`, then the name replaced.
    fn stat_line(name: &[u8]) -> Vec<u8> {
        let tail = b" S 1021 2710 1021 34816 2710 4194304 89 0 0 0 1 2 0 0 20 0 3 0 123456 \
            2928640 355 18446744073709551615 94 94 94 0 0 0 0 0 0 1 0 0 17 1 0 0 0 0 0 94 94 94 94 94 94 94 0\n";
        [b"2710 (".as_slice(), name, b")", tail].concat()
    }

    #[test]
    fn stat_gives_parent_threads_start_and_resident_set() {
        let stat = parse_stat(&stat_line(b"sleep")).unwrap();
        assert_eq!(stat.name, "sleep");
        assert_eq!((stat.state, stat.parent, stat.threads, stat.started), ('S', 1021, 3, 123_456));
        assert_eq!(stat.rss.get(), 355 * procfs::page_size());
    }

    #[test]
    fn a_hostile_name_changes_no_number() {
        for name in [b") R 1 (".as_slice(), b"a b\nc", b"\xff\xfe", b"", b"((()))"] {
            let stat = parse_stat(&stat_line(name)).unwrap();
            assert_eq!((stat.parent, stat.threads, stat.started), (1021, 3, 123_456), "{name:?}");
        }
    }

    #[test]
    fn half_a_line_is_no_process() {
        for bad in [b"".as_slice(), b"2710", b"2710 (x", b"2710 (x) S 1 2", b")("] {
            assert_eq!(parse_stat(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn io_needs_all_six_counts() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        let io = parse_io(text.as_bytes()).unwrap();
        assert_eq!(io.counts(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(Io::from_counts(io.counts()), io);
        assert_eq!(parse_io(text.replace("syscw: 4\n", "").as_bytes()), None);
        assert_eq!(parse_io(text.replace("syscw: 4", "syscw: -4").as_bytes()), None);
    }

    #[test]
    fn a_live_process_answers_and_a_dead_one_is_gone() {
        let mut proc = Proc::new(Path::new("/proc"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let stat = proc.stat(child.id()).unwrap();
        assert_eq!(stat.parent, std::process::id());
        assert_eq!(proc.real_uid(child.id()).unwrap(), nix::unistd::getuid().as_raw());
        let id = ProcessId { pid: child.id(), started: stat.started };
        let handle = proc.handle(id).unwrap();
        let other = ProcessId { started: stat.started + 1, ..id };
        assert!(matches!(proc.handle(other), Err(ReadError::Vanished { .. })));
        child.kill().unwrap();
        child.wait().unwrap();
        // The handle is that of the dead process, whoever has its number now.
        assert!(matches!(handle.bytes("io"), Err(ReadError::Vanished { .. })));
        assert!(matches!(proc.stat(id.pid), Err(ReadError::Vanished { .. })));
    }

    #[test]
    fn descriptors_are_counted_the_same_by_size_and_by_list() {
        let mut proc = Proc::new(Path::new("/proc"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let listed = || std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count();
        let by_default = proc.descriptors(child.id()).unwrap();
        proc.counts_descriptors = false;
        let by_list = proc.descriptors(child.id()).unwrap();
        assert_eq!((by_default, by_list), (listed() as u64, listed() as u64));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    proptest! {
        #[test]
        fn stat_is_read_whatever_the_name_and_the_numbers(
            name in proptest::collection::vec(any::<u8>(), 0..16),
            parent: u32, threads: u64, started: u64, pages: u64,
        ) {
            let mut line = b"2710 (".to_vec();
            line.extend(&name);
            line.extend(format!(") R {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 ").bytes());
            line.extend(format!("{threads} 0 {started} 9 {pages} 18446744073709551615 0\n").bytes());
            let stat = parse_stat(&line);
            // More pages than there are bytes is no size.
            let rss = pages.checked_mul(procfs::page_size()).map(Bytes::new);
            prop_assert_eq!(stat.is_some(), rss.is_some());
            if let (Some(stat), Some(rss)) = (stat, rss) {
                let numbers = (stat.parent, stat.threads, stat.started, stat.rss);
                prop_assert_eq!(numbers, (parent, threads, started, rss));
                prop_assert_eq!((stat.state, stat.name), ('R', String::from_utf8_lossy(&name).into()));
            }
        }

        #[test]
        fn a_field_of_stat_that_is_no_number_is_an_error_and_not_0(
            field in prop_oneof![Just(1_usize), Just(17), Just(19), Just(21)],
            bad in "-[0-9]{1,20}|max|[1-9][0-9]{20,30}|[a-z]{0,5}|0x[0-9]",
        ) {
            let line = String::from_utf8(stat_line(b"sleep")).unwrap();
            let (head, tail) = line.split_once(") ").unwrap();
            let mut fields: Vec<&str> = tail.split(' ').collect();
            fields[field] = &bad;
            let line = format!("{head}) {}", fields.join(" "));
            prop_assert_eq!(parse_stat(line.as_bytes()), None);
        }

        #[test]
        fn io_is_read_whatever_the_numbers_and_not_without_one_of_them(
            counts: [u64; 6], missing in 0_usize..6, bad in "-[0-9]{1,20}|max|[1-9][0-9]{20,30}|",
        ) {
            let keys = ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes"];
            let lines: Vec<String> =
                keys.iter().zip(counts).map(|(key, count)| format!("{key}: {count}\n")).collect();
            let whole = lines.concat() + "cancelled_write_bytes: -1\n";
            prop_assert_eq!(parse_io(whole.as_bytes()).map(Io::counts), Some(counts));
            let without = whole.replacen(&lines[missing], "", 1);
            prop_assert_eq!(parse_io(without.as_bytes()), None);
            let odd = whole.replacen(&lines[missing], &format!("{}: {bad}\n", keys[missing]), 1);
            prop_assert_eq!(parse_io(odd.as_bytes()), None);
        }

        #[test]
        fn no_bytes_make_a_parser_panic(bytes: Vec<u8>, tail in "[ ()0-9a-z:\n-]{0,80}") {
            for bytes in [bytes, tail.into_bytes()] {
                let _any = (parse_stat(&bytes), parse_io(&bytes));
            }
        }
    }
}
