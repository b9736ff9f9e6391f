//! `zero-util-gpu-hours`.

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, gpu_hours};
use super::usage::Idle;
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Hours of GPUs that did nothing at all.
    ZeroUtilGpuHours {
        /// Idle GPU-hours from which on the user is told.
        gpu_hours_user: f64 = 100.0;
        /// Idle GPU-hours from which on administrators are told.
        gpu_hours_admin: f64 = 24.0;
        /// Whether a mean that was rounded to 0 before it came here counts as idle.
        rounded_zero: bool = true;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ZeroUtilGpuHours::default())
}

impl Rule for ZeroUtilGpuHours {
    fn id(&self) -> RuleId {
        RuleId("zero-util-gpu-hours")
    }

    fn doc(&self) -> &'static str {
        "GPU-hours of GPUs that were idle for the whole of their job, summed over a user's jobs. \
         Of a job with several GPUs only the idle ones count.\n\
         Nobody else could use them, and the user gained nothing.\n\
         Ask for as many GPUs as the program uses; make sure that it uses GPUs at all: a library \
         without GPU support falls back to the CPU without a word."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Gpus]
    }

    fn scope(&self) -> Scope {
        Scope::ended(30)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_user(
            portfolio,
            self.hours_coverage,
            gpu_hours,
            |job| self.look(job),
            |_, haul| {
                let audience = if haul.amount >= self.gpu_hours_user {
                    Audience::User
                } else if haul.amount >= self.gpu_hours_admin {
                    Audience::Administrators
                } else {
                    return None;
                };
                Some((audience, Figures::default().with("gpu_hours_idle", haul.amount)))
            },
        )
    }
}

impl ZeroUtilGpuHours {
    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let mut idle = 0u32;
        let mut nearly = 0u32;
        for gpu in measure::gpus(job, self.coverage)? {
            match gpu.utilisation.ok_or(Missing::Unmeasured)?.idle() {
                Idle::Yes => idle += 1,
                Idle::Nearly => nearly += 1,
                Idle::No => {}
            }
        }
        let unused = idle + if self.rounded_zero { nearly } else { 0 };
        if unused == 0 {
            return Ok(None);
        }
        // An exporter may know more GPUs than Slurm gave; more than was held is not wasted.
        let unused = unused.min(job.gpu_count());
        let amount = f64::from(unused) * job.hours();
        let figures = Figures::default()
            .with("gpus", job.gpu_count())
            .with("gpus_idle", unused)
            .with("gpus_idle_by_rounding", nearly.min(unused))
            .with("gpu_hours_idle", amount);
        let wasted = f64::from(unused) / f64::from(job.gpu_count().max(1));
        let figures = figures.with("share_idle", Value::Share(wasted));
        Ok(Some(Found { amount, hit: Hit::new(job, Some(wasted), figures) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{World, gpu, job, near};
    use crate::rule::usage::Utilisation;

    fn rule() -> ZeroUtilGpuHours {
        ZeroUtilGpuHours::default()
    }

    #[test]
    fn v23_idle_gpus_are_counted_and_a_missing_figure_is_no_idle_gpu() {
        for (nodes, used, idle) in
            [("n1", &[95.0][..], None), ("n[1-2]", &[95.0, 0.0, 0.0], Some(2.0))]
        {
            let draft = job("a").held(nodes, 8, u32::try_from(used.len()).unwrap()).gpu_used(used);
            let world = World::new([draft]);
            let found = rule().look(&world.facts.jobs()[0]).unwrap();
            assert_eq!(found.and_then(|f| f.hit.figures.number("gpus_idle")), idle);
        }
        let unknown = job("a").held("n1", 8, 1).gpu_used(&[0.0]);
        let unknown = unknown.with(|job| job.gpu.as_mut().unwrap()[0].utilisation = None);
        assert_eq!(World::new([unknown]).on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn idle_gpus_count_and_busy_ones_beside_them_do_not() {
        let draft = job("a").hours(50.0).held("n1", 8, 4).gpu_used(&[0.0, 0.0, 90.0, 0.1]);
        let finding = World::new([draft.clone(), draft]).finding(&rule(), "a");
        near(&finding, "gpu_hours_idle", 200.0);
        assert_eq!((finding.audience, finding.hits.len()), (Audience::User, 2));
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let told = |hours| {
            let world = World::new([job("a").hours(hours).held("n1", 8, 1).gpu_used(&[0.0])]);
            world.on(&rule(), "a").finding().map(|finding| finding.audience)
        };
        assert_eq!(
            [23.9, 24.0, 24.1].map(told),
            [None, Some(Audience::Administrators), Some(Audience::Administrators)]
        );
        assert_eq!(
            [99.9, 100.0, 100.1].map(told),
            [Some(Audience::Administrators), Some(Audience::User), Some(Audience::User)]
        );
        let run_time = |minutes: f64| {
            let rule = ZeroUtilGpuHours { gpu_hours_admin: 0.1, ..rule() };
            let draft = job("a").hours(minutes / 60.0).held("n1", 8, 1).gpu_used(&[0.0]);
            World::new([draft]).found(&rule).len()
        };
        assert_eq!([29.9, 30.0, 30.1].map(run_time), [0, 1, 1]);
    }

    #[test]
    fn x17_a_gpu_that_worked_for_a_moment_is_not_idle() {
        let world = World::new([job("a").hours(100.0).held("n1", 8, 1).gpu_used(&[0.046])]);
        assert_eq!(world.on(&rule(), "a"), Verdict::Fine);
        // A summary that was rounded says no more than "next to nothing"; the figures tell.
        let rounded = gpu(Utilisation::rounded(Share::NONE));
        let draft =
            job("a").hours(100.0).held("n1", 8, 1).with(|job| job.gpu = Some(vec![rounded]));
        let world = World::new([draft]);
        let finding = world.finding(&rule(), "a");
        assert_eq!(finding.hits[0].figures.number("gpus_idle_by_rounding"), Some(1.0));
        let strict = ZeroUtilGpuHours { rounded_zero: false, ..rule() };
        assert_eq!(world.on(&strict, "a"), Verdict::Fine);
    }

    #[test]
    fn users_without_gpus_or_without_figures() {
        let world = World::new([job("cpu"), job("dark").hours(99.0).held("n1", 8, 4)]);
        assert_eq!(world.on(&rule(), "cpu"), Verdict::NotApplicable(Why::NoSuchJobs));
        assert_eq!(world.on(&rule(), "dark"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn unmeasured_jobs_take_nothing_from_what_was_seen() {
        let dark = job("a").hours(900.0).held("n1", 8, 1);
        let idle = job("a").hours(100.0).held("n1", 8, 1).gpu_used(&[0.0]);
        let finding = World::new([dark, idle]).finding(&rule(), "a");
        near(&finding, "gpu_hours_idle", 100.0);
        near(&finding, "coverage", 0.1);
    }
}
