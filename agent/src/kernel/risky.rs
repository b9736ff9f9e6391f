//! Files of a process whose reading may never end.
//!
//! `environ` and `cmdline` take the target's memory lock, and in the middle of an `execve` even
//! `stat` has to wait. A target that waits for a dead file server meanwhile keeps every reader
//! waiting. So they are read on a worker that can be left behind, and nobody asks for the same file
//! again. (`status`, `comm`, the list of descriptors and their links answer at once.)

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cgroup::Pid;
use super::error::ReadError;
use super::process::{Proc, ProcessId, Stat};
use crate::worker::Worker;

/// How long one file may take; these files come from memory.
const PATIENCE: Duration = Duration::from_millis(250);

/// With so many readers left behind, something is wrong with the host: no more are risked.
const MOST_STUCK: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    File(ProcessId, &'static str),
    Stat(Pid),
}

#[derive(Debug)]
enum Answer {
    File(Result<Vec<u8>, ReadError>),
    Stat(Result<Stat, ReadError>),
}

/// Reads risky files, one at a time.
#[derive(Debug)]
pub struct Risky {
    root: PathBuf,
    worker: Option<Worker<Question, Answer>>,
    left_behind: Vec<LeftBehind>,
}

#[derive(Debug)]
struct LeftBehind {
    asked: Question,
    worker: Worker<Question, Answer>,
    /// For how many scans nobody has come for the answer.
    unasked: u32,
}

/// For so many scans an answer that came late is kept.
const KEPT: u32 = 3;

impl Risky {
    /// Reads below the proc mount at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), worker: None, left_behind: Vec::new() }
    }

    /// Where the file `name` of a process is.
    #[must_use]
    pub fn path(&self, pid: Pid, name: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(name)
    }

    /// The bytes of the file `name` of the very process that `id` names.
    ///
    /// # Errors
    /// If it cannot be read, or does not come in time.
    pub fn read(&mut self, id: ProcessId, name: &'static str) -> Result<Vec<u8>, ReadError> {
        match self.ask(Question::File(id, name)) {
            Some(Answer::File(read)) => read,
            _ => Err(ReadError::Stuck { path: self.path(id.pid, name) }),
        }
    }

    /// The `stat` of a process.
    ///
    /// # Errors
    /// If it cannot be read, or does not come in time.
    pub fn stat(&mut self, pid: Pid) -> Result<Stat, ReadError> {
        match self.ask(Question::Stat(pid)) {
            Some(Answer::Stat(read)) => read,
            _ => Err(ReadError::Stuck { path: self.path(pid, "stat") }),
        }
    }

    fn ask(&mut self, question: Question) -> Option<Answer> {
        // Asked before: the answer may have come by now, and there is no second reader.
        if let Some(at) = self.left_behind.iter().position(|one| one.asked == question) {
            let answer = self.left_behind.get_mut(at)?.worker.wait(Duration::ZERO)?;
            self.left_behind.swap_remove(at);
            return Some(answer);
        }
        if self.stuck() >= MOST_STUCK {
            return None;
        }
        let mut worker = self.worker.take().unwrap_or_else(|| {
            let mut proc = Proc::new(&self.root);
            Worker::new(move |question| match question {
                Question::File(id, name) => {
                    Answer::File(proc.handle(id).and_then(|process| process.bytes(name)))
                }
                Question::Stat(pid) => Answer::Stat(proc.stat(pid)),
            })
        });
        if !worker.ask(question) {
            return None;
        }
        let answer = worker.wait(PATIENCE);
        match answer {
            Some(_) => self.worker = Some(worker),
            None => self.left_behind.push(LeftBehind { asked: question, worker, unasked: 0 }),
        }
        answer
    }

    /// How many readers have not come back.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.left_behind.iter().filter(|one| one.worker.is_waiting()).count()
    }

    /// A new scan: forgets answers that nobody comes for.
    pub fn begin_scan(&mut self) {
        self.left_behind.retain_mut(|one| {
            one.unasked += u32::from(!one.worker.is_waiting());
            one.unasked <= KEPT
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A process whose environment does not come until somebody writes it.
    #[test]
    fn a_reader_that_hangs_is_the_only_one_and_its_answer_is_not_lost() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("7");
        fs::create_dir(&dir).unwrap();
        let stat = "7 (x) S 1 7 7 0 7 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0\n";
        fs::write(dir.join("stat"), stat).unwrap();
        fs::write(dir.join("cmdline"), "x").unwrap();
        nix::unistd::mkfifo(&dir.join("environ"), nix::sys::stat::Mode::S_IRWXU).unwrap();

        let mut risky = Risky::new(root.path());
        let id = ProcessId { pid: 7, started: 99 };
        for _ in 0..3 {
            assert!(matches!(risky.read(id, "environ"), Err(ReadError::Stuck { .. })));
            assert_eq!(risky.stuck(), 1, "one reader, however often it is asked for");
        }
        assert_eq!(risky.read(id, "cmdline").unwrap(), b"x", "others are read on");
        assert_eq!(risky.stat(7).unwrap().started, 99);
        // Waits for a reader, and there is one.
        fs::write(dir.join("environ"), "A=1\0").unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while risky.stuck() > 0 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert_eq!(risky.read(id, "environ").unwrap(), b"A=1\0");
        assert!(risky.left_behind.is_empty());
    }
}
