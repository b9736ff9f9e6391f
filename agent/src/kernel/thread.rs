//! The threads of a process, from `/proc/PID/task/TID/status`: one file a thread.

use std::fmt::Write;
use std::path::Path;

use super::cgroup::Pid;
use super::cpu_set::CpuSet;
use super::error::{Errors, ReadError};
use super::file;

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: Pid,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    /// Where it may run.
    pub cpus: CpuSet,
    /// How often another one was put in its place while it wanted to go on.
    pub involuntary_switches: u64,
}

/// The threads of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Those that were read.
    pub list: Vec<Thread>,
    /// Those that are there and could not be read.
    pub unread: Vec<Pid>,
    /// Whether there were more than were asked for.
    pub cut: bool,
}

/// Reads at most `most` threads of process `pid`; one that ends meanwhile is left out.
///
/// The kernel lists the oldest first, so that with the same `most` a thread that was read once is
/// read until it ends.
///
/// # Errors
/// If the list cannot be read, most likely because the process is gone.
pub fn read(
    proc_root: &Path,
    pid: Pid,
    most: usize,
    errors: &mut Errors,
) -> Result<Threads, ReadError> {
    let tasks = proc_root.join(format!("{pid}/task"));
    let failed = |source| ReadError::from_io(&tasks, source);
    let mut found = Threads::default();
    let mut path = String::new();
    for entry in std::fs::read_dir(&tasks).map_err(failed)? {
        let Some(tid) =
            entry.map_err(failed)?.file_name().to_str().and_then(|tid| tid.parse().ok())
        else {
            continue;
        };
        if found.list.len() + found.unread.len() >= most {
            found.cut = true;
            break;
        }
        path.clear();
        // Writing to a String cannot fail.
        let _ok = write!(path, "{}/{tid}/status", tasks.display());
        let path = Path::new(&path);
        match file::bytes(path, |bytes| parse(path, tid, bytes)).flatten() {
            Ok(thread) => found.list.push(thread),
            Err(ReadError::Vanished { .. }) => {}
            Err(error) => {
                errors.add(error);
                found.unread.push(tid);
            }
        }
    }
    Ok(found)
}

/// The thread that a `status` describes; `path` is for messages.
///
/// # Errors
/// If one of the three lines is not there or odd.
pub fn parse(path: &Path, tid: Pid, status: &[u8]) -> Result<Thread, ReadError> {
    // The name stands in a line of its own and may hold any byte but a line end: the rest is text.
    let value = |key: &'static str| {
        status
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(key.as_bytes()))
            .and_then(|value| std::str::from_utf8(value).ok())
            .map(str::trim)
            .ok_or_else(|| ReadError::malformed(path, key, &String::from_utf8_lossy(status)))
    };
    let state = value("State:")?;
    Ok(Thread {
        tid,
        state: state
            .chars()
            .next()
            .filter(char::is_ascii_alphabetic)
            .ok_or_else(|| ReadError::malformed(path, "a state such as R (running)", state))?,
        cpus: CpuSet::parse(path, value("Cpus_allowed_list:")?)?,
        involuntary_switches: file::number(path, value("nonvoluntary_ctxt_switches:")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    /// From Linux 6.18, the lines between left out.
    const STATUS: &str = "Name:\tpython\nUmask:\t0022\nState:\tR (running)\nTgid:\t70\nPid:\t71\n\
        Cpus_allowed:\t3\nCpus_allowed_list:\t0-1,8191\nMems_allowed_list:\t0\n\
        voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";

    fn parsed(status: &[u8]) -> Result<Thread, ReadError> {
        parse(Path::new("/proc/70/task/71/status"), 71, status)
    }

    fn expected(tid: Pid) -> Thread {
        let cpus = [0, 1, 8191].into_iter().collect();
        Thread { tid, state: 'R', cpus, involuntary_switches: 545 }
    }

    #[test]
    fn three_lines_are_read_whatever_the_name() {
        assert_eq!(parsed(STATUS.as_bytes()).unwrap(), expected(71));
        for name in [b"State: D".as_slice(), b"\xff\xfe", b"", b"a\\nState:\tD"] {
            let hostile = [b"Name:\t".as_slice(), name, &STATUS.as_bytes()[12..]].concat();
            assert_eq!(parsed(&hostile).unwrap(), expected(71), "{name:?}");
        }
    }

    #[test]
    fn a_missing_or_odd_line_names_the_file_and_is_never_zero() {
        let switches = "nonvoluntary_ctxt_switches:\t545";
        let mut table = vec![String::new()];
        for line in ["State:\tR (running)\n", "Cpus_allowed_list:\t0-1,8191\n", switches] {
            table.push(STATUS.replace(line, ""));
        }
        for odd in ["max", "-1", "", "x", "18446744073709551616"] {
            table.push(STATUS.replace("545", odd));
        }
        for odd in ["max", "-1", "0-8192"] {
            table.push(STATUS.replace("0-1,8191", odd));
        }
        table.push(STATUS.replace("R (running)", ""));
        table.push(STATUS.replace("R (running)", "7"));
        for bad in table {
            let message = parsed(bad.as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with("/proc/70/task/71/status"), "{bad:?}: {message}");
        }
    }

    #[test]
    fn a_vanished_thread_is_left_out_an_odd_one_is_told_and_more_than_asked_for_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let task = |tid: Pid| dir.path().join(format!("70/task/{tid}"));
        for tid in [70, 71, 72] {
            fs::create_dir_all(task(tid)).unwrap();
            fs::write(task(tid).join("status"), STATUS).unwrap();
        }
        fs::create_dir(task(73)).unwrap();
        fs::create_dir(task(74)).unwrap();
        fs::write(task(74).join("status"), "").unwrap();
        let read = |most| {
            let mut errors = Errors::default();
            let mut threads = read(dir.path(), 70, most, &mut errors).unwrap();
            threads.list.sort_by_key(|thread| thread.tid);
            (threads, errors.worth_logging().len())
        };
        let list = [70, 71, 72].map(expected).to_vec();
        assert_eq!(read(100), (Threads { list, unread: vec![74], cut: false }, 1));
        let (few, _) = read(2);
        assert!(few.cut);
        assert_eq!(few.list.len() + few.unread.len(), 2);
        let gone = super::read(dir.path(), 99, 100, &mut Errors::default());
        assert!(matches!(gone, Err(ReadError::Vanished { .. })), "{gone:?}");
    }

    #[test]
    fn the_threads_of_a_live_process_are_read() {
        let mut errors = Errors::default();
        let own = std::process::id();
        let threads = read(Path::new("/proc"), own, 10_000, &mut errors).unwrap();
        let first = threads.list.iter().find(|thread| thread.tid == own).unwrap();
        assert!(first.cpus.count() >= 1);
        assert!(!threads.cut && threads.unread.is_empty(), "{:?}", errors.worth_logging());
    }

    proptest! {
        #[test]
        fn written_is_read(switches: u64, last in 0..8192_u32) {
            let text = STATUS.replace("545", &switches.to_string());
            let text = text.replace("0-1,8191", &format!("0-{last}"));
            let thread = parsed(text.as_bytes()).unwrap();
            prop_assert_eq!(thread.involuntary_switches, switches);
            prop_assert_eq!(thread.cpus.count(), u64::from(last) + 1);
        }

        #[test]
        fn never_panics_and_needs_every_line(bytes: Vec<u8>, cut in 0..STATUS.len() - 4) {
            prop_assert!(parsed(&bytes).is_err());
            prop_assert!(parsed(&STATUS.as_bytes()[..cut]).is_err());
        }
    }
}
