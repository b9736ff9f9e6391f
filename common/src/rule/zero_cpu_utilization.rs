//! `zero-cpu-utilization`.

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, Haul, by_user, cpu_hours};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Jobs that leave whole nodes unused.
    ZeroCpuUtilization {
        /// CPU-hours on unused nodes from which on the user is told; if not set, one job is enough.
        cpu_hours: Option<f64> = None;
        /// A single job on a single node with fewer cores than this is told to administrators only.
        few_cores: u32 = 4;
        /// CPU time in an hour, in seconds, up to which a node is unused: what the shell and Slurm need.
        seconds_per_hour: f64 = 5.0;
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = true;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's CPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ZeroCpuUtilization::default())
}

impl Rule for ZeroCpuUtilization {
    fn id(&self) -> RuleId {
        RuleId("zero-cpu-utilization")
    }

    fn doc(&self) -> &'static str {
        "Jobs that hold nodes on which nothing runs.\n\
         Most often a program that knows nothing of other nodes was given several, or one that \
         hangs.\n\
         Ask for one node unless the program was made for more (MPI); start it with srun."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime, Need::ByNode]
    }

    fn scope(&self) -> Scope {
        Scope::ended(61)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_user(
            portfolio,
            self.hours_coverage,
            |job| cpu_hours(job, self.gpu_jobs),
            |job| self.look(job),
            |_, haul| {
                if self.cpu_hours.is_some_and(|bound| haul.amount < bound) {
                    return None;
                }
                let figures = Figures::default().with("cpu_hours_unused", haul.amount);
                Some((self.audience(haul), figures))
            },
        )
    }
}

