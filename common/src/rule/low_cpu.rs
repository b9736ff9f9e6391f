//! `low-cpu`.

use super::advice::{Advice, by_job};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job that uses little of its CPUs.
    LowCpu {
        /// Share of the CPU time held below which the job is told of.
        efficiency: Share = Share::per_cent(80);
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(LowCpu::default())
}

impl Rule for LowCpu {
    fn id(&self) -> RuleId {
        RuleId("low-cpu")
    }

    fn doc(&self) -> &'static str {
        "CPU time used of the CPU time held, over all nodes of a job.\n\
         CPUs that are held and not used do nobody any good.\n\
         Ask for as many CPUs as the program keeps busy."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime]
    }

    fn scope(&self) -> Scope {
        Scope::started(5)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_job(portfolio, self.gpu_jobs, |job| self.look(job))
    }
}

impl LowCpu {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let used = measure::cpu(job, self.coverage)?;
        let share = used.share().ok_or(Missing::Held)?;
        if share >= self.efficiency.get() {
            return Ok(None);
        }
        let figures = Figures::default()
            .with("cpu_efficiency", Value::Share(share))
            .with("cpu_hours_unused", used.unused());
        Ok(Some(Advice { wasted: Some(1.0 - share), figures }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{World, job};

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found = |used| World::new([job("a").cpu_used(used)]).found(&LowCpu::default()).len();
        assert_eq!([0.79, 0.8, 0.81].map(found), [1, 0, 0]);
    }

    #[test]
    fn all_nodes_count_and_gpu_jobs_do_not() {
        // One node at work and one idle is half of what is held, not all of it.
        let half = job("a").held("n[1-2]", 2, 0).by_node(&[(3600.0, 0.1), (0.0, 0.1)]);
        assert_eq!(World::new([half]).found(&LowCpu::default()), ["a"]);
        let gpu = World::new([job("a").held("n1", 8, 1).cpu_used(0.1)]);
        assert_eq!(gpu.on(&LowCpu::default(), "a"), Verdict::NotApplicable(Why::Exempt));
        let dark = World::new([job("a")]).on(&LowCpu::default(), "a");
        assert_eq!(dark, Verdict::NoData(Missing::Unmeasured));
    }

    fn below(efficiency: f64) -> LowCpu {
        LowCpu { efficiency: crate::rule::sample::share(efficiency), ..LowCpu::default() }
    }

    /// A job that kept so many of its cores busy.
    fn busy(cores: u32, busy: f64, seconds: u32) -> World {
        let draft = job("a").held("n1", cores, 0);
        World::new([draft.with(|job| {
            (job.seconds, job.cpu_seconds) = (seconds, Some(busy * f64::from(seconds)));
        })])
    }

    #[test]
    fn n13_four_of_eight_cores_are_half_and_a_little_less_is_less() {
        assert_eq!(busy(8, 4.0, 3600).on(&below(0.5), "a"), Verdict::Fine);
        let finding = busy(8, 3.99, 3600).finding(&below(0.5), "a");
        crate::rule::sample::near(&finding, "cpu_efficiency", 3.99 / 8.0);
        crate::rule::sample::near(&finding, "cpu_hours_unused", 8.0 - 3.99);
    }

    /// ClusterCockpit compares the load with 0.85 of 72 cores, 61.2, for jobs of more than 600
    /// seconds that have their nodes for themselves. The time of others' processes is not in ours,
    /// so jobs that share a node are judged too.
    #[test]
    fn n21_low_load_of_72_cores_and_jobs_too_short_to_tell() {
        let scope =
            Scope { min_run_time: std::time::Duration::from_secs(600), ..below(0.85).scope() };
        let told = |load, seconds| {
            let verdicts = busy(72, load, seconds).check_in(&below(0.85), &scope);
            verdicts.first().map(|(_, verdict)| verdict.finding().is_some())
        };
        assert_eq!([61.1, 61.3].map(|load| told(load, 700)), [Some(true), Some(false)]);
        assert_eq!([61.1, 61.3].map(|load| told(load, 500)), [None, None], "never looked at");
        // A least run time is one that is enough.
        assert_eq!(told(61.1, 600), Some(true));
    }
}
