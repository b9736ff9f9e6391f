//! The course that most rules take: look at each job, then judge the user by what was found.

use crate::intern::Name;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{Coverage, Missing};
use super::option::Share;
use super::portfolio::Portfolio;
use super::{Subject, Verdict, Why};

/// A hit, and how much it counts for.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) amount: f64,
    pub(super) hit: Hit,
}

/// What was found of one user.
#[derive(Debug)]
pub(super) struct Haul {
    /// What the hits count for together.
    pub(super) amount: f64,
    /// By id.
    pub(super) hits: Vec<Found>,
    pub(super) coverage: Coverage,
}

impl Haul {
    /// A finding with all hits. How much of the user's hours is known goes into it.
    pub(super) fn finding(self, audience: Audience, figures: Figures) -> Finding {
        let known = self.coverage.share().map(Value::Share);
        let figures = figures.with("jobs", self.hits.len()).with_known("coverage", known);
        Finding::new(audience, figures, self.hits.into_iter().map(|found| found.hit).collect())
    }

    /// What is said where nothing was found that is worth a word.
    pub(super) fn without_finding(&self, hours_coverage: Share) -> Verdict {
        match self.coverage.lack(hours_coverage) {
            _ if self.coverage.jobs == 0 => Verdict::NotApplicable(Why::NoSuchJobs),
            Some(missing) => Verdict::NoData(missing),
            None => Verdict::Fine,
        }
    }
}

/// Looks at some jobs. `weigh` says how many hours a job counts for if the rule is about it;
/// `look` what was found.
pub(super) fn search<'a>(
    jobs: impl IntoIterator<Item = &'a &'a Job>,
    weigh: impl Fn(&Job) -> Option<f64>,
    look: impl Fn(&Job) -> Result<Option<Found>, Missing>,
) -> Haul {
    let mut haul = Haul { amount: 0.0, hits: Vec::new(), coverage: Coverage::default() };
    for job in jobs {
        let Some(hours) = weigh(job) else { continue };
        if let Some(found) = haul.coverage.note(hours, look(job)).flatten() {
            haul.amount += found.amount;
            haul.hits.push(found);
        }
    }
    haul
}

/// Judges every user by what is found in the jobs. `conclude` says whether it is worth a word.
pub(super) fn by_user(
    portfolio: &Portfolio<'_>,
    hours_coverage: Share,
    weigh: impl Fn(&Job) -> Option<f64>,
    look: impl Fn(&Job) -> Result<Option<Found>, Missing>,
    conclude: impl Fn(Name, &Haul) -> Option<(Audience, Figures)>,
) -> Vec<(Subject, Verdict)> {
    let judge = |user, jobs: &[&Job]| {
        let haul = search(jobs.iter(), &weigh, &look);
        if haul.hits.is_empty() {
            return haul.without_finding(hours_coverage);
        }
        match conclude(user, &haul) {
            Some((audience, figures)) => Verdict::Finding(haul.finding(audience, figures)),
            None => haul.without_finding(hours_coverage),
        }
    };
    portfolio.users().map(|(user, jobs)| (Subject::user(user), judge(user, jobs))).collect()
}

/// Hours of a job's GPUs, if it holds any.
pub(super) fn gpu_hours(job: &Job) -> Option<f64> {
    (job.gpu_count() > 0 && job.elapsed? > 0).then(|| job.gpu_hours())
}

/// Hours of a job's CPUs, if it is one without GPUs or those count too.
pub(super) fn cpu_hours(job: &Job, gpu_jobs: bool) -> Option<f64> {
    (job.elapsed? > 0 && (gpu_jobs || job.gpu_count() == 0)).then(|| job.cpu_hours())
}

/// Keeps the findings with the largest figure of that key; the worst stands first.
pub(super) fn keep_top(
    mut verdicts: Vec<(Subject, Verdict)>,
    key: &str,
    top: u32,
) -> Vec<(Subject, Verdict)> {
    let figure = |verdict: &Verdict| {
        verdict.finding().and_then(|finding| finding.figures.number(key)).unwrap_or(f64::MIN)
    };
    verdicts.sort_by(|(_, a), (_, b)| figure(b).total_cmp(&figure(a)));
    let top = usize::try_from(top).unwrap_or(usize::MAX);
    for (_, verdict) in verdicts.iter_mut().skip(top) {
        if verdict.finding().is_some() {
            *verdict = Verdict::NotApplicable(Why::NotAmongTop);
        }
    }
    verdicts
}
