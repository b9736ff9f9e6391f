//! `excess-cpu-memory`.

use crate::intern::Name;
use crate::slurm::state::JobState;
use crate::unit::Bytes;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{self, Coverage, Missing, Used};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::spread::{mean, median};
use super::{Need, Part, Rule, RuleId, Subject, Verdict, Why};

options! {
    /// Users who ask for much more memory than they use.
    ExcessCpuMemory {
        /// Unused GiB-hours above which the user is told.
        gib_hours: f64 = 65_000.0;
        /// Share used of all memory held, up to which the user is told.
        ratio: Share = Share::per_cent(35);
        /// Mean over jobs of the share used, up to which the user is told.
        mean_ratio: Share = Share::per_cent(35);
        /// Median over jobs of the share used, up to which the user is told.
        median_ratio: Share = Share::per_cent(35);
        /// How many are looked at, those with the most unused GiB-hours.
        top_users: u32 = 10;
        /// Whether a user's partitions count together.
        combine_partitions: bool = false;
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Jobs that hold more than this share of their nodes' cores do not count.
        cores_fraction: Option<Share> = None;
        /// Whether only jobs count that hold more memory per core than their nodes have.
        above_fair_share: bool = false;
        /// Cores of a node; what Slurm says, if not set.
        cores_per_node: Option<u32> = None;
        /// Memory of a node in GiB; what Slurm says, if not set.
        gib_per_node: Option<f64> = None;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GiB-hours that must have been measured.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ExcessCpuMemory::default())
}

/// The jobs of a user that are judged together.
struct Group<'a> {
    subject: Subject,
    jobs: Vec<&'a Job>,
    coverage: Coverage,
    used: Used,
    shares: Vec<f64>,
}

impl Rule for ExcessCpuMemory {
    fn id(&self) -> RuleId {
        RuleId("excess-cpu-memory")
    }

    fn doc(&self) -> &'static str {
        "Memory held and not used, times hours, over a user's jobs in a partition. What a job used \
         is the most it used at any time. Jobs that ran out of memory do not count.\n\
         Memory that one job holds and does not use leaves CPUs beside it idle, because no other \
         job fits.\n\
         Ask for the most that a job of the kind has used, and a fifth more."
    }

    fn needs(&self) -> &'static [Need] {
        if self.cores_fraction.is_some() || self.above_fair_share {
            &[Need::Accounting, Need::Hardware, Need::Memory]
        } else {
            &[Need::Accounting, Need::Memory]
        }
    }

    fn scope(&self) -> Scope {
        Scope::default()
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (user, jobs) in portfolio.users() {
            let mut jobs: Vec<&Job> = jobs.to_vec();
            if self.combine_partitions {
                groups.push(self.group(portfolio, user, Part::All, jobs));
                continue;
            }
            jobs.sort_by_key(|job| (portfolio.facts().names.text(job.partition), job.key));
            for jobs in jobs.chunk_by(|a, b| a.partition == b.partition) {
                let part = jobs.first().map_or(Part::All, |job| Part::Partition(job.partition));
                groups.push(self.group(portfolio, user, part, jobs.to_vec()));
            }
        }
        // Stable, so that those who waste the same stand by name.
        groups.sort_by(|a, b| b.used.unused().total_cmp(&a.used.unused()));
        let judge =
            |(rank, group): (u32, Group<'_>)| (group.subject, self.judge(portfolio, rank, group));
        (1..).zip(groups).map(judge).collect()
    }
}

