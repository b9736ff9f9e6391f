//! Report `most-gpus`: the job with the most GPUs of each user.

use crate::rule::measure;

use super::most::{self, Measure, Row};
use super::{Ask, Needs, Report, Table, View};

/// The report.
pub const REPORT: Report = Report {
    about: "the job with the most GPUs of each user",
    needs: Needs::Measurements,
    make: |views, ask| {
        let efficiency = ("gpu_efficiency_percent", "GPU %");
        vec![most::table("Most GPUs", efficiency, true, &rows(views, ask))] as Vec<Table>
    },
};

/// The rows, most GPUs first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask) -> Vec<Row> {
    let measure = Measure {
        size: crate::rule::Job::gpu_count,
        efficiency: |job, ask| measure::gpu(job, ask.coverage).ok()?.share(),
    };
    most::rows(views, ask, measure)
}
