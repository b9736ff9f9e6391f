//! GPUs that Slurm gave to the job.

use steward_common::metric;

use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    for gpu in job.environment.gpus.iter().flatten() {
        out.job(&metric::JOBS_GPUS_USED, job.id, &[gpu], 1.0);
        out.job(&metric::JOBS_GPU_ASSIGNED, job.id, &[gpu], 1.0);
    }
}
