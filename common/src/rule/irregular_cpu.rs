//! `irregular-cpu`.

use super::advice::{Advice, by_job};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job that needs its CPUs only at times.
    IrregularCpu {
        /// Mean of the busy CPUs, as a share of the most, below which the job is told of.
        ratio: Share = Share::per_cent(75);
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(IrregularCpu::default())
}

impl Rule for IrregularCpu {
    fn id(&self) -> RuleId {
        RuleId("irregular-cpu")
    }

    fn doc(&self) -> &'static str {
        "CPUs of a job that were busy on average, of those that were busy at most, over all nodes.\n\
         A job that needs many CPUs for a part of its time holds them for all of it.\n\
         Cut the job into pieces, each with the CPUs that it needs."
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

impl IrregularCpu {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let work = measure::work(job, self.coverage)?;
        let (mean, most) = work.busy_mean.zip(work.busy_most).ok_or(Missing::Unmeasured)?;
        if mean > most {
            return Err(Missing::MoreThanHeld);
        }
        let ratio = mean / most;
        // A job that used no CPU at all is not irregular.
        if most <= 0.0 || ratio >= self.ratio.get() {
            return Ok(None);
        }
        let figures = Figures::default()
            .with("cpus_busy", mean)
            .with("cpus_busy_at_most", most)
            .with("ratio", Value::Share(ratio));
        Ok(Some(Advice::new(figures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job};
    use crate::rule::usage::Work;

    fn verdict(mean: f64, most: f64) -> Verdict {
        let work = Work { busy_mean: Some(mean), busy_most: Some(most), ..Work::default() };
        World::new([job("a").worked(work)]).on(&IrregularCpu::default(), "a")
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found = |mean| verdict(mean, 4.0).finding().is_some();
        assert_eq!([2.99, 3.0, 3.01].map(found), [true, false, false]);
    }

    /// petricore divides by zero there.
    #[test]
    fn no_use_at_all_is_not_irregular_and_a_mean_above_the_most_is_nonsense() {
        assert_eq!(verdict(0.0, 0.0), Verdict::Fine);
        assert_eq!(verdict(2.0, 1.0), Verdict::NoData(Missing::MoreThanHeld));
    }

    /// A counter of 0, 30 and 90 seconds, half a minute apart: one core was busy, then two.
    #[test]
    fn n8_one_core_then_two_is_three_quarters_of_the_most_and_no_less() {
        let (mean, most) = (90.0 / 60.0, (90.0 - 30.0) / 30.0);
        assert_eq!(verdict(mean, most), Verdict::Fine, "1.5 of 2 is the bound of 0.75 itself");
        let eight_tenths = IrregularCpu { ratio: Share::per_cent(80), ..IrregularCpu::default() };
        let work = Work { busy_mean: Some(mean), busy_most: Some(most), ..Work::default() };
        let finding = World::new([job("a").worked(work)]).finding(&eight_tenths, "a");
        let figures = ["cpus_busy", "cpus_busy_at_most", "ratio"];
        assert_eq!(figures.map(|key| finding.figures.number(key)), [1.5, 2.0, 0.75].map(Some));
    }
}
