//! `excessive-time-cpu`.

use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::time_limits::{Bounds, excessive};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Users whose cpu jobs ask for much more time than they need.
    ExcessiveTimeCpu {
        /// Unused CPU-hours above which the user is told.
        cpu_hours: f64 = 100_000.0;
        /// Share used of all time asked for, below which the user is told.
        overall_ratio: Share = Share::per_cent(20);
        /// Mean over jobs of the share used, below which the user is told.
        mean_ratio: Share = Share::ALL;
        /// Median over jobs of the share used, below which the user is told.
        median_ratio: Share = Share::ALL;
        /// How many users are looked at, those with the most unused hours.
        top_users: u32 = 10;
        /// Share of a user's CPU-hours whose time limit must be known.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ExcessiveTimeCpu::default())
}

impl Rule for ExcessiveTimeCpu {
    fn id(&self) -> RuleId {
        RuleId("excessive-time-cpu")
    }

    fn doc(&self) -> &'static str {
        "Time that completed jobs asked for and did not need, times their CPUs. A job without a \
         limit of its own has that of its partition; one that may run for ever does not count. Jobs with GPUs do not count.\n\
         A job that asks for a shorter time starts earlier, because it fits into gaps; and the \
         scheduler can plan for others.\n\
         Ask for the longest time that a job of the kind has taken, and a fifth more."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::TimeLimits]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let bounds = Bounds {
            hours: self.cpu_hours,
            overall: self.overall_ratio,
            mean: self.mean_ratio,
            median: self.median_ratio,
            top_users: self.top_users,
            hours_coverage: self.hours_coverage,
        };
        excessive(portfolio, |job| job.cpus.filter(|_| job.gpu_count() == 0), &bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::rule::Missing;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, job, near, share};
    use crate::slurm::duration::TimeLimit;
    use crate::slurm::state::JobState;

    fn rule() -> ExcessiveTimeCpu {
        ExcessiveTimeCpu { cpu_hours: 100.0, ..ExcessiveTimeCpu::default() }
    }

    fn draft(hours: f64) -> Draft {
        job("a").hours(hours).held("n1", 32, 0).limit_minutes(48 * 60)
    }

    #[test]
    fn x13_thirty_two_cores_for_two_days() {
        let timeout = draft(48.0).state(JobState::Timeout);
        let finding = World::new([draft(1.6), draft(1.5), timeout]).finding(&rule(), "a");
        near(&finding, "hours_unused", 2972.8);
        near(&finding, "hours_used", 99.2);
        near(&finding, "overall_ratio", 99.2 / 3072.0);
        near(&finding, "mean_ratio", 3.1 / 96.0);
        near(&finding, "jobs", 2.0);
    }

    /// Job Defense Shield writes the seconds that a job ran into its limit in minutes.
    #[test]
    fn v8_and_v9_a_job_without_a_limit_asked_for_no_time() {
        let own = |limit| draft(1.0).with(|job| job.limit = limit);
        let world = World::new([own(Some(TimeLimit::Own(Limit::Unlimited)))]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NotApplicable(Why::NoSuchJobs));
        // The limit of the partition is 48 hours.
        let world = World::new([own(Some(TimeLimit::OfPartition))]);
        near(&world.finding(&rule(), "a"), "hours_unused", 32.0 * 47.0);
        let of_other = own(Some(TimeLimit::OfPartition)).with(|job| job.partition = "other");
        assert_eq!(World::new([of_other]).on(&rule(), "a"), Verdict::NoData(Missing::TimeLimit));
        assert_eq!(World::new([own(None)]).on(&rule(), "a"), Verdict::NoData(Missing::TimeLimit));
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let unused = |minutes| {
            let draft = job("a").hours(1.0).limit_minutes(minutes);
            World::new([draft]).found(&rule()).len()
        };
        assert_eq!([101 * 60 - 1, 101 * 60, 101 * 60 + 1].map(unused), [0, 0, 1]);
        let all = ExcessiveTimeCpu { overall_ratio: Share::ALL, ..rule() };
        for rule in [
            rule(),
            ExcessiveTimeCpu { mean_ratio: share(0.2), ..all.clone() },
            ExcessiveTimeCpu { median_ratio: share(0.2), ..all },
        ] {
            let used = |hours| {
                let draft = job("a").hours(hours).held("n1", 32, 0).limit_minutes(100 * 60);
                World::new([draft]).found(&rule).len()
            };
            assert_eq!([19.9, 20.0, 20.1].map(used), [1, 0, 0]);
        }
    }

    #[test]
    fn an_overrun_is_all_of_the_time_and_no_negative_waste() {
        let over = job("a").hours(49.0).held("n1", 32, 0).limit_minutes(48 * 60);
        let finding =
            World::new([over, draft(1.0), draft(1.0), draft(1.0), draft(1.0), draft(1.0)])
                .finding(&ExcessiveTimeCpu { overall_ratio: share(0.5), ..rule() }, "a");
        near(&finding, "hours_unused", 32.0 * 47.0 * 5.0);
    }

    #[test]
    fn the_rank_is_by_used_hours_and_the_top_by_unused_ones() {
        let b = draft(9.0).with(|job| job.user = "b");
        let world = World::new([draft(1.0), b]);
        near(&world.finding(&rule(), "a"), "rank", 2.0);
        near(&world.finding(&rule(), "b"), "rank", 1.0);
        let one = ExcessiveTimeCpu { top_users: 1, ..rule() };
        assert_eq!(world.on(&one, "b"), Verdict::NotApplicable(Why::NotAmongTop));
    }
}
