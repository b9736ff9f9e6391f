//! `low-memory`.

use super::advice::{Advice, by_job};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job that uses little of its memory.
    LowMemory {
        /// Share of the memory asked for below which the job is told of.
        efficiency: Share = Share::per_cent(50);
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(LowMemory::default())
}

impl Rule for LowMemory {
    fn id(&self) -> RuleId {
        RuleId("low-memory")
    }

    fn doc(&self) -> &'static str {
        "The most memory that a job used of what it asked for, over all its nodes.\n\
         Memory that is held and not used keeps other jobs from the node, and makes this one wait \
         longer.\n\
         Ask for the most that was used, and a fifth more."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Memory]
    }

    fn scope(&self) -> Scope {
        Scope::started(5)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_job(portfolio, self.gpu_jobs, |job| self.look(job))
    }
}

impl LowMemory {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let (used, held) = measure::memory(job, self.coverage)?;
        let share = used.get() as f64 / held.get() as f64;
        if share >= self.efficiency.get() {
            return Ok(None);
        }
        let figures = Figures::default()
            .with("memory_used", Value::Bytes(used))
            .with("memory", Value::Bytes(held))
            .with("share_used", Value::Share(share));
        Ok(Some(Advice { wasted: Some(1.0 - share), figures }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job};

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found =
            |used| World::new([job("a").memory(used, 100.0)]).found(&LowMemory::default()).len();
        assert_eq!([49.9, 50.0, 50.1].map(found), [1, 0, 0]);
    }

    /// petricore compares a percentage with 0.95, and warns below 0.95 %.
    #[test]
    fn half_a_per_cent_and_forty_are_both_little() {
        for used in [0.5, 40.0] {
            let world = World::new([job("a").memory(used, 100.0)]);
            assert_eq!(world.found(&LowMemory::default()), ["a"]);
        }
        let nodes = job("a").held("n[1-2]", 2, 0).by_node(&[(1.0, 30.0), (1.0, 30.0)]);
        let world = World::new([nodes.with(|job| job.gib = 100.0)]);
        assert_eq!(world.on(&LowMemory::default(), "a"), Verdict::Fine, "60 of 100 on two nodes");
    }

    #[test]
    fn n14_a_tenth_of_64_gib_is_the_line() {
        let tenth = LowMemory { efficiency: Share::per_cent(10), ..LowMemory::default() };
        let verdict = |used| World::new([job("a").memory(used, 64.0)]).on(&tenth, "a");
        let low = verdict(6.39);
        let share = low.finding().and_then(|finding| finding.figures.number("share_used")).unwrap();
        // Memory is counted in whole bytes.
        assert!((share - 6.39 / 64.0).abs() < 1e-9, "{share}");
        assert_eq!(verdict(6.41), Verdict::Fine);
    }
}
