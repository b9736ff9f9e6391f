//! One process: `/proc/PID/stat` and `/proc/PID/io`.
//!
//! procfs gives the handle: it holds the directory open, so that a pid which is used again answers
//! "gone" instead of another process's numbers. The two texts are parsed here, as bytes, because a
//! process may call itself anything: procfs reads `stat` as UTF-8 and fails on a hostile name.

use std::io::Read;
use std::path::{Path, PathBuf};

use procfs::ProcError;
use procfs::process::Process;
use steward_common::unit::Bytes;

use super::cgroup::Pid;
use super::error::ReadError;

/// A process for as long as it lives: a pid alone is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// An open `/proc/PID`.
#[derive(Debug)]
pub struct Handle {
    process: Process,
    path: PathBuf,
}

impl Handle {
    /// Opens the directory of `pid` below `proc_root`.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn open(proc_root: &Path, pid: Pid) -> Result<Self, ReadError> {
        let path = proc_root.join(pid.to_string());
        match Process::new_with_root(path.clone()) {
            Ok(process) => Ok(Self { process, path }),
            Err(error) => Err(from_procfs(&path, error)),
        }
    }

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

    /// Reads `stat`.
    ///
    /// # Errors
    /// If the process is gone or the text is odd.
    pub fn stat(&self) -> Result<Stat, ReadError> {
        let path = self.path("stat");
        let bytes = self.bytes("stat")?;
        parse_stat(&bytes).ok_or_else(|| {
            ReadError::malformed(&path, "a process stat line", &String::from_utf8_lossy(&bytes))
        })
    }

    /// Reads `io`.
    ///
    /// # Errors
    /// If the process is gone, the agent lacks the right to read it, or the text is odd.
    pub fn io(&self) -> Result<Io, ReadError> {
        let path = self.path("io");
        let bytes = self.bytes("io")?;
        let text = String::from_utf8_lossy(&bytes);
        parse_io(&text).ok_or_else(|| ReadError::malformed(&path, "six I/O counts", &text))
    }

    /// The real user id, from `status`: the directory's owner is root for a process that is not
    /// dumpable.
    ///
    /// # Errors
    /// If the process is gone or the text is odd.
    pub fn real_uid(&self) -> Result<u32, ReadError> {
        let path = self.path("status");
        let bytes = self.bytes("status")?;
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok())
            .ok_or_else(|| ReadError::malformed(&path, "a line 'Uid:'", &text))
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
        file.read_to_end(&mut bytes).map_err(|source| ReadError::from_io(&path, source))?;
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
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Numbered as in proc(5): the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Stat {
        name,
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        started: field(22)?.parse().ok()?,
        rss: Bytes::new(field(24)?.parse::<u64>().ok()?.checked_mul(procfs::page_size())?),
    })
}

fn parse_io(text: &str) -> Option<Io> {
    let value = |key: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")?.parse().ok())
    };
    Some(Io {
        rchar: value("rchar")?,
        wchar: value("wchar")?,
        syscr: value("syscr")?,
        syscw: value("syscw")?,
        read_bytes: value("read_bytes")?,
        write_bytes: value("write_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let io = parse_io(text).unwrap();
        assert_eq!(io.counts(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(Io::from_counts(io.counts()), io);
        assert_eq!(parse_io(&text.replace("syscw: 4\n", "")), None);
        assert_eq!(parse_io(&text.replace("syscw: 4", "syscw: -4")), None);
    }

    #[test]
    fn a_live_process_answers_and_a_dead_one_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let handle = Handle::open(Path::new("/proc"), child.id()).unwrap();
        let stat = handle.stat().unwrap();
        assert_eq!(stat.parent, std::process::id());
        assert_eq!(handle.real_uid().unwrap(), nix::unistd::getuid().as_raw());
        child.kill().unwrap();
        child.wait().unwrap();
        // The handle is that of the dead process, whoever has its number now.
        assert!(matches!(handle.stat(), Err(ReadError::Vanished { .. })));
        assert!(matches!(handle.io(), Err(ReadError::Vanished { .. })));
    }
}
