//! What a summary found, in numbers and names; how it looks is the business of outputs.

use std::collections::BTreeMap;

use super::Summary;
use super::hours::{Hours, Waste};
use super::part::{Part, sorted};
use super::quantile::{Spread, Waits};
use super::scope::{Grouping, NodeSize};
use crate::intern::Names;
use crate::window::Window;

/// Everything about a window. Lists are in order of CPU-hours held, most first, days in order of
/// time. Ratios are shares of 1.
#[derive(Debug, Clone)]
pub struct Report {
    /// The time that it is about.
    pub window: Window,
    /// All runs together; its name is empty.
    pub total: Line,
    /// Each day of the window.
    pub days: Vec<DayLine>,
    /// By cluster.
    pub clusters: Vec<Line>,
    /// By user.
    pub users: Vec<Line>,
    /// By group; a user in several groups counts in each.
    pub groups: Vec<Line>,
    /// Whether someone is in several groups, so that groups add up to more than the total.
    pub groups_overlap: bool,
    /// By account.
    pub accounts: Vec<Line>,
    /// By partition.
    pub partitions: Vec<Line>,
    /// By quality of service.
    pub qos: Vec<Line>,
    /// By node.
    pub nodes: Vec<NodeLine>,
    /// By type of GPU.
    pub gpu_types: Vec<GpuLine>,
    /// By state, most runs first.
    pub states: Vec<StateLine>,
    /// CPU time used of held, run by run.
    pub cpu_spread: Spread,
    /// Peak memory of memory asked for, run by run.
    pub memory_spread: Spread,
    /// GPU time used of held, run by run.
    pub gpu_spread: Spread,
    /// Time run of the time limit, run by run.
    pub limit_spread: Spread,
}

impl Report {
    /// Whether no run was in the window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total.tally.jobs == 0
    }

    /// Users by what they wasted, most first; those with nothing known to be wasted are left out.
    /// Hours of CPUs, memory and GPUs have no unit in common, so each counts as a share of what all
    /// users together held of it, and a user with the largest of his shares.
    #[must_use]
    pub fn wasters(&self) -> Vec<Waster<'_>> {
        let held = &self.total.tally;
        let share = |wasted: &Waste, held: &Hours| {
            wasted
                .total()
                .filter(|_| held.reserved > 0.0)
                .map_or(0.0, |hours| hours / held.reserved)
        };
        let worst = |line: &Line| {
            let Wastes { cpu, memory, gpu } = &line.waste;
            share(cpu, &held.cpu).max(share(memory, &held.memory)).max(share(gpu, &held.gpu))
        };
        let waster = |line| Waster { line, share: worst(line) };
        let mut wasters: Vec<Waster<'_>> = self.users.iter().map(waster).collect();
        wasters.retain(|one| one.share > 0.0);
        wasters.sort_by(|one, other| other.share.total_cmp(&one.share));
        wasters
    }
}

/// A user who wasted something.
#[derive(Debug, Clone, Copy)]
pub struct Waster<'r> {
    /// The user.
    pub line: &'r Line,
    /// Of what all users held of the resource of which this is most.
    pub share: f64,
}

/// One user, group, account, partition, …
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Its name; empty where Slurm has none.
    pub name: String,
    /// Different users among its runs.
    pub users: u64,
    /// What its runs held and used.
    pub tally: Tally,
    /// What they wasted.
    pub waste: Wastes,
}

/// What some runs held and used, and how long they waited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Runs that held resources in the window, or, never started, ended or were submitted in it.
    pub jobs: u64,
    /// CPU-hours.
    pub cpu: Hours,
    /// GiB-hours of memory: asked for, and the peak for all the time.
    pub memory: Hours,
    /// GPU-hours.
    pub gpu: Hours,
    /// From submission to start, of the runs that started in the window.
    pub wait: Waits,
}

/// What was wasted of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wastes {
    /// CPU-hours.
    pub cpu: Waste,
    /// GiB-hours of memory.
    pub memory: Waste,
    /// GPU-hours.
    pub gpu: Waste,
}

