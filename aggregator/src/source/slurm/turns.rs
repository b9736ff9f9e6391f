//! Who works on what sacct says: no more at a time than there are processors.
//!
//! Calls go on side by side, because most of their time they wait for the database. Where answers
//! come faster than they are read, more readers than processors only push each other's tables out
//! of the caches: four of them on two processors took a tenth more CPU time than two.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::pipe::Pipe;

/// How long a reader waits for its turn. Then it goes on without one: its call has a time limit, and
/// the others may have very much to read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Turns that there are at least: whoever has one may wait for Prometheus or a bucket.
const LEAST: usize = 2;

/// Turns that are free.
#[derive(Debug)]
pub struct Turns {
    free: Mutex<usize>,
    given_back: Condvar,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns::of(thread::available_parallelism().map_or(LEAST, usize::from).max(LEAST))
    }
}

impl Turns {
    fn of(free: usize) -> Turns {
        Turns { free: Mutex::new(free), given_back: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn, but not for ever.
    fn take(self: &Arc<Turns>) -> Turn {
        let waited = self.given_back.wait_timeout_while(self.free(), PATIENCE, |free| *free == 0);
        let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_mine = *free > 0;
        *free = free.saturating_sub(1);
        Turn(is_mine.then(|| Arc::clone(self)))
    }
}

/// A turn, or that somebody goes on without one.
struct Turn(Option<Arc<Turns>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = &self.0 {
            *turns.free() += 1;
            turns.given_back.notify_one();
        }
    }
}

/// A pipe whose reader has a turn from when there is something to read until there is nothing.
pub struct InTurn<R> {
    pipe: Pipe<R>,
    turns: Arc<Turns>,
    turn: Option<Turn>,
}

impl<R: Read + AsFd> InTurn<R> {
    /// Reads from `pipe` when it has one of the `turns`.
    pub fn new(pipe: Pipe<R>, turns: &Arc<Turns>) -> InTurn<R> {
        InTurn { pipe, turns: Arc::clone(turns), turn: None }
    }
}

impl<R: Read + AsFd> Read for InTurn<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.turn.is_none() {
                self.pipe.wait()?;
                self.turn = Some(self.turns.take());
            }
            let read = self.pipe.read_now(into);
            if !matches!(read, Ok(Some(1..))) {
                self.turn = None;
            }
            if let Some(read) = read? {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Write};
    use std::sync::mpsc;

    use super::super::pipe::Over;
    use super::*;

    fn pipe(turns: &Arc<Turns>) -> (InTurn<PipeReader>, PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        (InTurn::new(Pipe::new(reader, Over::default()), turns), writer)
    }

    #[test]
    fn whoever_has_nothing_to_read_lets_others_go_on() {
        let turns = Arc::new(Turns::of(1));
        let ((mut one, mut to_one), (mut other, mut to_other)) = (pipe(&turns), pipe(&turns));
        let mut byte = [0];
        to_one.write_all(b"ab").unwrap();
        assert_eq!(one.read(&mut byte).unwrap(), 1);
        assert_eq!(*turns.free(), 0, "there is more to read");
        let (read, reads) = mpsc::channel();
        let reader = thread::spawn(move || {
            let mut byte = [0];
            while other.read(&mut byte).unwrap() > 0 {
                read.send(byte[0]).unwrap();
            }
        });
        to_other.write_all(b"x").unwrap();
        assert!(reads.recv_timeout(Duration::from_millis(300)).is_err(), "it waits for its turn");
        assert_eq!(one.read(&mut byte).unwrap(), 1);
        // Finds nothing, so that the other may go on, and then the end.
        let end = thread::spawn(move || one.read(&mut byte).unwrap());
        assert_eq!(reads.recv_timeout(Duration::from_secs(5)), Ok(b'x'));
        drop((to_one, to_other));
        assert_eq!(end.join().unwrap(), 0);
        reader.join().unwrap();
        assert_eq!(*turns.free(), 1, "each turn is given back");
    }

    #[test]
    fn a_reader_that_is_dropped_gives_its_turn_back() {
        let turns = Arc::new(Turns::of(2));
        let (mut one, mut to_one) = pipe(&turns);
        to_one.write_all(b"ab").unwrap();
        assert_eq!(one.read(&mut [0]).unwrap(), 1);
        assert_eq!(*turns.free(), 1);
        drop(one);
        assert_eq!(*turns.free(), 2);
    }
}
