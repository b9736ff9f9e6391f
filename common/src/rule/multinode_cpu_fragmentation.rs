//! `multinode-cpu-fragmentation`.

use crate::slurm::state::JobState;
use crate::unit::Bytes;

use super::facts::Job;
use super::finding::{Audience, Figures, Hit};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, cpu_hours};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// CPU jobs that are spread over more nodes than they need.
    MultinodeCpuFragmentation {
        /// Nodes from which on a job counts.
        min_nodes: u32 = 2;
        /// Share of a node's cores; a job that holds less of each of its nodes counts.
        cores_fraction: Share = Share::per_cent(50);
        /// Share of a node's memory that is kept free when nodes are counted.
        safety_fraction: Share = Share::per_cent(20);
        /// If set, jobs with fewer cores per node count, whatever the size of nodes.
        cores_per_node_below: Option<f64> = None;
        /// Cores of a node; what Slurm says, if not set.
        cores_per_node: Option<u32> = None;
        /// Memory of a node in GiB; what Slurm says, if not set.
        gib_per_node: Option<f64> = None;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's CPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(MultinodeCpuFragmentation::default())
}

impl Rule for MultinodeCpuFragmentation {
    fn id(&self) -> RuleId {
        RuleId("multinode-cpu-fragmentation")
    }

    fn doc(&self) -> &'static str {
        "Jobs without GPUs on several nodes, with few cores on each, whose cores and memory would \
         fit on fewer. Jobs that ran out of memory or left a node unused do not count.\n\
         A job on fewer nodes starts earlier and has less to send over the network; jobs that need \
         whole nodes find some.\n\
         Ask for nodes and tasks per node (--nodes, --ntasks-per-node) instead of tasks alone."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Hardware, Need::ByNode]
    }

    fn scope(&self) -> Scope {
        Scope::ended(120)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let weigh = |job: &Job| {
            let several = job.node_count.is_some_and(|nodes| nodes >= self.min_nodes.max(2));
            cpu_hours(job, false).filter(|_| several && job.state != JobState::OutOfMemory)
        };
        by_user(
            portfolio,
            self.hours_coverage,
            weigh,
            |job| self.look(portfolio, job),
            |_, haul| Some((Audience::User, Figures::default().with("cpu_hours", haul.amount))),
        )
    }
}

impl MultinodeCpuFragmentation {
    fn look(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<Option<Found>, Missing> {
        let nodes = job.node_count.map(f64::from).ok_or(Missing::Held)?;
        let cores = job.cpus.map(f64::from).ok_or(Missing::Held)?;
        let size = match self.cores_per_node_below {
            Some(below) if cores / nodes >= below => return Ok(None),
            Some(_) => None,
            None => {
                let size = self.size(portfolio, job)?;
                if cores / nodes >= self.cores_fraction.get() * size.0 {
                    return Ok(None);
                }
                Some(size)
            }
        };
        let mut used = 0.0;
        for node in measure::nodes(job, self.coverage)? {
            if node.cpu_seconds.ok_or(Missing::Unmeasured)? <= 0.0 {
                return Ok(None);
            }
            used += node.peak_memory.ok_or(Missing::Unmeasured)?.gib();
        }
        let mut figures = Figures::default()
            .with("nodes", nodes)
            .with("cores", cores)
            .with("gib_used_per_node", used / nodes)
            .with("cores_per_node", cores / nodes)
            .with("hours", job.hours());
        if let Some((cores_per_node, gib)) = size {
            let room = (1.0 - self.safety_fraction.get()) * gib;
            let needed = (cores / cores_per_node).ceil().max((used / room).ceil());
            if used / nodes >= room || needed >= nodes {
                return Ok(None);
            }
            figures = figures.with("nodes_needed", needed);
        }
        Ok(Some(Found { amount: job.cpu_hours(), hit: Hit::new(job, None, figures) }))
    }

    /// Cores and GiB of each of the job's nodes.
    fn size(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<(f64, f64), Missing> {
        let node = portfolio.facts().node_of(job);
        let cores = self.cores_per_node.or(node.cpus).map(f64::from);
        let gib = self.gib_per_node.or(node.memory.map(Bytes::gib));
        let some = |amount: &f64| *amount > 0.0;
        cores.filter(some).zip(gib.filter(some)).ok_or(Missing::Hardware)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, job};

    fn rule() -> MultinodeCpuFragmentation {
        MultinodeCpuFragmentation::default()
    }

    /// On four nodes of 32 cores and 190 GiB each.
    fn draft(cores: u32, gib: f64) -> Draft {
        job("a").hours(10.0).held("n[1-4]", cores, 0).by_node(&[(100.0, gib); 4])
    }

    fn needed(rule: &MultinodeCpuFragmentation, draft: Draft) -> Option<f64> {
        let world = World::new([draft]);
        let verdict = world.on(rule, "a");
        verdict.finding().and_then(|finding| finding.hits[0].figures.number("nodes_needed"))
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let cores = |cores| needed(&rule(), draft(cores, 1.0));
        assert_eq!([32, 33, 63, 64, 65].map(cores), [Some(1.0), Some(2.0), Some(2.0), None, None]);
        // 0.8 of 190 GiB is 152: four nodes with 38 each fit on one, with 114 they need three.
        let gib = |gib| needed(&rule(), draft(8, gib));
        assert_eq!([38.0, 39.0, 113.9, 114.1].map(gib), [Some(1.0), Some(2.0), Some(3.0), None]);
        let minutes =
            |minutes: f64| World::new([draft(8, 1.0).hours(minutes / 60.0)]).found(&rule()).len();
        assert_eq!([119.9, 120.0, 120.1].map(minutes), [0, 1, 1]);
    }

    /// Its namesake in Job Defense Shield does nothing or crashes.
    #[test]
    fn the_least_number_of_nodes_is_heeded() {
        for (min_nodes, expected) in [(4, Some(1.0)), (5, None)] {
            let rule = MultinodeCpuFragmentation { min_nodes, ..rule() };
            assert_eq!(needed(&rule, draft(8, 1.0)), expected);
        }
    }

    #[test]
    fn a_number_of_cores_alone_will_do() {
        let rule = MultinodeCpuFragmentation { cores_per_node_below: Some(3.0), ..rule() };
        let found = |cores| {
            let draft = draft(cores, 180.0).with(|job| job.nodes = "x[1-4]");
            World::new([draft]).found(&rule).len()
        };
        assert_eq!([11, 12, 13].map(found), [1, 0, 0]);
    }

    #[test]
    fn jobs_that_do_not_count() {
        for (case, draft) in [
            ("gpu", draft(8, 1.0).with(|job| job.gpus = 1)),
            ("oom", draft(8, 1.0).state(JobState::OutOfMemory)),
            ("one node", job("a").hours(10.0)),
        ] {
            let verdict = World::new([draft]).on(&rule(), "a");
            assert_eq!(verdict, Verdict::NotApplicable(Why::NoSuchJobs), "{case}");
        }
        let unused = draft(8, 1.0).by_node(&[(0.0, 1.0), (9.0, 1.0), (9.0, 1.0), (9.0, 1.0)]);
        assert_eq!(World::new([unused]).on(&rule(), "a"), Verdict::Fine);
        let dark = World::new([draft(8, 1.0).with(|job| job.by_node = None)]);
        assert_eq!(dark.on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
        let unknown = World::new([draft(8, 1.0).with(|job| job.nodes = "x[1-4]")]);
        assert_eq!(unknown.on(&rule(), "a"), Verdict::NoData(Missing::Hardware));
    }
}
