//! What the threads of a job do, read more seldom than the rest.

use steward_common::metric;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let switches = job.involuntary_switches.map(float);
    out.job_if(&metric::JOBS_INVOLUNTARY_SWITCHES, job.id, switches);
    let Some(threads) = job.threads else { return };
    out.job(&metric::JOBS_THREADS_RUNNABLE, job.id, &[], float(threads.running));
    out.job(&metric::JOBS_THREADS_UNINTERRUPTIBLE, job.id, &[], float(threads.uninterruptible));
    out.job(&metric::JOBS_THREADS_CONFINED, job.id, &[], float(threads.confined));
    out.job(&metric::JOBS_CPUS_REACHABLE, job.id, &[], float(threads.cpus_reachable));
}
