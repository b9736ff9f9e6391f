//! What the other figures stand on: from when to when the job was watched, and whether it worked.

use steward_common::metric;

use super::unix;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    out.job(&metric::JOBS_COVERED_FROM, job.id, &[], unix(job.covered_from));
    out.job(&metric::JOBS_COVERED_UNTIL, job.id, &[], unix(job.covered_until));
    out.job_if(&metric::JOBS_IDLE_SINCE, job.id, job.idle_since.map(unix));
    out.job_if(&metric::JOBS_FROZEN, job.id, job.frozen);
    if let Some(sluid) = job.sluid {
        let cluster = u32::try_from(sluid.cluster()).map(f64::from).ok();
        out.job_if(&metric::JOBS_SLUID_CLUSTER, job.id, cluster);
        out.job(&metric::JOBS_SUBMITTED, job.id, &[], sluid.submitted().as_secs_f64());
    }
}
