//! Checks of single jobs, whose findings are shown with the job and sent to nobody.

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit};
use super::measure::Missing;
use super::portfolio::Portfolio;
use super::{Subject, Verdict, Why};

/// What a check found: the share that was of no use, and figures.
pub(super) struct Advice {
    pub(super) wasted: Option<f64>,
    pub(super) figures: Figures,
}

impl Advice {
    /// Figures about a burden rather than a waste.
    pub(super) fn new(figures: Figures) -> Advice {
        Advice { wasted: None, figures }
    }
}

/// Checks every job; those with GPUs only if the check makes sense for them.
pub(super) fn by_job(
    portfolio: &Portfolio<'_>,
    gpu_jobs: bool,
    check: impl Fn(&Job) -> Result<Option<Advice>, Missing>,
) -> Vec<(Subject, Verdict)> {
    let judge = |job: &&Job| {
        if job.gpu_count() > 0 && !gpu_jobs {
            return (Subject::job(job), Verdict::NotApplicable(Why::Exempt));
        }
        let verdict = match check(job) {
            Ok(Some(Advice { wasted, figures })) => Verdict::Finding(Finding {
                audience: Audience::Advice,
                hits: vec![Hit::new(job, wasted, Figures::default())],
                figures,
            }),
            Ok(None) => Verdict::Fine,
            Err(missing) => Verdict::NoData(missing),
        };
        (Subject::job(job), verdict)
    };
    portfolio.jobs().iter().map(judge).collect()
}

/// The larger of what was asked for and what was moved: a program that reads from memory what the
/// kernel has cached, and one that maps its files, both read. `None` if neither is known.
pub(super) fn traffic(requested: Option<u64>, moved: Option<u64>) -> Option<u64> {
    requested.max(moved)
}
