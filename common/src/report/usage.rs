//! Who holds how much, by cluster, partition, account and user.

use std::collections::{HashMap, HashSet};

use crate::intern::Name;
use crate::rule::Job;

use super::held::jobs;
use super::{Ask, View};

/// How finely jobs are told apart, each within the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// By cluster.
    Cluster,
    /// By partition of it.
    Partition,
    /// By account that has jobs there.
    Account,
    /// By user of that account.
    User,
}

/// What a cluster, a partition, an account or a user there held.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cluster.
    pub cluster: String,
    /// The partition, the account and the user, as far as these are told apart.
    pub within: Vec<String>,
    /// Different users.
    pub users: u64,
    /// Jobs that held something in the window.
    pub jobs: u64,
    /// CPU-hours held in the window.
    pub cpu_hours: f64,
    /// GPU-hours held in the window.
    pub gpu_hours: f64,
    /// The share of the CPU-hours of all: of all clusters for a cluster, of its cluster for a
    /// partition, of its partition for an account or a user. `None` if there are none.
    pub cpu_share: Option<f64>,
    /// The same of GPU-hours.
    pub gpu_share: Option<f64>,
}

#[derive(Default)]
struct Sum {
    users: HashSet<Name>,
    jobs: u64,
    cpu: f64,
    gpu: f64,
}

/// The rows: by cluster and partition, then the most CPU-hours first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask, level: Level) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in views {
        let mut sums: HashMap<Place, Sum> = HashMap::new();
        for (job, held) in jobs(view.facts, ask) {
            let sum = sums.entry(place(job, level)).or_default();
            sum.users.insert(job.user);
            sum.jobs += 1;
            sum.cpu += held.cpu_hours;
            sum.gpu += held.gpu_hours;
        }
        rows.extend(sums.into_iter().map(|(place, sum)| Row {
            cluster: view.cluster(),
            within: place.into_iter().flatten().map(|name| view.text(name)).collect(),
            users: sum.users.len() as u64,
            jobs: sum.jobs,
            cpu_hours: sum.cpu,
            gpu_hours: sum.gpu,
            cpu_share: None,
            gpu_share: None,
        }));
    }
    let grouped = level >= Level::Account;
    rows.sort_by(|a, b| {
        let partition = |row: &Row| row.within.first().filter(|_| grouped).cloned();
        (a.cluster.cmp(&b.cluster))
            .then_with(|| partition(a).cmp(&partition(b)))
            .then_with(|| b.cpu_hours.total_cmp(&a.cpu_hours))
            .then_with(|| a.within.cmp(&b.within))
    });
    share(&mut rows, level);
    rows
}

/// Partition, account and user, as far as these are told apart.
type Place = [Option<Name>; 3];

fn place(job: &Job, level: Level) -> Place {
    let from = |least: Level, name: Name| (level >= least).then_some(name);
    [
        from(Level::Partition, job.partition),
        from(Level::Account, job.account),
        from(Level::User, job.user),
    ]
}

/// Shares of the whole that a row is a part of.
fn share(rows: &mut [Row], level: Level) {
    let whole = |row: &Row| match level {
        Level::Cluster => (None, None),
        Level::Partition => (Some(row.cluster.clone()), None),
        Level::Account | Level::User => (Some(row.cluster.clone()), row.within.first().cloned()),
    };
    let mut sums: HashMap<_, (f64, f64)> = HashMap::new();
    for row in rows.iter() {
        let sum = sums.entry(whole(row)).or_default();
        sum.0 += row.cpu_hours;
        sum.1 += row.gpu_hours;
    }
    for row in rows {
        let (cpu, gpu) = sums.get(&whole(row)).copied().unwrap_or_default();
        row.cpu_share = (cpu > 0.0).then(|| row.cpu_hours / cpu);
        row.gpu_share = (gpu > 0.0).then(|| row.gpu_hours / gpu);
    }
}
