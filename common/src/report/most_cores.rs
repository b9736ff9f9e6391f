//! Report `most-cores`: the job with the most CPUs of each user.

use crate::rule::measure;

use super::most::{self, Measure, Row};
use super::{Ask, Needs, Report, Table, View};

/// The report.
pub const REPORT: Report = Report {
    about: "the job with the most CPUs of each user",
    needs: Needs::Measurements,
    make: |views, ask| {
        let efficiency = ("cpu_efficiency_percent", "CPU %");
        vec![most::table("Most CPUs", efficiency, false, &rows(views, ask))] as Vec<Table>
    },
};

/// The rows, most CPUs first.
#[must_use]
pub fn rows(views: &[View<'_>], ask: &Ask) -> Vec<Row> {
    let measure = Measure {
        size: |job| job.cpus.unwrap_or(0),
        efficiency: |job, ask| measure::cpu(job, ask.coverage).ok()?.share(),
    };
    most::rows(views, ask, measure)
}