impl ZeroCpuUtilization {
    fn audience(&self, haul: &Haul) -> Audience {
        let small = |key, bound: u32| {
            haul.hits.iter().all(|found| {
                found.hit.figures.number(key).is_some_and(|count| count < f64::from(bound))
            })
        };
        if haul.hits.len() == 1 && small("nodes", 2) && small("cores", self.few_cores) {
            Audience::Administrators
        } else {
            Audience::User
        }
    }

    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let nodes = job.node_count.filter(|nodes| *nodes > 0).ok_or(Missing::Held)?;
        let cores = job.cpus.ok_or(Missing::Held)?;
        let unused = self.unused(job, nodes)?;
        if unused == 0 {
            return Ok(None);
        }
        let share = f64::from(unused) / f64::from(nodes);
        let amount = job.cpu_hours() * share;
        let figures = Figures::default()
            .with("nodes", nodes)
            .with("nodes_unused", unused)
            .with("cores", cores)
            .with("hours", job.hours())
            .with("cpu_hours_unused", amount)
            .with("share_unused", Value::Share(share));
        Ok(Some(Found { amount, hit: Hit::new(job, Some(share), figures) }))
    }

    /// How many of its nodes it did not use.
    fn unused(&self, job: &Job, count: u32) -> Result<u32, Missing> {
        let most = self.seconds_per_hour * job.hours();
        if job.usage.nodes.is_some() {
            let nodes = measure::nodes(job, self.coverage)?;
            let mut unused = 0u32;
            for node in nodes {
                unused += u32::from(node.cpu_seconds.ok_or(Missing::Unmeasured)? <= most);
            }
            return Ok(unused.min(count));
        }
        // Without a word on each node, the sum still tells of one node, and of none used at all.
        let sum = *measure::seen(job.usage.cpu_seconds.as_ref(), self.coverage)?;
        if sum <= most {
            Ok(count)
        } else if count == 1 {
            Ok(0)
        } else {
            Err(Missing::Unmeasured)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job, share};

    fn rule() -> ZeroCpuUtilization {
        ZeroCpuUtilization::default()
    }

    #[test]
    fn v42_idle_nodes_of_jobs_on_several() {
        let four = |user| {
            let used = [(100.0, 0.1), (0.0, 0.1), (0.0, 0.1), (0.0, 0.1)];
            job(user).hours(10.0).held("n[1-4]", 64, 0).by_node(&used)
        };
        let two =
            || job("user1").hours(10.0).held("n[1-2]", 64, 0).by_node(&[(0.0, 0.1), (100.0, 0.1)]);
        let busy = job("user1").hours(10.0).held("n[1-3]", 96, 0).by_node(&[(100.0, 0.1); 3]);
        let world = World::new([four("user1"), two(), two(), busy, four("user2")]);
        let unused = |user| -> Vec<(f64, f64)> {
            let number = |hit: &Hit, key| hit.figures.number(key).unwrap();
            let finding = world.finding(&rule(), user);
            finding.hits.iter().map(|h| (number(h, "nodes"), number(h, "nodes_unused"))).collect()
        };
        assert_eq!(unused("user1"), [(4.0, 3.0), (2.0, 1.0), (2.0, 1.0)]);
        assert_eq!(unused("user2"), [(4.0, 3.0)]);
        assert_eq!(world.found(&rule()), ["user1", "user2"]);
    }

    #[test]
    fn x10_cpu_hours_on_unused_nodes() {
        let first = job("a").hours(10.0).held("n[1-2]", 64, 0).by_node(&[(0.0, 0.1), (1e5, 0.1)]);
        let second = job("b").hours(200.0).held("n1", 2, 0).by_node(&[(0.0, 0.1)]);
        let world = World::new([first, second]);
        for (bound, found) in [(320.0, &["a", "b"][..]), (321.0, &["b"]), (401.0, &[])] {
            let rule = ZeroCpuUtilization { cpu_hours: Some(bound), ..rule() };
            assert_eq!(world.found(&rule), found, "{bound}");
        }
    }

    #[test]
    fn v24_idle_nodes_are_counted_and_a_missing_figure_is_no_idle_node() {
        for (nodes, used, unused) in [
            ("n1", vec![100.0], 0),
            ("n1", vec![0.0], 1),
            ("n[1-4]", vec![100.0, 0.0, 0.0, 100.0], 2),
        ] {
            let used: Vec<(f64, f64)> = used.into_iter().map(|cpu| (cpu, 0.1)).collect();
            let world = World::new([job("a").held(nodes, 32, 0).by_node(&used)]);
            let job = &world.facts.jobs()[0];
            assert_eq!(rule().unused(job, job.node_count.unwrap()), Ok(unused));
        }
        let unknown = job("a").hours(2.0).with(|job| job.by_node = Some(vec![(None, Some(0.1))]));
        assert_eq!(World::new([unknown]).on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn a_single_small_job_is_for_administrators() {
        let small = |cpus| job("a").hours(2.0).held("n1", cpus, 0).by_node(&[(0.0, 0.1)]);
        let told = |jobs: Vec<_>| World::new(jobs).finding(&rule(), "a").audience;
        assert_eq!(told(vec![small(3)]), Audience::Administrators);
        assert_eq!(told(vec![small(4)]), Audience::User);
        assert_eq!(told(vec![small(3), small(3)]), Audience::User);
    }

    #[test]
    fn what_shell_and_slurm_need_is_no_use_and_short_jobs_do_not_count() {
        let used = |seconds| job("a").hours(2.0).with(|job| job.cpu_seconds = Some(seconds));
        for (seconds, idle) in [(0.0, true), (9.9, true), (10.0, true), (10.1, false)] {
            let world = World::new([used(seconds)]);
            assert_eq!(!world.found(&rule()).is_empty(), idle, "{seconds}");
        }
        for (minutes, counts) in [(60.9, false), (61.0, true), (61.1, true)] {
            let draft = job("a").hours(minutes / 60.0).with(|job| job.cpu_seconds = Some(0.0));
            assert_eq!(!World::new([draft]).found(&rule()).is_empty(), counts, "{minutes}");
        }
    }

    #[test]
    fn half_of_a_job_or_half_of_its_nodes_is_not_enough() {
        let half = job("a").hours(2.0).by_node(&[(0.0, 0.1)]).with(|job| job.coverage = 0.5);
        let missing = Missing::Coverage { found: share(0.5), needed: share(0.8) };
        assert_eq!(World::new([half]).on(&rule(), "a"), Verdict::NoData(missing));
        let one = job("a").hours(2.0).held("n[1-2]", 2, 0).by_node(&[(0.0, 0.1)]);
        let missing = Missing::Coverage { found: share(0.5), needed: share(1.0) };
        assert_eq!(World::new([one]).on(&rule(), "a"), Verdict::NoData(missing));
    }
}
