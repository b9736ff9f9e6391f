//! Time that users ask for and do not need: what `excessive-time-cpu` and `excessive-time-gpu`
//! share.

use std::collections::HashMap;
use std::time::Duration;

use crate::efficiency::hours;
use crate::intern::Name;
use crate::limit::Limit;
use crate::slurm::state::JobState;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{Coverage, Missing, Used};
use super::option::Share;
use super::portfolio::Portfolio;
use super::spread::{mean, median};
use super::{Subject, Verdict, Why};

/// Where it begins to matter.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) hours: f64,
    pub(super) overall: Share,
    pub(super) mean: Share,
    pub(super) median: Share,
    pub(super) top_users: u32,
    pub(super) hours_coverage: Share,
}

/// One user's jobs.
struct OfUser<'a> {
    user: Name,
    jobs: Vec<&'a Job>,
    coverage: Coverage,
    time: Used,
    shares: Vec<f64>,
}

/// How long a job ran, of how long it might have; not more than all of it.
fn of_limit(portfolio: &Portfolio<'_>, job: &Job) -> Result<(Duration, Duration), Missing> {
    let elapsed = job.elapsed.ok_or(Missing::Held)?;
    match portfolio.facts().time_limit_of(job) {
        // Slurm may let a job overrun its limit a little.
        Some(Limit::At(limit)) if limit > Duration::ZERO => {
            Ok((Duration::from_secs(u64::from(elapsed)).min(limit), limit))
        }
        _ => Err(Missing::TimeLimit),
    }
}

/// Judges those who left the most unused. `units` says how many CPUs or GPUs of a job count.
pub(super) fn excessive(
    portfolio: &Portfolio<'_>,
    units: impl Fn(&Job) -> Option<u32>,
    bounds: &Bounds,
) -> Vec<(Subject, Verdict)> {
    // A job without a limit asked for no particular time.
    let counts = |job: &Job| {
        job.state == JobState::Completed
            && job.elapsed.is_some_and(|elapsed| elapsed > 0)
            && units(job).is_some_and(|units| units > 0)
            && portfolio.facts().time_limit_of(job) != Some(Limit::Unlimited)
    };
    let time = |job: &Job| {
        let (used, limit) = of_limit(portfolio, job)?;
        let units = f64::from(units(job).ok_or(Missing::Held)?);
        let [used, held] = [used, limit].map(|time| hours(units, time.as_secs_f64()));
        Ok(Used { used, held })
    };
    let mut users: Vec<OfUser<'_>> = Vec::new();
    for (user, jobs) in portfolio.users() {
        let jobs: Vec<&Job> = jobs.iter().copied().filter(|job| counts(job)).collect();
        let (mut coverage, mut sum) = (Coverage::default(), Used::default());
        let mut shares = Vec::with_capacity(jobs.len());
        for job in &jobs {
            let weight = units(job).map_or(0.0, f64::from) * job.hours();
            if let Some(of_job) = coverage.note(weight, time(job)) {
                sum.add(of_job);
                shares.extend(of_job.share());
            }
        }
        users.push(OfUser { user, jobs, coverage, time: sum, shares });
    }
    let ranks = ranks(&users);
    // Stable, so that those who leave the same unused stand by name.
    users.sort_by(|a, b| b.time.unused().total_cmp(&a.time.unused()));
    let judge = |(place, user): (u32, OfUser<'_>)| {
        let subject = Subject::user(user.user);
        if user.jobs.is_empty() {
            return (subject, Verdict::NotApplicable(Why::NoSuchJobs));
        }
        let rank = ranks.get(&user.user).copied();
        let hit = |job: &Job| {
            let used = time(job).ok()?;
            let (run, limit) = of_limit(portfolio, job).ok()?;
            let figures = Figures::default()
                .with("time_used", Value::Time(run))
                .with("time_limit", Value::Time(limit))
                .with_known("share_used", used.share().map(Value::Share))
                .with_known("cores", job.cpus)
                .with("gpus", job.gpu_count())
                .with("hours_unused", used.unused());
            // The job gave it back when it ended: nothing was held that was not used.
            Some((used.unused(), Hit::new(job, None, figures)))
        };
        (subject, bounds.judge(place, rank, user, hit))
    };
    (1..).zip(users).map(judge).collect()
}

/// The place of each user by the hours used, from 1.
fn ranks(users: &[OfUser<'_>]) -> HashMap<Name, usize> {
    let mut ranks: Vec<&OfUser<'_>> = users.iter().collect();
    ranks.sort_by(|a, b| b.time.used.total_cmp(&a.time.used));
    ranks.iter().map(|user| user.user).zip(1..).collect()
}

impl Bounds {
    fn judge(
        &self,
        place: u32,
        rank: Option<usize>,
        user: OfUser<'_>,
        hit: impl Fn(&Job) -> Option<(f64, Hit)>,
    ) -> Verdict {
        let OfUser { jobs, coverage, time, mut shares, .. } = user;
        if place > self.top_users {
            return Verdict::NotApplicable(Why::NotAmongTop);
        }
        if let Some(missing) = coverage.lack(self.hours_coverage) {
            return Verdict::NoData(missing);
        }
        let (overall, mean, median) = (time.share(), mean(&shares), median(&mut shares));
        let below = |ratio: Option<f64>, bound: Share| ratio.is_some_and(|r| r < bound.get());
        let much = time.unused() > self.hours
            && below(overall, self.overall)
            && below(mean, self.mean)
            && below(median, self.median);
        if !much {
            return Verdict::Fine;
        }
        let figures = Figures::default()
            .with("hours_unused", time.unused())
            .with("hours_used", time.used)
            .with_known("overall_ratio", overall.map(Value::Share))
            .with_known("mean_ratio", mean.map(Value::Share))
            .with_known("median_ratio", median.map(Value::Share))
            .with_known("rank", rank)
            .with("jobs", jobs.len())
            .with_known("coverage", coverage.share().map(Value::Share));
        let mut hits: Vec<(f64, Hit)> = jobs.iter().filter_map(|job| hit(job)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let hits = hits.into_iter().map(|(_, hit)| hit).collect();
        Verdict::Finding(Finding::new(Audience::User, figures, hits))
    }
}
