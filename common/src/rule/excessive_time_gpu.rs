//! `excessive-time-gpu`.

use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::time_limits::{Bounds, excessive};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Users whose gpu jobs ask for much more time than they need.
    ExcessiveTimeGpu {
        /// Unused GPU-hours above which the user is told.
        gpu_hours: f64 = 1_000.0;
        /// Share used of all time asked for, below which the user is told.
        overall_ratio: Share = Share::per_cent(20);
        /// Mean over jobs of the share used, below which the user is told.
        mean_ratio: Share = Share::ALL;
        /// Median over jobs of the share used, below which the user is told.
        median_ratio: Share = Share::ALL;
        /// How many users are looked at, those with the most unused hours.
        top_users: u32 = 5;
        /// Share of a user's GPU-hours whose time limit must be known.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ExcessiveTimeGpu::default())
}

impl Rule for ExcessiveTimeGpu {
    fn id(&self) -> RuleId {
        RuleId("excessive-time-gpu")
    }

    fn doc(&self) -> &'static str {
        "Time that completed jobs asked for and did not need, times their GPUs. A job without a \
         limit of its own has that of its partition; one that may run for ever does not count. Jobs without GPUs do not count.\n\
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
            hours: self.gpu_hours,
            overall: self.overall_ratio,
            mean: self.mean_ratio,
            median: self.median_ratio,
            top_users: self.top_users,
            hours_coverage: self.hours_coverage,
        };
        excessive(portfolio, |job| job.gpus, &bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job, near};

    /// The same figures with ten GPUs as with ten cores.
    #[test]
    fn v29_gpu_hours_as_cpu_hours() {
        let draft =
            |user, cpus, gpus| job(user).hours(1.5).held("n1", cpus, gpus).limit_minutes(48 * 60);
        let gpu = World::new([draft("a", 1, 10)]);
        let cpu = World::new([draft("a", 10, 0)]);
        let rule = ExcessiveTimeGpu { gpu_hours: 400.0, ..ExcessiveTimeGpu::default() };
        let of_cpu = super::super::excessive_time_cpu::ExcessiveTimeCpu {
            cpu_hours: 400.0,
            ..super::super::excessive_time_cpu::ExcessiveTimeCpu::default()
        };
        let (gpu, cpu) = (gpu.finding(&rule, "a"), cpu.finding(&of_cpu, "a"));
        for key in ["hours_unused", "hours_used", "overall_ratio"] {
            near(&gpu, key, cpu.figures.number(key).unwrap());
        }
        near(&gpu, "hours_unused", 465.0);
    }

    #[test]
    fn the_default_bound_just_below_equal_and_just_above() {
        let found = |gpus, limit| {
            let draft = job("a").hours(10.0).held("n1", 8, gpus).limit_minutes(limit);
            World::new([draft]).found(&ExcessiveTimeGpu::default()).len()
        };
        // Ten GPUs for 100 hours more than needed are the 1,000 hours.
        assert_eq!([109 * 60, 110 * 60, 110 * 60 + 1].map(|limit| found(10, limit)), [0, 0, 1]);
    }
}
