//! User names, asked of the system's directory on a thread of their own.
//!
//! The directory may be LDAP behind a daemon that hangs; a scan waits for half a second in all, and
//! one question is asked at a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User};

use crate::worker::Worker;

/// How long a scan waits for names, all of them together.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long "there is no such user" is believed.
const RETRY: Duration = Duration::from_secs(300);

/// A name, or when it was last asked for in vain.
#[derive(Debug)]
enum Answer {
    Name(String),
    None(Instant),
}

/// What the directory said: a name, no such user, or that it cannot tell.
type Lookup = Result<Option<String>, Slow>;

/// Names by user id.
#[derive(Debug)]
pub struct Names {
    known: HashMap<u32, Answer>,
    directory: Worker<u32, (u32, Lookup)>,
    budget: Duration,
}

/// The directory did not answer in time, or could not; the name is unknown for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow;

impl Default for Names {
    fn default() -> Self {
        Self::asking(|uid| {
            let user = User::from_uid(Uid::from_raw(uid)).map_err(|_| Slow)?;
            Ok(user.map(|user| user.name))
        })
    }
}

impl Names {
    /// Asks `directory`, on a thread of its own.
    #[must_use]
    pub fn asking(directory: impl Fn(u32) -> Lookup + Send + 'static) -> Self {
        let directory = Worker::new(move |uid| (uid, directory(uid)));
        Self { known: HashMap::new(), directory, budget: PATIENCE }
    }

    /// A new scan has its patience back.
    pub fn begin_scan(&mut self) {
        self.budget = PATIENCE;
    }

    /// The name of `uid`; `None` if it has none.
    ///
    /// # Errors
    /// If the directory is slow or cannot tell; the answer is kept for a later call.
    pub fn of(&mut self, uid: u32) -> Lookup {
        match self.known.get(&uid) {
            Some(Answer::Name(name)) => return Ok(Some(name.clone())),
            Some(Answer::None(asked)) if asked.elapsed() < RETRY => return Ok(None),
            _ => {}
        }
        // While one question hangs, a look costs nothing and no second one is asked.
        if self.directory.is_busy() {
            self.receive(Duration::ZERO);
        }
        if !self.directory.is_busy() {
            if !self.directory.ask(uid) {
                return Err(Slow);
            }
            let start = Instant::now();
            self.receive(self.budget);
            self.budget = self.budget.saturating_sub(start.elapsed());
        }
        match self.known.get(&uid) {
            Some(Answer::Name(name)) => Ok(Some(name.clone())),
            Some(Answer::None(_)) => Ok(None),
            None => Err(Slow),
        }
    }

    fn receive(&mut self, patience: Duration) {
        if let Some((uid, Ok(name))) = self.directory.wait(patience) {
            let answer = name.map_or_else(|| Answer::None(Instant::now()), Answer::Name);
            self.known.insert(uid, answer);
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
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let mut names = Names::asking(move |uid| {
            let _open = gate.lock().unwrap().recv();
            Ok(Some(format!("user{uid}")))
        });
        assert_eq!(names.of(1), Err(Slow));
        let start = Instant::now();
        for uid in 1..100 {
            assert_eq!(names.of(uid), Err(Slow));
        }
        assert!(start.elapsed() < PATIENCE, "no second wait while one question hangs");
        drop(release);
        names.begin_scan();
        let deadline = Instant::now() + Duration::from_secs(10);
        while names.of(1) != Ok(Some("user1".to_owned())) {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert_eq!(names.of(7), Ok(Some("user7".to_owned())));
    }

    #[test]
    fn a_directory_that_cannot_tell_has_not_said_that_there_is_no_such_user() {
        let mut names = Names::asking(|_| Err(Slow));
        assert_eq!(names.of(1), Err(Slow));
        assert_eq!(names.of(1), Err(Slow));
    }
}
