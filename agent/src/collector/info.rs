//! Descriptive labels, in one place.

use std::fmt::Display;

use steward_common::metric;

use crate::node::JobSample;
use crate::sample::Samples;

pub(super) fn collect(job: &JobSample, out: &mut Samples) {
    let known = |value: Option<&dyn Display>| value.map(ToString::to_string).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let environment = &job.environment;
    // Prometheus reads an empty label as none.
    let labels = [
        text(&job.user),
        known(job.uid.as_ref().map(|uid| uid as _)),
        text(&environment.account),
        text(&environment.partition),
        text(&environment.array_job),
        text(&environment.array_task),
        known(job.sluid.as_ref().map(|sluid| sluid as _)),
    ];
    let labels = labels.each_ref().map(|label| label as &dyn Display);
    out.job(&metric::JOBS_INFO, job.id, &labels, 1.0);
}
