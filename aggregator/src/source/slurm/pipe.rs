//! What a command prints, read for no longer than the command may run.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a reader waits before it sees whether the time is over.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The end of a command's time, seen by all who read from it.
#[derive(Clone, Debug, Default)]
pub struct Over(Arc<AtomicBool>);

impl Over {
    /// From now on there is nothing more to read.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A pipe from a command. It ends when the command's time is over, whoever else still holds it: a
/// process that left the command's group is not killed with it.
#[derive(Debug)]
pub struct Pipe<R> {
    end: R,
    over: Over,
}

impl<R: Read + AsFd> Pipe<R> {
    /// Reads from `end` until it is `over`.
    pub fn new(end: R, over: Over) -> Pipe<R> {
        // Every pipe can; one that could not would be read as long as it is open.
        let _ = rustix::io::ioctl_fionbio(&end, true);
        Pipe { end, over }
    }

    /// Reads what is there; `None` if there is nothing yet.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_now(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.over.is_set() {
            return Ok(Some(0));
        }
        match self.end.read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Waits until there is something to read, or it is over.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn wait(&self) -> io::Result<()> {
        while !self.over.is_set() {
            match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What is in it at this moment, up to so many bytes.
    pub fn rest(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let read = self.end.read(&mut bytes).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

impl<R: Read + AsFd> Read for Pipe<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.read_now(into)? {
                return Ok(read);
            }
            self.wait()?;
        }
    }
}
