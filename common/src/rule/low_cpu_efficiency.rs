//! `low-cpu-efficiency`.

use super::efficiency::{Bounds, Resource, low};
use super::facts::Job;
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Users who hold many CPU-hours and use few of them.
    LowCpuEfficiency {
        /// Share of the CPU time held that was used, up to which the user is told.
        efficiency: Share = Share::per_cent(60);
        /// What a user should aim at.
        target: Share = Share::per_cent(90);
        /// CPU-hours that are missing to the target, from which on the user is told.
        cpu_hours_below_target: f64 = 0.0;
        /// CPU-hours from which on the user is told.
        cpu_hours: f64 = 50.0;
        /// Share of all CPU-hours of the scope from which on the user is told.
        proportion: Share = Share::per_cent(2);
        /// How many users are looked at, those with the most CPU-hours.
        top_users: u32 = 15;
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's CPU-hours that must have been measured.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(LowCpuEfficiency::default())
}

impl Rule for LowCpuEfficiency {
    fn id(&self) -> RuleId {
        RuleId("low-cpu-efficiency")
    }

    fn doc(&self) -> &'static str {
        "CPU time used of the CPU time held, over all jobs of a user, for those who hold the most. \
         A job weighs as much as it held.\n\
         CPUs that wait for one another, for files or for nothing are kept from others.\n\
         Find out how many CPUs make the program faster, and ask for no more; look for time lost \
         with files."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let bounds = Bounds {
            efficiency: self.efficiency,
            target: self.target,
            hours_below_target: self.cpu_hours_below_target,
            hours: self.cpu_hours,
            proportion: self.proportion,
            top_users: self.top_users,
            coverage: self.coverage,
            hours_coverage: self.hours_coverage,
        };
        let counts = |job: &Job| self.gpu_jobs || job.gpu_count() == 0;
        low(portfolio, Resource::Cpu, counts, &bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job, near, share};
    use crate::rule::{Missing, Why};

    fn rule() -> LowCpuEfficiency {
        LowCpuEfficiency::default()
    }

    #[test]
    fn a_job_weighs_as_much_as_it_held() {
        let small = job("a").hours(1.0).cpu_used(1.0);
        let large = job("a").hours(10.0).held("n1", 10, 0).cpu_used(0.5);
        let finding = World::new([small, large]).finding(&rule(), "a");
        near(&finding, "cpu_efficiency", 51.0 / 101.0);
        near(&finding, "cpu_hours", 101.0);
        near(&finding, "proportion", 1.0);
        assert_eq!(finding.hits.len(), 2);
        assert_eq!(finding.billing_hours(), Some(50.0), "what was held and not used");
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let at =
            |used: f64| World::new([job("a").hours(100.0).cpu_used(used)]).found(&rule()).len();
        assert_eq!([0.59, 0.6, 0.6001].map(at), [1, 1, 0], "rounding would have made 0.6001 0.6");
        let hours =
            |hours: f64| World::new([job("a").hours(hours).cpu_used(0.1)]).found(&rule()).len();
        assert_eq!([49.9, 50.0, 50.1].map(hours), [0, 1, 1]);
        let proportion = |hours: f64| {
            let all = job("all").hours(5000.0 - hours).cpu_used(1.0);
            World::new([job("a").hours(hours).cpu_used(0.1), all]).found(&rule()).len()
        };
        assert_eq!([99.9, 100.0, 100.1].map(proportion), [0, 1, 1], "2 % of 5,000 h");
        let below_target = |hours: f64| {
            let rule = LowCpuEfficiency { cpu_hours_below_target: hours, ..rule() };
            World::new([job("a").hours(100.0).cpu_used(0.5)]).found(&rule).len()
        };
        assert_eq!([39.9, 40.0, 40.1].map(below_target), [1, 1, 0], "50 of 100 h, and 90 aimed at");
    }

    #[test]
    fn only_the_top_are_told_and_excluded_users_count_in_the_total() {
        let world = World::new([
            job("a").hours(300.0).cpu_used(0.1),
            job("b").hours(200.0).cpu_used(0.1),
            job("c").hours(19_500.0).cpu_used(1.0),
        ]);
        let two = LowCpuEfficiency { top_users: 2, proportion: share(0.0), ..rule() };
        assert_eq!(world.found(&two), ["a"]);
        assert_eq!(world.on(&two, "b"), Verdict::NotApplicable(Why::NotAmongTop));
        let without = Scope { excluded_users: vec!["c".into()], ..two.scope() };
        let verdicts = world.check_in(&two, &without);
        assert_eq!(verdicts.iter().filter(|(_, v)| v.finding().is_some()).count(), 2);
        assert!(
            world.check_in(&rule(), &without).iter().all(|(_, v)| v.finding().is_none()),
            "c still holds 97.5 % of all"
        );
    }

    #[test]
    fn a_ratio_needs_enough_of_the_hours() {
        let (seen, dark) = (job("a").hours(49.0).cpu_used(0.1), job("a").hours(51.0));
        let missing = Missing::Coverage { found: share(0.49), needed: share(0.5) };
        assert_eq!(World::new([seen, dark]).on(&rule(), "a"), Verdict::NoData(missing));
        let (seen, dark) = (job("a").hours(50.0).cpu_used(0.1), job("a").hours(50.0));
        near(&World::new([seen, dark]).finding(&rule(), "a"), "coverage", 0.5);
    }

    #[test]
    fn v14_more_cpu_time_than_was_held_is_no_figure() {
        let draft = |used| {
            job("a").held("n1", 8, 0).with(|job| {
                (job.seconds, job.cpu_seconds) = (100, Some(used));
            })
        };
        let world = World::new([draft(4200.0)]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(Missing::MoreThanHeld));
        // The job may have run for nearly 101 seconds.
        let world = World::new([draft(804.0)]);
        assert_eq!(world.on(&rule(), "a"), Verdict::Fine);
        let world = World::new([job("a")]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
    }
}
