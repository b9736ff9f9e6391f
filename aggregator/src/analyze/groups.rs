//! Who belongs to which group: by config, by the system's groups, by Slurm account.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::unistd::{Group, User, getgrouplist};
use steward_common::summary::scope::Grouping;

/// Where groups come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSource {
    /// From the config: a group and its users.
    Config(BTreeMap<String, Vec<String>>),
    /// The groups of the system (files, LDAP, …), all those that a user is in.
    Unix,
    /// A job belongs to the account that it is charged to.
    Accounts,
}

impl GroupSource {
    /// As a summary asks for it.
    #[must_use]
    pub fn grouping(self) -> Grouping {
        match self {
            GroupSource::Accounts => Grouping::Accounts,
            GroupSource::Unix => {
                let directory = Directory::new(unix, PATIENCE);
                Grouping::Users(Box::new(move |user| directory.groups(user)))
            }
            GroupSource::Config(groups) => {
                let mut of_user: HashMap<String, Vec<String>> = HashMap::new();
                for (group, users) in groups {
                    for user in users {
                        of_user.entry(user).or_default().push(group.clone());
                    }
                }
                Grouping::Users(Box::new(move |user| {
                    of_user.get(user).cloned().unwrap_or_default()
                }))
            }
        }
    }
}

/// How long the system's directory may take for a user.
const PATIENCE: Duration = Duration::from_secs(5);

/// Users without an answer in time after whom nobody else is asked for.
const MOST: usize = 3;

/// The system's directory, which may ask a server that does not answer. Whoever waits for it is left
/// behind then.
struct Directory {
    ask: fn(&str) -> Vec<String>,
    patience: Duration,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    groups: HashMap<String, Vec<String>>,
    /// For how many users there was no answer.
    silent: usize,
}

impl Directory {
    fn new(ask: fn(&str) -> Vec<String>, patience: Duration) -> Directory {
        Directory { ask, patience, known: Mutex::default() }
    }

    /// The groups of a user, asked for once; none without an answer in time.
    fn groups(&self, user: &str) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(groups) = known.groups.get(user) {
            return groups.clone();
        }
        let groups = if known.silent < MOST { self.answer(user) } else { None };
        if groups.is_none() {
            known.silent += 1;
            if known.silent == MOST {
                tracing::warn!("the system's groups are not asked for any longer");
            }
        }
        let groups = groups.unwrap_or_default();
        known.groups.insert(user.to_owned(), groups.clone());
        groups
    }

    fn answer(&self, user: &str) -> Option<Vec<String>> {
        let (told, answer) = mpsc::channel();
        let (ask, user) = (self.ask, user.to_owned());
        let asked = thread::Builder::new().name("groups".to_owned()).spawn(move || {
            // Nobody may be waiting any longer.
            drop(told.send(ask(&user)));
        });
        let groups = asked.ok().and_then(|_| answer.recv_timeout(self.patience).ok());
        if groups.is_none() {
            let seconds = self.patience.as_secs();
            tracing::warn!(
                seconds,
                "the system does not say the groups of a user in time; no group"
            );
        }
        groups
    }
}

/// The groups of a user. One who has left, or whom the directory does not tell, is in none.
fn unix(user: &str) -> Vec<String> {
    let Ok(Some(known)) = User::from_name(user) else { return Vec::new() };
    let Ok(name) = CString::new(user) else { return Vec::new() };
    let ids = getgrouplist(&name, known.gid).unwrap_or_else(|_| vec![known.gid]);
    let named = |id| Group::from_gid(id).ok().flatten().map(|group| group.name);
    ids.into_iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn config_groups_are_turned_round() {
        let groups = BTreeMap::from([
            ("physics".to_owned(), vec!["alice".to_owned(), "bob".to_owned()]),
            ("all".to_owned(), vec!["bob".to_owned()]),
        ]);
        let Grouping::Users(of) = GroupSource::Config(groups).grouping() else { panic!() };
        assert_eq!(
            (of("alice"), of("bob")),
            (vec!["physics".to_owned()], vec!["all".to_owned(), "physics".to_owned()])
        );
        assert!(of("carol").is_empty());
    }

    #[test]
    fn a_directory_that_does_not_answer_costs_a_little_time_and_once() {
        let directory = Directory::new(
            |user| {
                if user != "quick" {
                    thread::sleep(Duration::from_secs(30));
                }
                vec!["staff".to_owned()]
            },
            Duration::from_millis(200),
        );
        let begun = Instant::now();
        assert_eq!(directory.groups("quick"), ["staff"]);
        for user in ["a", "a", "b", "a", "c", "d", "e"] {
            assert!(directory.groups(user).is_empty());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        // What was known stays known.
        assert_eq!(directory.groups("quick"), ["staff"]);
        assert_eq!(directory.known.lock().unwrap().silent, MOST + 2);
    }

    #[test]
    fn the_system_knows_root_and_not_everyone() {
        assert!(unix("root").contains(&"root".to_owned()));
        assert!(unix("no-such-user-of-steward").is_empty() && unix("a\0b").is_empty());
    }
}
