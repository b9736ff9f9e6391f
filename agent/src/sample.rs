//! Samples: what collectors make and outputs write.

use std::collections::BTreeMap;
use std::fmt::Display;

use steward_common::id::{ClusterName, JobId, NodeName};
use steward_common::metric::{JOB_LABEL, MetricDef, Set};

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
        }
    }
}

/// One value with the labels that are its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Label names and values, those of the node left out.
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
    selection: Selection,
    families: BTreeMap<&'static str, Family>,
}

impl Samples {
    /// No samples yet.
    #[must_use]
    pub const fn new(cluster: ClusterName, node: NodeName, selection: Selection) -> Self {
        Self { cluster, node, selection, families: BTreeMap::new() }
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
        let job = job.map(|job| (JOB_LABEL, job.to_string()));
        let own = def.labels.iter().zip(values).map(|(name, value)| (*name, value.to_string()));
        let labels = job.into_iter().chain(own).collect();
        let family =
            self.families.entry(def.name).or_insert_with(|| Family { def, points: Vec::new() });
        family.points.push(Point { labels, value });
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
