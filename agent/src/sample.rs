//! Samples: what collectors make and outputs write.

use std::collections::BTreeMap;
use std::fmt::Display;

use steward_common::id::{ClusterName, JobId, NodeName};
use steward_common::metric::{MetricDef, Set};

/// Which sets of metrics are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The sixteen inherited names.
    pub original: bool,
    /// Their successors in base units.
    pub modern: bool,
}

impl Selection {
    const fn takes(self, set: Set) -> bool {
        match set {
            Set::Original => self.original,
            Set::Modern => self.modern,
            Set::Info | Set::Agent => true,
            // Not the agent's to export.
            Set::Centre | Set::Cluster | Set::Mila | Set::Vpenso => false,
        }
    }
}

/// How many series there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Values of a label that a user chooses, such as a process's name, for one job.
    pub names: usize,
    /// Series of one job.
    pub per_job: usize,
    /// Series of all jobs.
    pub per_node: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { names: 20, per_job: 2_000, per_node: 100_000 }
    }
}

/// One value with the labels that are its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The job that it is about.
    pub job: Option<JobId>,
    /// Other label names and values, those of the node left out.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

/// All points of one metric.
#[derive(Clone, Debug)]
pub struct Family {
    /// The catalogue's entry.
    pub def: &'static MetricDef,
    /// Its points.
    pub points: Vec<Point>,
}

/// The samples of one node.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The `cluster` label of all of them.
    pub cluster: ClusterName,
    /// The `instance` label of all of them.
    pub node: NodeName,
    /// How many there may be.
    pub budget: Budget,
    selection: Selection,
    families: BTreeMap<&'static str, Family>,
    spent: Spent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    job: Option<JobId>,
    of_job: usize,
    of_node: usize,
    dropped: u64,
}

impl Samples {
    /// No samples yet.
    #[must_use]
    pub fn new(cluster: ClusterName, node: NodeName, selection: Selection, budget: Budget) -> Self {
        let (families, spent) = (BTreeMap::new(), Spent::default());
        Self { cluster, node, budget, selection, families, spent }
    }

    /// A value about a job; a metric that is switched off is dropped here.
    pub fn job(
        &mut self,
        def: &'static MetricDef,
        job: JobId,
        labels: &[&dyn Display],
        value: impl Into<f64>,
    ) {
        self.add(def, Some(job), labels, value.into());
    }

    /// Like [`Self::job`]; what was not measured is not emitted.
    pub fn job_if(&mut self, def: &'static MetricDef, job: JobId, value: Option<impl Into<f64>>) {
        if let Some(value) = value {
            self.add(def, Some(job), &[], value.into());
        }
    }

    /// A value about the agent itself.
    pub fn agent(&mut self, def: &'static MetricDef, labels: &[&dyn Display], value: f64) {
        self.add(def, None, labels, value);
    }

    fn add(
        &mut self,
        def: &'static MetricDef,
        job: Option<JobId>,
        values: &[&dyn Display],
        value: f64,
    ) {
        debug_assert_eq!(def.labels.len(), values.len(), "{}: one value a label", def.name);
        debug_assert_eq!(job.is_none(), def.set == Set::Agent, "{}: a job or the agent", def.name);
        if !self.selection.takes(def.set) {
            return;
        }
        if job.is_some_and(|job| !self.spend(job)) {
            return;
        }
        let own = def.labels.iter().zip(values).map(|(name, value)| (*name, value.to_string()));
        let labels = own.collect();
        let family =
            self.families.entry(def.name).or_insert_with(|| Family { def, points: Vec::new() });
        family.points.push(Point { job, labels, value });
    }

    /// Whether there is room for one more series of `job`; the series of a job come in a row.
    fn spend(&mut self, job: JobId) -> bool {
        if self.spent.job != Some(job) {
            self.spent = Spent { job: Some(job), of_job: 0, ..self.spent };
        }
        let fits =
            self.spent.of_job < self.budget.per_job && self.spent.of_node < self.budget.per_node;
        if fits {
            self.spent.of_job += 1;
            self.spent.of_node += 1;
        } else {
            self.spent.dropped += 1;
        }
        fits
    }

    /// How many series there was no room for.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.spent.dropped
    }

    /// The metrics in alphabetical order.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.values()
    }

    /// How many series there are.
    #[must_use]
    pub fn series(&self) -> usize {
        self.families.values().map(|family| family.points.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_common::metric;

    #[test]
    fn what_is_over_the_limit_is_dropped_and_counted() {
        let selection = Selection { original: true, modern: true };
        let budget = Budget { names: 5, per_job: 3, per_node: 5 };
        let (cluster, node) = ("c".parse().unwrap(), "n".parse().unwrap());
        let mut samples = Samples::new(cluster, node, selection, budget);
        for job in 1..=3 {
            for core in 0..4 {
                let id = JobId::new(job).unwrap();
                samples.job(&metric::JOBS_CPU_TIME_CORE, id, &[&core], 1.0);
            }
        }
        samples.agent(&metric::AGENT_SCANS, &[], 1.0);
        assert_eq!((samples.series(), samples.dropped()), (3 + 2 + 1, 1 + 2 + 4));
    }
}
