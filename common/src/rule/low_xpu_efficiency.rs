//! `low-xpu-efficiency`.

use std::collections::HashMap;

use crate::intern::Name;

use super::efficiency::{Ranked, Resource, ranked};
use super::finding::{Audience, Figures, Finding, Hit};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Missing, Need, Rule, RuleId, Subject, Verdict, Why};

options! {
    /// The users with the most CPU- or GPU-hours, if they use few of them.
    LowXpuEfficiency {
        /// Share of the CPU time held below which the user is told; of jobs without GPUs.
        cpu_efficiency: Share = Share::per_cent(60);
        /// Mean utilisation of GPUs below which the user is told.
        gpu_efficiency: Share = Share::per_cent(15);
        /// How many users are looked at, those with the most hours of each.
        top_users: u32 = 15;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's hours that must have been measured.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(LowXpuEfficiency::default())
}

/// What is said of one resource of a user; findings come first when two are put together.
enum Word<'r, 'a> {
    Low(&'r Ranked<'a>),
    NoData(Missing),
    Fine,
    NotAmongTop,
}

impl Rule for LowXpuEfficiency {
    fn id(&self) -> RuleId {
        RuleId("low-xpu-efficiency")
    }

    fn doc(&self) -> &'static str {
        "The users who hold the most CPU-hours (in jobs without GPUs) or GPU-hours, if they use \
         less of them than they should: both in one list.\n\
         Few users hold most of a cluster; a word with them is worth the most.\n\
         See low-cpu-efficiency and low-gpu-efficiency."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime, Need::Gpus]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let cpu = ranked(portfolio, Resource::Cpu, |job| job.gpu_count() == 0, self.coverage);
        let gpu = ranked(portfolio, Resource::Gpu, |_| true, self.coverage);
        let mut words: HashMap<Name, Vec<(Resource, Word<'_, '_>)>> = HashMap::new();
        for (resource, users) in [(Resource::Cpu, &cpu), (Resource::Gpu, &gpu)] {
            for user in users {
                let word = self.word(user, resource);
                words.entry(user.user).or_default().push((resource, word));
            }
        }
        let judge = |(user, _)| {
            let words = words.remove(&user)?;
            Some((Subject::user(user), self.join(portfolio, words)))
        };
        portfolio.users().filter_map(judge).collect()
    }
}

impl LowXpuEfficiency {
    fn word<'r, 'a>(&self, user: &'r Ranked<'a>, resource: Resource) -> Word<'r, 'a> {
        let bound = match resource {
            Resource::Cpu => self.cpu_efficiency,
            Resource::Gpu => self.gpu_efficiency,
        };
        if user.rank > usize::try_from(self.top_users).unwrap_or(usize::MAX) {
            Word::NotAmongTop
        } else if let Some(missing) = user.coverage.lack(self.hours_coverage) {
            Word::NoData(missing)
        } else if user.efficiency().is_some_and(|used| used < bound.get()) {
            Word::Low(user)
        } else {
            Word::Fine
        }
    }

    fn join(&self, portfolio: &Portfolio<'_>, words: Vec<(Resource, Word<'_, '_>)>) -> Verdict {
        let mut found: Option<(Figures, Vec<Hit>)> = None;
        let (mut missing, mut fine) = (None, false);
        for (resource, word) in words {
            match word {
                Word::Low(user) => {
                    let (figures, mut hits) = found.take().unwrap_or_default();
                    hits.extend(user.hits(resource, self.coverage));
                    found = Some((user.figures(figures, portfolio, resource), hits));
                }
                Word::NoData(why) => missing = Some(why),
                Word::Fine => fine = true,
                Word::NotAmongTop => {}
            }
        }
        match (found, missing) {
            (Some((figures, hits)), _) => {
                Verdict::Finding(Finding::new(Audience::User, figures, hits))
            }
            (None, Some(missing)) => Verdict::NoData(missing),
            (None, None) if fine => Verdict::Fine,
            (None, None) => Verdict::NotApplicable(Why::NotAmongTop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job, near};
    use crate::rule::zero_util_gpu_hours::ZeroUtilGpuHours;

    fn rule() -> LowXpuEfficiency {
        LowXpuEfficiency::default()
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let cpu = |used| World::new([job("a").cpu_used(used)]).found(&rule()).len();
        assert_eq!([0.59, 0.6, 0.61].map(cpu), [1, 0, 0]);
        let gpu =
            |used| World::new([job("a").held("n1", 8, 1).gpu_used(&[used])]).found(&rule()).len();
        assert_eq!([14.9, 15.0, 15.1].map(gpu), [1, 0, 0]);
    }

    #[test]
    fn low_in_one_is_enough_and_only_that_one_is_told() {
        let cpu = job("a").hours(10.0).cpu_used(0.9);
        let gpu = job("a").hours(10.0).held("n1", 8, 1).cpu_used(0.01).gpu_used(&[5.0]);
        let finding = World::new([cpu, gpu]).finding(&rule(), "a");
        near(&finding, "gpu_efficiency", 0.05);
        assert_eq!(finding.figures.number("cpu_efficiency"), None);
        assert_eq!(finding.hits.len(), 1);
    }

    #[test]
    fn those_with_fewer_hours_than_the_top_are_left_alone() {
        let world = World::new([job("a").hours(2.0).cpu_used(0.1), job("b").cpu_used(0.1)]);
        let one = LowXpuEfficiency { top_users: 1, ..rule() };
        assert_eq!(world.found(&one), ["a"]);
        assert_eq!(world.on(&one, "b"), Verdict::NotApplicable(Why::NotAmongTop));
    }

    /// How many of the rules, each with another bound, find the user.
    fn badges(world: &World, rules: &[&dyn Rule]) -> usize {
        rules.iter().filter(|rule| !world.found(**rule).is_empty()).count()
    }

    /// TrailblazingTurtle's badges are two instances of the rule: who is found by both is in the
    /// red, who is found by one is warned.
    #[test]
    fn n16_less_than_nine_tenths_and_less_than_three_quarters_of_a_hundred_cores() {
        let below =
            |efficiency| LowXpuEfficiency { cpu_efficiency: Share::per_cent(efficiency), ..rule() };
        let rules = [below(75), below(90)];
        let found = |cores: f64| {
            let draft = job("a").held("n1", 100, 0);
            let world = World::new([draft.with(|job| job.cpu_seconds = Some(cores * 3600.0))]);
            badges(&world, &[&rules[0], &rules[1]])
        };
        assert_eq!([74.9, 75.0, 89.9, 90.0].map(found), [2, 1, 1, 0]);
    }

    /// GPUs that did nothing at all are also found by a rule of their own.
    #[test]
    fn n18_four_gpus_idle_nearly_idle_and_at_work() {
        let below =
            |efficiency| LowXpuEfficiency { gpu_efficiency: Share::per_cent(efficiency), ..rule() };
        let rules = [below(10), below(20)];
        let unused = ZeroUtilGpuHours { gpu_hours_admin: 0.1, ..ZeroUtilGpuHours::default() };
        let found = |per_cent: f64| {
            let world = World::new([job("a").held("n1", 8, 4).gpu_used(&[per_cent; 4])]);
            let idle = world.on(&unused, "a");
            let idle = idle.finding().and_then(|found| found.figures.number("gpu_hours_idle"));
            (idle, badges(&world, &[&rules[0], &rules[1]]))
        };
        // Four GPUs for an hour are four GPU-hours.
        let expected = [(Some(4.0), 2), (None, 2), (None, 1), (None, 0)];
        assert_eq!([0.0, 9.0, 19.0, 20.0].map(found), expected);
    }
}
