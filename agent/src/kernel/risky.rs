//! Files of a process whose reading may never end.
//!
//! `environ` and `cmdline` take the target's memory lock. A target that waits for a dead file
//! server with that lock in its hand keeps every reader waiting. So they are read on a worker that
//! can be left behind, and nobody asks for the same file again.

use std::time::Duration;

use super::error::ReadError;
use super::process::Handle;
use crate::worker::Worker;

/// How long one file may take; these files come from memory.
const PATIENCE: Duration = Duration::from_millis(250);

/// With so many readers left behind, something is wrong with the host: no more are risked.
const MOST_STUCK: usize = 8;

type Answer = Result<Vec<u8>, ReadError>;

/// Reads risky files, one at a time.
#[derive(Debug, Default)]
pub struct Risky {
    worker: Option<Worker<(Handle, &'static str), Answer>>,
    left_behind: Vec<Worker<(Handle, &'static str), Answer>>,
}

impl Risky {
    /// The bytes of the file `name` of a process.
    ///
    /// # Errors
    /// If it cannot be read, or does not come in time.
    pub fn read(&mut self, process: Handle, name: &'static str) -> Answer {
        let path = process.path(name);
        if self.stuck() >= MOST_STUCK {
            return Err(ReadError::Stuck { path });
        }
        let answer = |(process, name): (Handle, &'static str)| process.bytes(name);
        let mut worker = self.worker.take().unwrap_or_else(|| Worker::new(answer));
        if !worker.ask((process, name)) {
            return Err(ReadError::Stuck { path });
        }
        match worker.wait(PATIENCE) {
            Some(answer) => {
                self.worker = Some(worker);
                answer
            }
            None => {
                self.left_behind.push(worker);
                Err(ReadError::Stuck { path })
            }
        }
    }

    /// How many readers have not come back.
    pub fn stuck(&mut self) -> usize {
        self.left_behind.retain_mut(|worker| worker.wait(Duration::ZERO).is_none());
        self.left_behind.len()
    }
}
