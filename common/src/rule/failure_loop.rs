//! `failure-loop`.

use std::time::Duration;

use crate::slurm::state::JobState;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Part, Rule, RuleId, Subject, Verdict, Why};

options! {
    /// The same job, again and again, failing.
    FailureLoop {
        /// How far back jobs are looked at, by their end.
        time: Duration = Duration::from_secs(24 * 3600);
        /// Ended jobs of one name from which on it is a habit.
        jobs: u32 = 20;
        /// Share of them that failed, from which on the user is told.
        failed: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(FailureLoop::default())
}

impl Rule for FailureLoop {
    fn id(&self) -> RuleId {
        RuleId("failure-loop")
    }

    fn doc(&self) -> &'static str {
        "Many jobs of one user and name that ended in a day, most of which failed, ran out of \
         memory or ran out of time.\n\
         What does not work the twentieth time needs a change, not another job; and each of them \
         kept nodes busy.\n\
         Stop the loop, make one job work, then go on."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let names = &portfolio.facts().names;
        let mut verdicts = Vec::new();
        for (user, jobs) in portfolio.users() {
            let mut jobs: Vec<&Job> =
                jobs.iter().copied().filter(|job| self.counts(portfolio, job)).collect();
            jobs.sort_by_key(|job| (names.text(job.name), job.key));
            let before = verdicts.len();
            for same in jobs.chunk_by(|a, b| a.name == b.name) {
                let few = u32::try_from(same.len()).is_ok_and(|count| count < self.jobs);
                let Some(first) = same.first().filter(|_| !few) else { continue };
                let subject = Subject::User { user, part: Part::JobName(first.name) };
                verdicts.push((subject, self.judge(same)));
            }
            if verdicts.len() == before {
                verdicts.push((Subject::user(user), Verdict::NotApplicable(Why::TooFewJobs)));
            }
        }
        verdicts
    }
}

impl FailureLoop {
    fn counts(&self, portfolio: &Portfolio<'_>, job: &Job) -> bool {
        let (from, now) = (portfolio.facts().now.before(self.time), portfolio.facts().now);
        job.end.is_some_and(|end| end >= from && end <= now)
    }

    fn judge(&self, same: &[&Job]) -> Verdict {
        let count = |state| same.iter().filter(|job| job.state == state).count();
        let [failed, memory, time] =
            [JobState::Failed, JobState::OutOfMemory, JobState::Timeout].map(count);
        let bad = failed + memory + time;
        let share = bad as f64 / same.len() as f64;
        if share < self.failed.get() {
            return Verdict::Fine;
        }
        let figures = Figures::default()
            .with("jobs", same.len())
            .with("jobs_failed", failed)
            .with("jobs_out_of_memory", memory)
            .with("jobs_timed_out", time)
            .with("share_failed", Value::Share(share))
            .with("cpu_hours", same.iter().map(|job| job.cpu_hours()).sum::<f64>());
        let is_bad = |job: &&&Job| {
            matches!(job.state, JobState::Failed | JobState::OutOfMemory | JobState::Timeout)
        };
        let hit =
            |job: &&Job| Hit::new(job, Some(1.0), Figures::default().with("hours", job.hours()));
        let hits = same.iter().filter(is_bad).map(hit).collect();
        Verdict::Finding(Finding::new(Audience::User, figures, hits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{Draft, NOW, World, job, near};

    fn rule() -> FailureLoop {
        FailureLoop::default()
    }

    fn drafts(bad: usize, good: usize) -> impl Iterator<Item = Draft> {
        let states = [JobState::Failed, JobState::OutOfMemory, JobState::Timeout];
        let bad = (0..bad).map(move |n| job("a").state(states[n % 3].clone()));
        bad.chain((0..good).map(|_| job("a")))
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found = |bad, good| World::new(drafts(bad, good)).found(&rule()).len();
        assert_eq!([found(19, 0), found(20, 0), found(21, 0)], [0, 1, 1], "twenty jobs");
        assert_eq!([found(79, 21), found(80, 20), found(81, 19)], [0, 1, 1], "of a hundred");
        let age = |seconds: i64| {
            let old = drafts(20, 0).map(|draft| {
                draft.with(|job| job.end = crate::time::Timestamp::new(NOW.get() - seconds))
            });
            World::new(old).found(&rule()).len()
        };
        assert_eq!([86_399, 86_400, 86_401].map(age), [1, 1, 0]);
    }

    #[test]
    fn jobs_that_fail_at_once_count_and_other_names_do_not() {
        let instant = drafts(20, 0).map(|draft| draft.with(|job| job.seconds = 0));
        let other = (0..20).map(|_| job("a").with(|job| job.name = "other"));
        let finding = World::new(instant.chain(other))
            .check(&rule())
            .into_iter()
            .find_map(|(_, verdict)| verdict.finding().cloned());
        let finding = finding.unwrap();
        near(&finding, "jobs", 20.0);
        near(&finding, "jobs_failed", 7.0);
        near(&finding, "share_failed", 1.0);
        assert_eq!(finding.hits.len(), 20);
    }

    #[test]
    fn cancelled_jobs_are_no_failures_and_few_jobs_are_no_habit() {
        let cancelled = (0..30).map(|_| job("a").state(JobState::Cancelled { by: None }));
        assert_eq!(World::new(cancelled).on(&rule(), "a"), Verdict::Fine);
        let few = World::new(drafts(3, 0));
        assert_eq!(few.on(&rule(), "a"), Verdict::NotApplicable(Why::TooFewJobs));
    }
}
