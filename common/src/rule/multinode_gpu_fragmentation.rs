//! `multinode-gpu-fragmentation`.

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, gpu_hours};
use super::usage::Idle;
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// GPU jobs that are spread over nodes which they do not fill.
    MultinodeGpuFragmentation {
        /// GPUs of a node; what Slurm says, if not set.
        gpus_per_node: Option<u32> = None;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(MultinodeGpuFragmentation::default())
}

impl Rule for MultinodeGpuFragmentation {
    fn id(&self) -> RuleId {
        RuleId("multinode-gpu-fragmentation")
    }

    fn doc(&self) -> &'static str {
        "GPU jobs on several nodes that do not hold all GPUs of each. Jobs with an idle GPU do not \
         count; zero-util-gpu-hours is about those.\n\
         GPUs of one node exchange data much faster than those of several, and jobs that need a \
         whole node find none.\n\
         Ask for all GPUs of a node before asking for another node."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Hardware, Need::Gpus]
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_user(
            portfolio,
            self.hours_coverage,
            |job| gpu_hours(job).filter(|_| job.node_count.is_some_and(|nodes| nodes > 1)),
            |job| self.look(portfolio, job),
            |_, haul| Some((Audience::User, Figures::default().with("gpu_hours", haul.amount))),
        )
    }
}

impl MultinodeGpuFragmentation {
    fn look(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<Option<Found>, Missing> {
        let nodes = job.node_count.ok_or(Missing::Held)?;
        let has = self.gpus_per_node.or(portfolio.facts().node_of(job).gpus);
        let has = has.filter(|gpus| *gpus > 0).ok_or(Missing::Hardware)?;
        let per_node = f64::from(job.gpu_count()) / f64::from(nodes);
        if per_node >= f64::from(has) {
            return Ok(None);
        }
        for gpu in measure::gpus(job, self.coverage)? {
            if gpu.utilisation.ok_or(Missing::Unmeasured)?.idle() != Idle::No {
                return Ok(None);
            }
        }
        let mean = measure::gpu_mean(job, self.coverage)?;
        let figures = Figures::default()
            .with("gpus", job.gpu_count())
            .with("nodes", nodes)
            .with("gpus_per_node", per_node)
            .with("nodes_needed", job.gpu_count().div_ceil(has))
            .with("hours", job.hours())
            .with("gpu_efficiency", Value::Share(mean));
        Ok(Some(Found { amount: job.gpu_hours(), hit: Hit::new(job, None, figures) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, job, near};

    fn draft(nodes: &'static str, gpus: u32, used: &[f64]) -> Draft {
        job("a").held(nodes, 8, gpus).gpu_used(used)
    }

    /// Job Defense Shield also tells of jobs with idle GPUs, against its manual: four GPUs on
    /// three nodes of which three are idle.
    #[test]
    fn x9_eight_gpus_per_node() {
        let rule = MultinodeGpuFragmentation {
            gpus_per_node: Some(8),
            ..MultinodeGpuFragmentation::default()
        };
        let finding = World::new([draft("n[1-2]", 8, &[98.0; 8])]).finding(&rule, "a");
        let hit = &finding.hits[0].figures;
        assert_eq!(
            (hit.number("gpus_per_node"), hit.number("nodes_needed")),
            (Some(4.0), Some(1.0))
        );
        assert!((hit.number("gpu_efficiency").unwrap() - 0.98).abs() < 1e-12);
        assert_eq!(World::new([draft("n[1-2]", 16, &[98.0; 16])]).on(&rule, "a"), Verdict::Fine);
        let idle = World::new([draft("n[1-3]", 4, &[0.0, 0.0, 0.0, 10.0])]);
        assert_eq!(idle.on(&rule, "a"), Verdict::Fine);
        let busy = World::new([draft("n[1-3]", 4, &[10.0; 4])]).finding(&rule, "a");
        assert_eq!(busy.hits[0].figures.number("gpus_per_node"), Some(4.0 / 3.0));
        let one = World::new([draft("n1", 2, &[98.0; 2])]);
        assert_eq!(one.on(&rule, "a"), Verdict::NotApplicable(Why::NoSuchJobs));
    }

    #[test]
    fn the_hardware_is_asked_where_nothing_is_set() {
        let rule = MultinodeGpuFragmentation::default();
        let found = |gpus: u32| {
            let used = vec![50.0; usize::try_from(gpus).unwrap()];
            World::new([draft("n[1-2]", gpus, &used)]).found(&rule).len()
        };
        assert_eq!([7, 8, 9].map(found), [1, 0, 0], "nodes of four GPUs");
        let unknown = World::new([draft("n1,x1", 2, &[50.0; 2])]);
        assert_eq!(unknown.on(&rule, "a"), Verdict::NoData(Missing::Hardware));
        let dark = World::new([job("a").held("n[1-2]", 8, 2)]);
        assert_eq!(dark.on(&rule, "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn all_jobs_of_the_user_are_in_it() {
        let drafts = [draft("n[1-2]", 2, &[50.0; 2]), draft("n[3-4]", 2, &[50.0; 2])];
        near(
            &World::new(drafts).finding(&MultinodeGpuFragmentation::default(), "a"),
            "gpu_hours",
            4.0,
        );
    }
}
