//! What a summary is about: which time, whose runs, which groups, which nodes.

use std::collections::HashMap;
use std::fmt;

use crate::intern::{Name, Names};
use crate::summary::row::Row;
use crate::window::Window;

/// The group of users that are in none.
pub const UNGROUPED: &str = "ungrouped";

/// What a summary is about.
#[derive(Debug)]
pub struct Scope {
    /// The time that is summed up.
    pub window: Window,
    /// The days of that time, in order, without gaps. Who makes them knows the time zone; a day
    /// may have 23 or 25 hours.
    pub days: Vec<Day>,
    /// Whose runs count.
    pub filter: Filter,
    /// Who belongs together.
    pub grouping: Grouping,
    /// What the nodes have, by cluster and node, as far as it is known.
    pub nodes: HashMap<String, HashMap<String, NodeSize>>,
    /// What is summed up.
    pub detail: Detail,
}

/// What is summed up: who asks for less pays for less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// All there is.
    #[default]
    All,
    /// The users alone. Of a row, account, partition, QOS, nodes, kinds of GPUs and time limit are
    /// not looked at, unless the filter does.
    Users,
}

/// One day, as people call it, and when it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// `2026-11-16`.
    pub label: String,
    /// From its first moment to that of the next.
    pub window: Window,
}

/// Which runs count. An empty list admits all; of several lists, all must admit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Runs of these clusters.
    pub clusters: Vec<String>,
    /// Runs of these users.
    pub users: Vec<String>,
    /// Runs charged to these accounts.
    pub accounts: Vec<String>,
    /// Runs of members of these groups.
    pub groups: Vec<String>,
    /// Runs in these partitions.
    pub partitions: Vec<String>,
}

/// Names the groups of a user.
pub type GroupsOf = Box<dyn Fn(&str) -> Vec<String> + Send>;

/// Who belongs together.
pub enum Grouping {
    /// Runs charged to the same account.
    Accounts,
    /// Users, by a function that names the groups of one. It is asked once for each user. A user
    /// in several groups counts in each of them, a user in none in [`UNGROUPED`].
    Users(GroupsOf),
}

impl fmt::Debug for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grouping::Accounts => "Accounts",
            Grouping::Users(_) => "Users",
        })
    }
}

/// What a node has, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeSize {
    /// Its CPUs, as Slurm counts them.
    pub cpus: Option<u32>,
    /// Its GPUs.
    pub gpus: Option<u32>,
}

/// One list of a filter, as numbers.
#[derive(Debug, Default)]
struct Choice {
    all: bool,
    names: Vec<Name>,
}

impl Choice {
    fn new(texts: &[String], names: &Names) -> Choice {
        let names = texts.iter().filter_map(|text| names.find(text)).collect();
        Choice { all: texts.is_empty(), names }
    }

    fn admits(&self, name: Name) -> bool {
        self.all || self.names.contains(&name)
    }
}

/// A filter as numbers; it is made anew when the table of names has grown.
#[derive(Debug, Default)]
pub(super) struct Choices {
    cluster: Choice,
    user: Choice,
    account: Choice,
    partition: Choice,
}

impl Choices {
    pub(super) fn new(filter: &Filter, names: &Names) -> Choices {
        Choices {
            cluster: Choice::new(&filter.clusters, names),
            user: Choice::new(&filter.users, names),
            account: Choice::new(&filter.accounts, names),
            partition: Choice::new(&filter.partitions, names),
        }
    }

    /// Whether all lists but that of the groups admit the run.
    pub(super) fn admit(&self, row: &Row) -> bool {
        self.cluster.admits(row.cluster)
            && self.user.admits(row.user)
            && self.account.admits(row.account)
            && self.partition.admits(row.partition)
    }
}

/// The groups of each user seen, each asked for once.
#[derive(Debug, Default)]
pub(super) struct Groups {
    of_user: Vec<Option<Vec<String>>>,
}

impl Groups {
    /// The groups that a run of `user`, charged to `account`, counts in.
    pub(super) fn of(
        &mut self,
        grouping: &Grouping,
        user: Name,
        account: Name,
        names: &Names,
    ) -> &[String] {
        let (key, text) = match grouping {
            Grouping::Accounts => (account, names.text(account)),
            Grouping::Users(_) => (user, names.text(user)),
        };
        if self.of_user.len() <= key.index() {
            self.of_user.resize(key.index() + 1, None);
        }
        let Some(known) = self.of_user.get_mut(key.index()) else { return &[] };
        known.get_or_insert_with(|| {
            let mut groups = match grouping {
                Grouping::Accounts => vec![text.to_owned()],
                Grouping::Users(groups) => groups(text),
            };
            groups.retain(|group| !group.is_empty());
            groups.sort();
            groups.dedup();
            if groups.is_empty() {
                groups.push(UNGROUPED.to_owned());
            }
            groups
        })
    }

    /// Whether someone is in more than one, so that the groups add up to more than there is.
    pub(super) fn overlap(&self) -> bool {
        self.of_user.iter().flatten().any(|groups| groups.len() > 1)
    }
}
