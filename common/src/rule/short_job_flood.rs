//! `short-job-flood`.

use std::time::Duration;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::option::options;
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict, Why};

options! {
    /// More short jobs than the scheduler should have to bear.
    ShortJobFlood {
        /// How far back jobs are looked at, by their end.
        time: Duration = Duration::from_secs(24 * 3600);
        /// A job that ran for less than this is short.
        run_time: Duration = Duration::from_secs(60);
        /// Short jobs from which on the user is told.
        jobs: u32 = 500;
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ShortJobFlood::default())
}

impl Rule for ShortJobFlood {
    fn id(&self) -> RuleId {
        RuleId("short-job-flood")
    }

    fn doc(&self) -> &'static str {
        "Hundreds of jobs of one user in a day that ran for less than a minute.\n\
         Starting and ending a job costs the scheduler and the nodes more than such a job does; \
         everybody's jobs wait for it.\n\
         Do many pieces of work in one job, one after the other or side by side with srun."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let judge = |(user, jobs)| (Subject::user(user), self.judge(portfolio, jobs));
        portfolio.users().map(judge).collect()
    }
}

impl ShortJobFlood {
    fn judge(&self, portfolio: &Portfolio<'_>, jobs: &[&Job]) -> Verdict {
        let (from, now) = (portfolio.facts().now.before(self.time), portfolio.facts().now);
        let recent = |job: &&&Job| job.end.is_some_and(|end| end >= from && end <= now);
        let recent: Vec<&Job> = jobs.iter().filter(recent).copied().collect();
        if recent.is_empty() {
            return Verdict::NotApplicable(Why::NoSuchJobs);
        }
        let is_short = |job: &&&Job| {
            job.elapsed.is_some_and(|time| Duration::from_secs(u64::from(time)) < self.run_time)
        };
        let short: Vec<&Job> = recent.iter().filter(is_short).copied().collect();
        if u32::try_from(short.len()).is_ok_and(|count| count < self.jobs) {
            return Verdict::Fine;
        }
        let figures = Figures::default()
            .with("jobs_short", short.len())
            .with("jobs", recent.len())
            .with("cpu_hours", short.iter().map(|job| job.cpu_hours()).sum::<f64>());
        let hit = |job: &&Job| {
            let time = job.elapsed.map(|time| Value::Time(Duration::from_secs(u64::from(time))));
            Hit::new(job, None, Figures::default().with_known("time_used", time))
        };
        let hits = short.iter().map(hit).collect();
        Verdict::Finding(Finding::new(Audience::User, figures, hits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{NOW, World, job, near};

    fn rule() -> ShortJobFlood {
        ShortJobFlood::default()
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let flood = |count, seconds, age: i64| {
            let draft = job("a").with(|job| {
                (job.seconds, job.end) = (seconds, crate::time::Timestamp::new(NOW.get() - age));
            });
            World::new((0..count).map(|_| draft.clone())).found(&rule()).len()
        };
        assert_eq!([499, 500, 501].map(|count| flood(count, 59, 0)), [0, 1, 1]);
        assert_eq!([59, 60, 61].map(|seconds| flood(500, seconds, 0)), [1, 0, 0]);
        assert_eq!([86_399, 86_400, 86_401].map(|age| flood(500, 1, age)), [1, 1, 0]);
    }

    #[test]
    fn long_jobs_beside_them_are_counted_but_are_no_hits() {
        let short = (0..500).map(|_| job("a").with(|job| job.seconds = 0));
        let finding = World::new(short.chain([job("a")])).finding(&rule(), "a");
        near(&finding, "jobs", 501.0);
        assert_eq!(finding.hits.len(), 500);
        assert_eq!(World::new([job("b")]).on(&rule(), "b"), Verdict::Fine);
    }
}
