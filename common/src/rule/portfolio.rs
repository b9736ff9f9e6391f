//! The jobs of one scope, grouped by user: the only thing that a rule sees.

use std::collections::HashMap;
use std::time::Duration;

use crate::id::NodeName;
use crate::intern::Name;

use super::facts::{Facts, Job, JobKey};

/// Which jobs a rule is about. An empty list admits all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// These clusters. A portfolio is of one cluster; that of another holds no jobs.
    pub clusters: Vec<String>,
    /// Jobs in these partitions.
    pub partitions: Vec<String>,
    /// But not in these.
    pub excluded_partitions: Vec<String>,
    /// Jobs of these qualities of service.
    pub qos: Vec<String>,
    /// But not of these.
    pub excluded_qos: Vec<String>,
    /// Jobs that hold no other nodes than these.
    pub nodes: Vec<NodeName>,
    /// Not the jobs of these users. What they hold still counts in the totals that users are
    /// compared with.
    pub excluded_users: Vec<String>,
    /// Jobs that ran at least for so long.
    pub min_run_time: Duration,
    /// Also jobs that have not ended.
    pub running: bool,
}

impl Scope {
    /// Jobs that ended, and ran at least for so many minutes.
    pub(super) fn ended(minutes: u64) -> Scope {
        Scope { min_run_time: Duration::from_secs(60 * minutes), ..Scope::default() }
    }

    /// The same with jobs that still run.
    pub(super) fn started(minutes: u64) -> Scope {
        Scope { running: true, ..Scope::ended(minutes) }
    }
}

/// What jobs held.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// How many they are.
    pub jobs: u64,
    /// CPU-hours.
    pub cpu_hours: f64,
    /// GPU-hours.
    pub gpu_hours: f64,
    /// GiB-hours of memory.
    pub gib_hours: f64,
}

impl Totals {
    fn add(&mut self, job: &Job) {
        self.jobs += 1;
        self.cpu_hours += job.cpu_hours();
        self.gpu_hours += job.gpu_hours();
        self.gib_hours += job.gib_hours();
    }

    fn merge(&mut self, other: Totals) {
        self.jobs += other.jobs;
        self.cpu_hours += other.cpu_hours;
        self.gpu_hours += other.gpu_hours;
        self.gib_hours += other.gib_hours;
    }
}

/// Names as a scope lists them, or all: by the place of a name, because it is asked of every job.
struct Choice {
    admitted: Vec<bool>,
}

impl Choice {
    fn new(facts: &Facts, only: &[String], not: &[String]) -> Choice {
        let mut admitted = vec![only.is_empty(); facts.names.len()];
        for (list, admits) in [(only, true), (not, false)] {
            for name in list.iter().filter_map(|text| facts.names.find(text)) {
                if let Some(admitted) = admitted.get_mut(name.index()) {
                    *admitted = admits;
                }
            }
        }
        Choice { admitted }
    }

    fn admits(&self, name: Name) -> bool {
        self.admitted.get(name.index()).copied().unwrap_or(false)
    }
}

/// Where one user's jobs stand in the order.
#[derive(Debug, Clone, Copy)]
struct Part {
    user: Name,
    from: usize,
    to: usize,
}

/// The jobs of one scope that have started, grouped by user, with what they are compared with.
#[derive(Debug)]
pub struct Portfolio<'a> {
    facts: &'a Facts,
    /// By user, in the order of names, then by id.
    order: Vec<&'a Job>,
    parts: Vec<Part>,
    held: HashMap<Name, Totals>,
    total: Totals,
}

impl<'a> Portfolio<'a> {
    /// The jobs that a scope admits.
    #[must_use]
    pub fn new(facts: &'a Facts, scope: &Scope) -> Portfolio<'a> {
        let partitions = Choice::new(facts, &scope.partitions, &scope.excluded_partitions);
        let qos = Choice::new(facts, &scope.qos, &scope.excluded_qos);
        let users = Choice::new(facts, &[], &scope.excluded_users);
        let nodes: Vec<String> = scope.nodes.iter().map(|node| node.as_str().to_owned()).collect();
        let nodes = (!nodes.is_empty()).then(|| Choice::new(facts, &nodes, &[]));
        let mut portfolio = Portfolio {
            facts,
            order: Vec::new(),
            parts: Vec::new(),
            held: HashMap::new(),
            total: Totals::default(),
        };
        let cluster = facts.cluster.as_str();
        if !scope.clusters.is_empty() && !scope.clusters.iter().any(|known| known == cluster) {
            return portfolio;
        }
        // Jobs of a user stand together.
        for jobs in facts.jobs().chunk_by(|a, b| a.user == b.user) {
            let Some(user) = jobs.first().map(|job| job.user) else { continue };
            let (mut held, from) = (Totals::default(), portfolio.order.len());
            let admitted = users.admits(user);
            for job in jobs {
                let here = partitions.admits(job.partition)
                    && qos.admits(job.qos)
                    && nodes.as_ref().is_none_or(|nodes| within(facts.nodes_of(job), nodes));
                // A run that was put back into the queue held what it held.
                let is_over = job.end.is_some() || job.state.is_ended();
                if !here || job.start.is_none() || (job.state.is_pending() && !is_over) {
                    continue;
                }
                held.add(job);
                let long = job.elapsed.is_some_and(|elapsed| {
                    Duration::from_secs(u64::from(elapsed)) >= scope.min_run_time
                });
                if admitted && long && (scope.running || is_over) {
                    portfolio.order.push(job);
                }
            }
            let to = portfolio.order.len();
            if held.jobs > 0 {
                portfolio.total.merge(held);
                portfolio.held.insert(user, held);
            }
            if to > from {
                portfolio.parts.push(Part { user, from, to });
            }
        }
        portfolio
    }

    /// What else is known: names, hardware, the present.
    #[must_use]
    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// The users who have a job in it, by name, each with the jobs by id.
    pub fn users(&self) -> impl Iterator<Item = (Name, &[&'a Job])> {
        self.parts.iter().map(|part| (part.user, self.order.get(part.from..part.to).unwrap_or(&[])))
    }

    /// A portfolio for each user, with that user's jobs alone. Totals are still those of all.
    pub fn by_user(&self) -> impl Iterator<Item = Portfolio<'a>> {
        self.users().map(|(user, jobs)| Portfolio {
            facts: self.facts,
            order: jobs.to_vec(),
            parts: vec![Part { user, from: 0, to: jobs.len() }],
            held: HashMap::from([(user, self.held_by(user))]),
            total: self.total,
        })
    }

    /// All jobs, by user and id.
    #[must_use]
    pub fn jobs(&self) -> &[&'a Job] {
        &self.order
    }

    /// A job of a user.
    #[must_use]
    pub fn job(&self, user: Name, key: JobKey) -> Option<&'a Job> {
        let (_, jobs) = self.users().find(|(known, _)| *known == user)?;
        let place = jobs.binary_search_by_key(&key, |job| job.key).ok()?;
        jobs.get(place).copied()
    }

    /// What all jobs at the scope's place held: of excluded users too, and however short.
    #[must_use]
    pub fn total(&self) -> Totals {
        self.total
    }

    /// What all jobs of a user at the scope's place held, however short.
    #[must_use]
    pub fn held_by(&self, user: Name) -> Totals {
        self.held.get(&user).copied().unwrap_or_default()
    }

    /// How many users have jobs at the scope's place.
    #[must_use]
    pub fn user_count(&self) -> usize {
        self.held.len()
    }
}

fn within(nodes: &[Name], choice: &Choice) -> bool {
    !nodes.is_empty() && nodes.iter().all(|node| choice.admits(*node))
}
