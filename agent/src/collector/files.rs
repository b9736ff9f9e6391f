//! Open files.

use steward_common::metric;

use super::float;
use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let Some(files) = &job.files else { return };
    out.job(&metric::JOBS_OPENED_FILES, job.id, &[], float(files.distinct));
    out.job(&metric::JOBS_OPEN_FILES, job.id, &[], float(files.distinct));
    out.job(&metric::JOBS_OPEN_FDS, job.id, &[], float(files.descriptors));
    out.job(&metric::JOBS_USES_SCRATCH, job.id, &[], files.on_scratch > 0);
    out.job(&metric::JOBS_SCRATCH_OPEN_FILES, job.id, &[], float(files.on_scratch));
    for (class, count) in &files.by_class {
        out.job(&metric::JOBS_OPEN_FILES_BY_CLASS, job.id, &[class], float(*count));
    }
}
