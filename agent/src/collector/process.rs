//! Processes, threads and resident sets.

use steward_common::metric;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let Some(processes) = &job.processes else { return };
    out.job(&metric::JOBS_SPAWNED_PROCESSES, job.id, &[], float(processes.count));
    out.job(&metric::JOBS_PROCESSES, job.id, &[], float(processes.count));
    out.job(&metric::JOBS_THREADS, job.id, &[], float(processes.threads.values().sum()));
    for (name, threads) in &processes.threads {
        out.job(&metric::JOBS_THREAD_COUNT, job.id, &[name], float(*threads));
    }
    out.job(&metric::JOBS_RSS, job.id, &[], processes.rss.mib());
    out.job(&metric::JOBS_MEMORY_RSS, job.id, &[], float(processes.rss.get()));
}
