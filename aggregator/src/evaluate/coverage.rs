//! How much of what jobs held was measured, by partition.

use std::collections::BTreeMap;

use steward_common::intern::Name;
use steward_common::rule::{Facts, Figure, Job};

/// A figure that rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// CPU time.
    Cpu,
    /// Peak memory.
    Memory,
    /// Use of GPUs.
    Gpu,
    /// What agents see of processes.
    Processes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Cpu, Kind::Memory, Kind::Gpu, Kind::Processes];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Memory => "memory",
            Kind::Gpu => "gpu",
            Kind::Processes => "processes",
        }
    }

    /// Hours that count, and the share of them that was seen.
    fn of(self, job: &Job) -> (f64, f64) {
        fn share<T>(figure: Option<&Figure<T>>) -> f64 {
            figure.map_or(0.0, |figure| figure.coverage.get())
        }
        let usage = &job.usage;
        let by_node = share(usage.nodes.as_deref());
        match self {
            Kind::Cpu => (job.cpu_hours(), share(usage.cpu_seconds.as_ref()).max(by_node)),
            Kind::Memory => (job.cpu_hours(), share(usage.peak_memory.as_ref()).max(by_node)),
            Kind::Gpu => (job.gpu_hours(), share(usage.gpus.as_deref())),
            Kind::Processes => (job.cpu_hours(), share(usage.work.as_deref())),
        }
    }
}

/// The measured share of the hours of each partition in which any were held.
#[must_use]
pub fn by_partition(facts: &Facts) -> BTreeMap<(String, Kind), f64> {
    let mut sums: BTreeMap<(Name, Kind), (f64, f64)> = BTreeMap::new();
    for job in facts.jobs() {
        for kind in Kind::ALL {
            let (hours, share) = kind.of(job);
            let sum = sums.entry((job.partition, kind)).or_default();
            *sum = (sum.0 + hours, sum.1 + hours * share);
        }
    }
    sums.into_iter()
        .filter(|(_, (held, _))| *held > 0.0)
        .map(|((name, kind), (held, seen))| {
            ((facts.names.text(name).to_owned(), kind), seen / held)
        })
        .collect()
}