impl ExcessCpuMemory {
    fn group<'a>(
        &self,
        portfolio: &Portfolio<'_>,
        user: Name,
        part: Part,
        mut jobs: Vec<&'a Job>,
    ) -> Group<'a> {
        let (mut coverage, mut used) = (Coverage::default(), Used::default());
        let mut shares = Vec::new();
        jobs.retain(|job| {
            let counts = self.counts(portfolio, job);
            if counts == Ok(false) {
                return false;
            }
            let hours = counts.and_then(|_| measure::memory_hours(job, self.coverage));
            let known = coverage.note(job.gib_hours(), hours);
            shares.extend(known.and_then(Used::share));
            used.add(known.unwrap_or_default());
            known.is_some()
        });
        Group { subject: Subject::User { user, part }, jobs, coverage, used, shares }
    }

    fn counts(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<bool, Missing> {
        let of_the_kind = job.elapsed.is_some_and(|elapsed| elapsed > 0)
            && job.state != JobState::OutOfMemory
            && (self.gpu_jobs || job.gpu_count() == 0);
        if !of_the_kind || (self.cores_fraction.is_none() && !self.above_fair_share) {
            return Ok(of_the_kind);
        }
        let node = portfolio.facts().node_of(job);
        let cores = self.cores_per_node.or(node.cpus).map(f64::from).ok_or(Missing::Hardware)?;
        let cpus = job.cpus.filter(|cpus| *cpus > 0).map(f64::from).ok_or(Missing::Held)?;
        if let Some(fraction) = self.cores_fraction {
            let nodes = job.node_count.filter(|nodes| *nodes > 0).ok_or(Missing::Held)?;
            if cpus / f64::from(nodes) > fraction.get() * cores {
                return Ok(false);
            }
        }
        if self.above_fair_share {
            let gib = self.gib_per_node.or(node.memory.map(Bytes::gib)).ok_or(Missing::Hardware)?;
            let memory = job.memory.ok_or(Missing::Held)?;
            return Ok(memory.gib() / cpus > gib / cores);
        }
        Ok(true)
    }

    fn hit(&self, job: &Job) -> Option<(f64, Hit)> {
        let hours = measure::memory_hours(job, self.coverage).ok()?;
        let (used, held) = measure::memory(job, self.coverage).ok()?;
        let share = hours.share()?;
        let figures = Figures::default()
            .with("memory_used", Value::Bytes(used))
            .with("memory", Value::Bytes(held))
            .with("share_used", Value::Share(share))
            .with_known("cores", job.cpus)
            .with("hours", job.hours())
            .with("gib_hours_unused", hours.unused());
        Some((hours.unused(), Hit::new(job, Some(1.0 - share), figures)))
    }

    fn judge(&self, portfolio: &Portfolio<'_>, rank: u32, group: Group<'_>) -> Verdict {
        let Group { jobs, coverage, used, mut shares, .. } = group;
        if coverage.jobs == 0 {
            return Verdict::NotApplicable(Why::NoSuchJobs);
        }
        if rank > self.top_users {
            return Verdict::NotApplicable(Why::NotAmongTop);
        }
        if let Some(missing) = coverage.lack(self.hours_coverage) {
            return Verdict::NoData(missing);
        }
        let (mean, median) = (mean(&shares), median(&mut shares));
        let within = |ratio: Option<f64>, bound: Share| ratio.is_some_and(|r| r <= bound.get());
        let much = used.unused() > self.gib_hours
            && within(used.share(), self.ratio)
            && within(mean, self.mean_ratio)
            && within(median, self.median_ratio);
        if !much {
            return Verdict::Fine;
        }
        let all = portfolio.total().gib_hours;
        let figures = Figures::default()
            .with("gib_hours_unused", used.unused())
            .with("gib_hours_used", used.used)
            .with_known("ratio", used.share().map(Value::Share))
            .with_known("mean_ratio", mean.map(Value::Share))
            .with_known("median_ratio", median.map(Value::Share))
            .with_known("proportion", (all > 0.0).then(|| Value::Share(used.held / all)))
            .with_known("nodes_wasted", self.nodes(portfolio, used.unused()))
            .with("cpu_hours", jobs.iter().map(|job| job.cpu_hours()).sum::<f64>())
            .with("jobs", jobs.len())
            .with_known("coverage", coverage.share().map(Value::Share));
        let mut hits: Vec<(f64, Hit)> = jobs.iter().filter_map(|job| self.hit(job)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let hits = hits.into_iter().map(|(_, hit)| hit).collect();
        Verdict::Finding(Finding::new(Audience::User, figures, hits))
    }

    /// How many nodes' memory was unused all the time, where a node's size is given.
    fn nodes(&self, portfolio: &Portfolio<'_>, unused: f64) -> Option<f64> {
        let gib = self.gib_per_node.filter(|gib| *gib > 0.0)?;
        let window = portfolio.facts().window.seconds() as f64 / 3600.0;
        Some(unused / window / gib)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::option::Options;
    use crate::rule::sample::{World, job, near, share};
    use crate::rule::{Missing, Setting};

    fn rule() -> ExcessCpuMemory {
        let ratio = share(0.2);
        ExcessCpuMemory {
            ratio,
            mean_ratio: ratio,
            median_ratio: ratio,
            cores_fraction: Some(share(0.8)),
            above_fair_share: true,
            ..ExcessCpuMemory::default()
        }
    }

    fn draft(user: &'static str, used: f64) -> crate::rule::sample::Draft {
        job(user).hours(1000.0).held("n1", 13, 0).memory(used, 100.0)
    }

    /// Job Defense Shield has 284 and 189 "TB-hours", and 0.055 rounded to 0.06.
    #[test]
    fn v27_two_users_with_jobs_of_a_thousand_hours() {
        let user1 = [1.0, 5.0, 10.0].map(|used| draft("user1", used));
        let user2 = [10.0, 1.0].map(|used| draft("user2", used));
        let world = World::new(user1.into_iter().chain(user2));
        let finding = world.finding(&rule(), "user1");
        near(&finding, "gib_hours_unused", 284_000.0);
        near(&finding, "ratio", 16.0 / 300.0);
        near(&finding, "mean_ratio", 16.0 / 300.0);
        near(&finding, "median_ratio", 0.05);
        assert_eq!(finding.hits.len(), 3);
        assert_eq!(finding.hits[0].figures.number("share_used"), Some(0.01), "the worst first");
        let finding = world.finding(&rule(), "user2");
        near(&finding, "gib_hours_unused", 189_000.0);
        for key in ["ratio", "mean_ratio", "median_ratio"] {
            near(&finding, key, 0.055);
        }
        assert_eq!(world.found(&rule()), ["user1", "user2"], "who wastes most is first");
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        // 100 GiB for 1000 h: unused is 100,000 minus what is used.
        for (used, told) in [(34.9, true), (35.0, false), (35.1, false)] {
            let rule = ExcessCpuMemory { ratio: share(1.0), ..rule() };
            let rule = ExcessCpuMemory { mean_ratio: share(1.0), median_ratio: share(1.0), ..rule };
            let world = World::new([draft("a", used)]);
            assert_eq!(!world.found(&rule).is_empty(), told, "more than 65,000: {used}");
        }
        for (used, told) in [(19.9, true), (20.0, true), (20.1, false)] {
            let world = World::new([draft("a", used)]);
            assert_eq!(!world.found(&rule()).is_empty(), told, "at most 0.2: {used}");
        }
    }

    #[test]
    fn only_the_top_are_looked_at_and_partitions_are_apart() {
        let other = draft("b", 1.0).with(|job| job.partition = "other");
        let world = World::new([draft("a", 1.0), draft("a", 1.0), draft("b", 2.0), other]);
        assert_eq!(world.found(&rule()), ["a", "b", "b"]);
        let combined = ExcessCpuMemory { combine_partitions: true, ..rule() };
        assert_eq!(world.found(&combined), ["a", "b"]);
        let one = ExcessCpuMemory { top_users: 1, ..combined };
        assert_eq!(world.on(&one, "b"), Verdict::NotApplicable(Why::NotAmongTop));
    }

    #[test]
    fn jobs_that_do_not_count() {
        let full = draft("full", 1.0).with(|job| job.cpus = 26);
        let fair = draft("fair", 1.0).with(|job| job.gib = 77.0);
        let gpu = draft("gpu", 1.0).with(|job| job.gpus = 1);
        let oom = draft("oom", 1.0).state(JobState::OutOfMemory);
        for draft in [full, fair, gpu, oom] {
            let world = World::new([draft.clone()]);
            let verdict = world.on(&rule(), draft.user);
            assert_eq!(verdict, Verdict::NotApplicable(Why::NoSuchJobs), "{}", draft.user);
        }
    }

    /// Job Defense Shield counts malformed rows as −1 and rows above 100 % as negative waste.
    #[test]
    fn figures_that_make_no_sense_count_for_nothing() {
        let world = World::new([draft("a", 1.0), draft("a", 200.0)]);
        near(&world.finding(&rule(), "a"), "gib_hours_unused", 99_000.0);
        let world = World::new([draft("a", 200.0)]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(Missing::MoreThanHeld));
    }

    #[test]
    fn unknown_hardware_is_no_data_where_the_rule_asks_for_it() {
        let world = World::new([draft("a", 1.0).with(|job| job.nodes = "x1")]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(Missing::Hardware));
        let mut rule = rule();
        rule.set("cores_per_node", Setting::Number(32.0)).unwrap();
        rule.set("gib_per_node", Setting::Number(190.0)).unwrap();
        let finding = world.finding(&rule, "a");
        near(&finding, "nodes_wasted", 99_000.0 / 168.0 / 190.0);
    }

    /// TrailblazingTurtle judges memory beyond 4 GiB a core and a tenth more. That is a node of 64
    /// cores with 64 · 4.4 GiB; ours is what the site's nodes have, unless it is set.
    #[test]
    fn n17_memory_that_goes_with_the_cores_is_not_judged() {
        let tenth = share(0.1);
        let rule = ExcessCpuMemory {
            gib_hours: 0.0,
            ratio: tenth,
            mean_ratio: tenth,
            median_ratio: tenth,
            above_fair_share: true,
            cores_per_node: Some(64),
            gib_per_node: Some(64.0 * 4.0 * 1.1),
            ..ExcessCpuMemory::default()
        };
        let world = |gib: f64| World::new([job("a").held("n1", 10, 0).memory(0.05 * gib, gib)]);
        let spared = world(44.0).on(&rule, "a");
        assert_eq!(spared, Verdict::NotApplicable(Why::NoSuchJobs), "10 · 4 · 1.1 = 44");
        let finding = world(44.1).finding(&rule, "a");
        // Whole bytes of an hour.
        let unused = finding.figures.number("gib_hours_unused").unwrap();
        assert!((unused - 0.95 * 44.1).abs() < 1e-6, "{unused}");
    }
}
