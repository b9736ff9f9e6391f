//! `unbalanced-cores`.

use super::advice::{Advice, by_job};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::spread::mean;
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job that works on some of its cores more than on others.
    UnbalancedCores {
        /// CPU time of a core, as a share of the mean, below which the job is told of.
        ratio: Share = Share::per_cent(90);
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(UnbalancedCores::default())
}

impl Rule for UnbalancedCores {
    fn id(&self) -> RuleId {
        RuleId("unbalanced-cores")
    }

    fn doc(&self) -> &'static str {
        "CPU time of the core that worked least, of the mean over all cores of a job. Known only where \
         nodes count the time of each core (cgroup v1).\n\
         Cores that wait for others are held for nothing.\n\
         Divide the work into more and smaller pieces, or ask for fewer cores."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Processes]
    }

    fn scope(&self) -> Scope {
        Scope::started(5)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_job(portfolio, self.gpu_jobs, |job| self.look(job))
    }
}

impl UnbalancedCores {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let work = measure::work(job, self.coverage)?;
        let cores = work.core_seconds.as_deref().ok_or(Missing::Unmeasured)?;
        let mean = mean(cores).ok_or(Missing::Unmeasured)?;
        let bound = self.ratio.get() * mean;
        let behind = cores.iter().filter(|seconds| **seconds < bound).count();
        // Cores that all did nothing are in balance.
        if mean <= 0.0 || behind == 0 {
            return Ok(None);
        }
        let least = cores.iter().copied().fold(f64::INFINITY, f64::min);
        let figures = Figures::default()
            .with("cores", cores.len())
            .with("cores_behind", behind)
            .with("least_of_mean", Value::Share(least / mean));
        Ok(Some(Advice::new(figures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job};
    use crate::rule::usage::Work;

    fn verdict(cores: Option<&[f64]>) -> Verdict {
        let work = Work { core_seconds: cores.map(Box::from), ..Work::default() };
        World::new([job("a").worked(work)]).on(&UnbalancedCores::default(), "a")
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        // The mean is 100 each time.
        let found = |least: f64| verdict(Some(&[least, 200.0 - least])).finding().is_some();
        assert_eq!([89.0, 90.0, 91.0].map(found), [true, false, false]);
        let finding = verdict(Some(&[50.0, 150.0]));
        assert_eq!(finding.finding().unwrap().figures.number("least_of_mean"), Some(0.5));
    }

    #[test]
    fn without_figures_of_each_core_nothing_is_said() {
        assert_eq!(verdict(None), Verdict::NoData(Missing::Unmeasured));
        assert_eq!(verdict(Some(&[])), Verdict::NoData(Missing::Unmeasured));
        assert_eq!(verdict(Some(&[0.0, 0.0])), Verdict::Fine);
    }
}
