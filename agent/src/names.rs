//! User names, asked of the system's directory on a thread of their own.
//!
//! The directory may be LDAP behind a daemon that hangs; a scan waits a moment for an answer and
//! never for more than one.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User};

/// How long a scan waits for one name.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long "there is no such user" is believed.
const RETRY: Duration = Duration::from_secs(300);

/// A name, or when it was last asked for in vain.
#[derive(Debug)]
enum Answer {
    Name(String),
    None(Instant),
}

/// Names by user id.
#[derive(Debug)]
pub struct Names {
    known: HashMap<u32, Answer>,
    questions: Sender<u32>,
    answers: Receiver<(u32, Option<String>)>,
    outstanding: Option<u32>,
}

/// The directory did not answer in time; the name is unknown for now.
#[derive(Debug, PartialEq, Eq)]
pub struct Slow;

impl Default for Names {
    fn default() -> Self {
        Self::asking(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name))
    }
}

impl Names {
    /// Asks `directory`, on a thread that ends with this value (or, if the directory hangs, with
    /// the process: a call into the system's directory cannot be called back).
    #[must_use]
    pub fn asking(directory: impl Fn(u32) -> Option<String> + Send + 'static) -> Self {
        let (questions, inbox) = channel::<u32>();
        let (outbox, answers) = channel();
        std::thread::spawn(move || {
            for uid in inbox {
                if outbox.send((uid, directory(uid))).is_err() {
                    break;
                }
            }
        });
        Self { known: HashMap::new(), questions, answers, outstanding: None }
    }

    /// The name of `uid`; `None` if it has none.
    ///
    /// # Errors
    /// If the directory is slow; the answer is kept for a later call.
    pub fn of(&mut self, uid: u32) -> Result<Option<String>, Slow> {
        match self.known.get(&uid) {
            Some(Answer::Name(name)) => return Ok(Some(name.clone())),
            Some(Answer::None(asked)) if asked.elapsed() < RETRY => return Ok(None),
            _ => {}
        }
        // While one question hangs, a look costs nothing and no second one is asked.
        if self.outstanding.is_some() {
            self.receive(Duration::ZERO);
        }
        if self.outstanding.is_none() {
            if self.questions.send(uid).is_err() {
                return Err(Slow);
            }
            self.outstanding = Some(uid);
            self.receive(PATIENCE);
        }
        match self.known.get(&uid) {
            Some(Answer::Name(name)) => Ok(Some(name.clone())),
            Some(Answer::None(_)) => Ok(None),
            None => Err(Slow),
        }
    }

    fn receive(&mut self, patience: Duration) {
        match self.answers.recv_timeout(patience) {
            Ok((uid, name)) => {
                self.outstanding = None;
                let answer = name.map_or_else(|| Answer::None(Instant::now()), Answer::Name);
                self.known.insert(uid, answer);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_an_unused_number_has_none() {
        let mut names = Names::default();
        assert_eq!(names.of(0), Ok(Some("root".to_owned())));
        assert_eq!(names.of(3_999_999_999), Ok(None));
    }

    #[test]
    fn a_directory_that_hangs_costs_one_wait_and_its_answer_is_kept() {
        let (release, gate) = channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let mut names = Names::asking(move |uid| {
            let _open = gate.lock().unwrap().recv();
            Some(format!("user{uid}"))
        });
        assert_eq!(names.of(1), Err(Slow));
        let start = Instant::now();
        for uid in 1..100 {
            assert_eq!(names.of(uid), Err(Slow));
        }
        assert!(start.elapsed() < PATIENCE, "no second wait while one question hangs");
        drop(release);
        let deadline = Instant::now() + Duration::from_secs(10);
        while names.of(1) != Ok(Some("user1".to_owned())) {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert_eq!(names.of(7), Ok(Some("user7".to_owned())));
    }
}
