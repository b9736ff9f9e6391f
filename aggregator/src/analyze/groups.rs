//! Who belongs to which group: by config, by the system's groups, by Slurm account.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;

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
            GroupSource::Unix => Grouping::Users(Box::new(unix)),
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
    fn the_system_knows_root_and_not_everyone() {
        assert!(unix("root").contains(&"root".to_owned()));
        assert!(unix("no-such-user-of-steward").is_empty() && unix("a\0b").is_empty());
    }
}
