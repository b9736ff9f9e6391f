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

#[derive(Clone, Copy, Debug)]
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
    left_behind: Vec<Worker<Question, Answer>>,
}

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
            None => self.left_behind.push(worker),
        }
        answer
    }

    /// How many readers have not come back.
    pub fn stuck(&mut self) -> usize {
        self.left_behind.retain_mut(|worker| worker.wait(Duration::ZERO).is_none());
        self.left_behind.len()
    }
}
