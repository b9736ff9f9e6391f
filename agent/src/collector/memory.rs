//! Memory, by each of its definitions.

use steward_common::limit::Limit;
use steward_common::metric;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let memory = &job.memory;
    for (def, bytes) in [
        (&metric::JOBS_MEMORY_ANON, memory.anon),
        (&metric::JOBS_MEMORY_FILE, memory.file),
        (&metric::JOBS_MEMORY_KERNEL, memory.kernel),
        (&metric::JOBS_MEMORY_PEAK, memory.peak),
        (&metric::JOBS_MEMORY_SHMEM, memory.shmem),
        (&metric::JOBS_MEMORY_SLURM, memory.slurm),
        (&metric::JOBS_MEMORY_SWAP, memory.swap),
        (&metric::JOBS_MEMORY_USAGE, memory.usage),
    ] {
        out.job_if(def, job.id, bytes.map(|bytes| float(bytes.get())));
    }
    if let Some(Limit::At(limit)) = memory.limit {
        out.job(&metric::JOBS_MEMORY_LIMIT, job.id, &[], float(limit.get()));
    }
}
