//! Processes, threads and resident sets.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use steward_common::metric;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

/// The name under which those are summed up that have no series of their own.
const OTHER: &str = "other";

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let Some(processes) = &job.processes else { return };
    let threads = float(processes.threads.values().sum());
    out.job(&metric::JOBS_SPAWNED_PROCESSES, job.id, &[], float(processes.count));
    out.job(&metric::JOBS_PROCESSES, job.id, &[], float(processes.count));
    out.job(&metric::JOBS_THREADS, job.id, &[], threads);
    let per_cpu = job.cpus.map(|cpus| threads / f64::from(cpus.get()));
    out.job_if(&metric::JOBS_THREADS_PER_CPU, job.id, per_cpu);
    for (name, threads) in largest(&processes.threads, out.budget.names) {
        out.job(&metric::JOBS_THREAD_COUNT, job.id, &[&name], float(threads));
    }
    out.job(&metric::JOBS_RSS, job.id, &[], processes.rss.mib());
    out.job(&metric::JOBS_MEMORY_RSS, job.id, &[], float(processes.rss.get()));
}

/// The names with the most threads, and the rest as one: a job may give its processes any number
/// of names.
fn largest(threads: &BTreeMap<String, u64>, most: usize) -> BTreeMap<&str, u64> {
    let mut all: Vec<(&str, u64)> =
        threads.iter().map(|(name, threads)| (name.as_str(), *threads)).collect();
    all.sort_by_key(|(_, threads)| Reverse(*threads));
    let rest = all.split_off(most.min(all.len()));
    let mut kept: BTreeMap<&str, u64> = all.into_iter().collect();
    if !rest.is_empty() {
        // A process may have that very name.
        *kept.entry(OTHER).or_insert(0) += rest.iter().map(|(_, threads)| threads).sum::<u64>();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_names_stay_and_the_sum_does_too() {
        let threads = BTreeMap::from(
            [("a", 1), ("b", 9), ("c", 3), ("d", 3), ("other", 2)]
                .map(|(name, threads)| (name.to_owned(), threads)),
        );
        assert_eq!(largest(&threads, 9).len(), 5);
        assert_eq!(largest(&threads, 2), BTreeMap::from([("b", 9), ("c", 3), (OTHER, 6)]));
        assert_eq!(largest(&threads, 0), BTreeMap::from([(OTHER, 18)]));
        assert_eq!(largest(&threads, 4).values().sum::<u64>(), 18);
    }
}