/// One day.
#[derive(Debug, Clone, PartialEq)]
pub struct DayLine {
    /// As people call it.
    pub label: String,
    /// When it is.
    pub window: Window,
    /// Runs that held resources on it, or, never started, ended or were submitted on it.
    pub jobs: u64,
    /// Runs that started on it.
    pub started: u64,
    /// Users of the runs.
    pub users: u64,
    /// CPU-hours.
    pub cpu: Hours,
    /// GiB-hours of memory.
    pub memory: Hours,
    /// GPU-hours.
    pub gpu: Hours,
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeLine {
    /// Its cluster.
    pub cluster: String,
    /// Its name.
    pub node: String,
    /// Runs that were on it.
    pub jobs: u64,
    /// CPU-hours held on it.
    pub cpu_hours: f64,
    /// GPU-hours held on it.
    pub gpu_hours: f64,
    /// What it has.
    pub size: NodeSize,
    /// Share of its CPU-hours in the window that were held. More than 1 is possible where runs
    /// with several nodes hold unequal parts, which Slurm's database does not tell.
    pub cpu_utilisation: Option<f64>,
    /// Share of its GPU-hours in the window that were held.
    pub gpu_utilisation: Option<f64>,
}

impl NodeLine {
    pub(super) fn new(
        (cluster, node): (&str, String),
        jobs: u64,
        (cpu_hours, gpu_hours): (f64, f64),
        size: NodeSize,
        window: Window,
    ) -> NodeLine {
        let time = window.seconds() as f64 / 3600.0;
        let share = |hours: f64, of: Option<u32>| {
            of.filter(|of| *of > 0).map(|of| hours / (f64::from(of) * time))
        };
        NodeLine {
            cluster: cluster.to_owned(),
            node,
            jobs,
            cpu_hours,
            gpu_hours,
            size,
            cpu_utilisation: share(cpu_hours, size.cpus),
            gpu_utilisation: share(gpu_hours, size.gpus),
        }
    }
}

/// One type of GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuLine {
    /// Its name; empty if it is not known.
    pub model: String,
    /// Runs that held some.
    pub jobs: u64,
    /// GPU-hours.
    pub gpu: Hours,
}

/// One state.
#[derive(Debug, Clone, PartialEq)]
pub struct StateLine {
    /// Slurm's long name.
    pub state: String,
    /// Runs in it.
    pub jobs: u64,
    /// Their share of all runs.
    pub share: f64,
    /// CPU-hours that they held.
    pub cpu_hours: f64,
    /// GPU-hours that they held.
    pub gpu_hours: f64,
}

impl Summary {
    /// Makes the tables. `names` is the table that the rows' names are of.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> Report {
        let mut total = Part::default();
        let mut groups: BTreeMap<String, Part> = BTreeMap::new();
        for (user, part) in self.users.iter() {
            total.merge(part);
            if let Grouping::Users(_) = self.scope.grouping {
                for group in self.groups.of(&self.scope.grouping, user, user, names) {
                    groups.entry(group.clone()).or_default().merge(part);
                }
            }
        }
        if let Grouping::Accounts = self.scope.grouping {
            for (account, part) in self.accounts.iter() {
                for group in self.groups.of(&self.scope.grouping, account, account, names) {
                    groups.entry(group.clone()).or_default().merge(part);
                }
            }
        }
        let total = total.line("");
        let days = self.scope.days.into_iter().zip(self.days);
        Report {
            window: self.scope.window,
            days: days.map(|(day, sum)| sum.finish(day)).collect(),
            clusters: self.queues.by(|[cluster, _, _]| *cluster).lines(names),
            users: self.users.lines(names),
            groups: sorted(groups.into_iter().map(|(name, part)| part.line(&name)).collect()),
            groups_overlap: self.groups.overlap(),
            accounts: self.accounts.lines(names),
            partitions: self.queues.by(|[_, partition, _]| *partition).lines(names),
            qos: self.queues.by(|[_, _, qos]| *qos).lines(names),
            nodes: self.places.nodes(
                names,
                self.scope.window,
                &self.scope.filter,
                &self.scope.nodes,
            ),
            gpu_types: self.places.gpu_types(names),
            states: self.states.lines(names, total.tally.jobs),
            total,
            cpu_spread: self.cpu_spread,
            memory_spread: self.memory_spread,
            gpu_spread: self.gpu_spread,
            limit_spread: self.limit_spread,
        }
    }
}
