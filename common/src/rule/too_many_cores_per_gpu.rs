//! `too-many-cores-per-gpu`.

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, gpu_hours};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// GPU jobs that hold more cores than their share of a node.
    TooManyCoresPerGpu {
        /// Cores per GPU above which a job counts.
        cores_per_gpu: f64 = 18.0;
        /// Cores per GPU to aim at; for texts.
        cores_per_gpu_target: f64 = 12.0;
        /// Share of the CPU time that was used, up to which a job counts.
        efficiency: Share = Share::ALL;
        /// GPU-hours of such jobs above which the user is told.
        gpu_hours: f64 = 0.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(TooManyCoresPerGpu::default())
}

impl Rule for TooManyCoresPerGpu {
    fn id(&self) -> RuleId {
        RuleId("too-many-cores-per-gpu")
    }

    fn doc(&self) -> &'static str {
        "GPU jobs that hold more cores per GPU than a node can give to each of its GPUs.\n\
         The other GPUs of the node stay idle, because no cores are left for their jobs.\n\
         Try with fewer cores; more than a few per GPU seldom make a job faster."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_user(
            portfolio,
            self.hours_coverage,
            gpu_hours,
            |job| self.look(job),
            |_, haul| {
                let figures = Figures::default().with("gpu_hours", haul.amount);
                (haul.amount > self.gpu_hours).then_some((Audience::User, figures))
            },
        )
    }
}

impl TooManyCoresPerGpu {
    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let gpus = f64::from(job.gpu_count());
        let cores = job.cpus.map(f64::from).ok_or(Missing::Held)?;
        if cores <= self.cores_per_gpu * gpus {
            return Ok(None);
        }
        let share = measure::cpu(job, self.coverage)?.share().ok_or(Missing::Held)?;
        if share > self.efficiency.get() {
            return Ok(None);
        }
        let figures = Figures::default()
            .with("hours", job.hours())
            .with("cpu_efficiency", Value::Share(share))
            .with_known("cores", job.cpus)
            .with("gpus", job.gpu_count())
            .with("cores_per_gpu", cores / gpus);
        Ok(Some(Found { amount: job.gpu_hours(), hit: Hit::new(job, None, figures) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job, share};

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let rule = TooManyCoresPerGpu::default();
        let cores =
            |cores| World::new([job("a").held("n1", cores, 2).cpu_used(0.1)]).found(&rule).len();
        assert_eq!([35, 36, 37].map(cores), [0, 0, 1]);
        let half = TooManyCoresPerGpu { efficiency: share(0.5), ..rule.clone() };
        let used =
            |used| World::new([job("a").held("n1", 32, 1).cpu_used(used)]).found(&half).len();
        assert_eq!([0.49, 0.5, 0.51].map(used), [1, 1, 0]);
        let hours = |gpu_hours| {
            let rule = TooManyCoresPerGpu { gpu_hours, ..rule.clone() };
            World::new([job("a").hours(10.0).held("n1", 32, 1).cpu_used(0.1)]).found(&rule).len()
        };
        assert_eq!([9.9, 10.0, 10.1].map(hours), [1, 0, 0]);
    }

    #[test]
    fn a_job_with_few_cores_is_fine_whoever_measured_it() {
        let rule = TooManyCoresPerGpu::default();
        assert_eq!(World::new([job("a").held("n1", 18, 1)]).on(&rule, "a"), Verdict::Fine);
        let world = World::new([job("a").held("n1", 19, 1)]);
        assert_eq!(world.on(&rule, "a"), Verdict::NoData(Missing::Unmeasured));
    }
}
