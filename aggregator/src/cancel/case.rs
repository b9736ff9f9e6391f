//! A job that the rule finds idle, with all that decides about it.

use std::collections::HashMap;
use std::time::Duration;

use steward_common::rule::cancel_zero_gpu_jobs::CancelZeroGpuJobs;
use steward_common::rule::usage::Idle;
use steward_common::rule::{
    self, Finding, Instance, Job, Portfolio, Rule, Subject, Value, Verdict,
};
use steward_common::time::Timestamp;

use super::timing::{Course, Timing};
use crate::evaluate::Gathered;
use crate::store::cancels::{Base, Key};

/// A job that the rule finds idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Which run it is, and under which instance.
    pub key: Key,
    /// As people know it.
    pub shown: String,
    /// Whose.
    pub user: String,
    /// Its partition.
    pub partition: String,
    /// Why it counts as idle.
    pub course: Course,
    /// The times of the instance.
    pub timing: Timing,
    /// For how long it has been idle: since it began, or the shortest of its idle GPUs.
    pub idle: Duration,
    /// GPUs that it holds,
    pub gpus: u32,
    /// those that are idle by the rule,
    pub gpus_idle: u32,
    /// and those of them of which every sample was exactly 0.
    pub gpus_exact: u32,
    /// Share of the job's time in which its GPUs were seen.
    pub coverage: f64,
    /// How long it has run, in hours.
    pub hours: f64,
    /// How long it may still run; `None` if that is not known, or for ever.
    pub time_left: Option<Duration>,
    /// What it has used by now.
    pub used: Base,
}

/// What the rule says of the running jobs of a cluster.
#[derive(Debug, Default)]
pub struct Sight {
    /// Those that are idle.
    pub idle: Vec<Case>,
    /// Those that are not. Of all others too little is known: nothing is done and nothing forgotten.
    pub busy: Vec<Key>,
    /// All running jobs that are known, with what people call them.
    pub running: HashMap<(String, u32, Timestamp), String>,
    /// How many jobs with GPUs were measured too little to be judged.
    pub unknown: usize,
}

/// The id of the rule.
#[must_use]
pub fn rule_id() -> &'static str {
    CancelZeroGpuJobs::default().id().as_str()
}

impl Sight {
    /// Judges a cluster by every instance of the rule.
    pub fn add(&mut self, gathered: &Gathered, instances: &[Instance]) {
        let facts = &gathered.facts;
        let cluster = facts.cluster.as_str();
        for job in facts.jobs().iter().filter(|job| job.is_running()) {
            let key = (cluster.to_owned(), job.key.id.get(), job.key.submit);
            self.running.insert(key, job.shown_id());
        }
        for instance in instances.iter().filter(|one| one.rule.id().as_str() == rule_id()) {
            let clusters = &instance.scope.clusters;
            if !clusters.is_empty() && !clusters.iter().any(|name| name == cluster) {
                continue;
            }
            let portfolio = Portfolio::new(facts, &instance.scope);
            rule::judge(&*instance.rule, &portfolio, |subject, verdict| {
                let Subject::Job { user, job } = subject else { return };
                let Some(job) = facts.job(user, job) else { return };
                let key = Key {
                    instance: instance.name.clone(),
                    cluster: cluster.to_owned(),
                    job: job.key.id.get(),
                    submitted: job.key.submit,
                };
                match verdict {
                    Verdict::Fine => self.busy.push(key),
                    Verdict::Finding(finding) => {
                        let case = Case::new(key, job, &finding, &portfolio, instance);
                        self.idle.extend(case);
                    }
                    Verdict::NoData(_) => self.unknown += 1,
                    Verdict::NotApplicable(_) => {}
                }
            });
        }
    }
}

impl Case {
    /// `None` if the finding does not say what it should: nothing is done then.
    fn new(
        key: Key,
        job: &Job,
        finding: &Finding,
        portfolio: &Portfolio<'_>,
        instance: &Instance,
    ) -> Option<Case> {
        let facts = portfolio.facts();
        let timing = Timing::of(instance);
        let elapsed = Duration::from_secs(u64::from(job.elapsed?));
        let Value::Word(stage) = finding.figures.get("stage")? else { return None };
        let figure = job.usage.gpus.as_deref()?;
        // How long a GPU was idle is told at least; those that were idle for less than this are at work.
        let (course, from) = match stage {
            "sliding-warning" => (Course::Sliding, timing.sliding_warning?),
            "sliding-cancel" => (Course::Sliding, timing.sliding_cancel?),
            _ => (Course::Fixed, Duration::ZERO),
        };
        let (idle, exact) = match course {
            Course::Fixed => {
                let is_exact = |gpu: &&rule::GpuUsage| {
                    gpu.utilisation.is_some_and(|used| used.idle() == Idle::Yes)
                };
                (elapsed, figure.value.iter().filter(is_exact).count())
            }
            Course::Sliding => {
                let times = || figure.value.iter().filter_map(|gpu| gpu.idle_for);
                let idle = || times().filter(|idle| *idle >= from);
                (idle().min()?, idle().count())
            }
        };
        let left = facts.time_limit_of(job).and_then(steward_common::limit::Limit::at);
        let count = |key: &str| match finding.figures.get(key)? {
            Value::Count(count) => u32::try_from(count).ok(),
            _ => None,
        };
        Some(Case {
            key,
            shown: job.shown_id(),
            user: facts.names.text(job.user).to_owned(),
            partition: facts.names.text(job.partition).to_owned(),
            course,
            timing,
            idle,
            gpus: count("gpus")?,
            gpus_idle: count("gpus_idle")?,
            gpus_exact: u32::try_from(exact).ok()?,
            coverage: figure.coverage.get(),
            hours: job.hours(),
            time_left: left.map(|limit| limit.saturating_sub(elapsed)),
            used: used(job, facts.now),
        })
    }

    /// What people call it, for the audit log.
    #[must_use]
    pub fn subject(&self) -> String {
        format!("job {} of {} on {}", self.shown, self.user, self.key.cluster)
    }
}

/// Counters of the agents. For how long they were watched is told with them: a counter that stands still because nobody
/// looks is no proof.
fn used(job: &Job, now: Timestamp) -> Base {
    let elapsed = f64::from(job.elapsed.unwrap_or(0));
    let cpu = job.usage.cpu_seconds.map(|cpu| (cpu.value, cpu.coverage.get() * elapsed));
    let io = job.usage.work.as_deref().and_then(|work| {
        let bytes = match (work.value.moved_bytes, work.value.requested_bytes) {
            (None, None) => return None,
            (moved, requested) => moved.max(requested)?,
        };
        Some((bytes as f64, work.coverage.get() * elapsed))
    });
    Base { at: Some(now), cpu, io }
}

#[cfg(test)]
mod tests {
    use steward_common::rule::option::{Options, Setting};
    use steward_common::rule::usage::{Figure, GpuUsage, Origin, Utilisation};
    use steward_common::rule::{Gathering, Hardware, JobKey, Share, Usage};
    use steward_common::slurm::duration::TimeLimit;
    use steward_common::window::Window;

    use super::*;

    const NOW: i64 = 2_000_000;

    /// A GPU at 0 all the time, one that was rounded to 0, one that worked and has been idle since, or none that is known.
    enum Gpu {
        Idle,
        Rounded,
        Worked(u64),
        Dark,
    }

    fn add(gathering: &mut Gathering, id: u32, name: &str, gpu: &Gpu) {
        let names = gathering.names();
        let [user, node, name, empty] = ["alice", "n1", name, ""].map(|text| names.intern(text));
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let used = |per_cent: f64| Share::new(per_cent / 100.0).unwrap();
        let usage = match gpu {
            Gpu::Dark => None,
            Gpu::Idle => Some((Utilisation::measured(used(0.0), Some(used(0.0))), 600)),
            Gpu::Rounded => Some((Utilisation::rounded(used(0.0)), 0)),
            Gpu::Worked(idle) => Some((Utilisation::measured(used(40.0), Some(used(90.0))), *idle)),
        };
        let gpus = usage.map(|(utilisation, idle)| {
            let one = GpuUsage {
                node,
                utilisation: Some(utilisation),
                peak_memory: None,
                memory: None,
                idle_for: Some(minutes(idle)),
            };
            Box::new(Figure::whole(vec![one].into_boxed_slice(), Origin::Exporter))
        });
        let job = Job {
            key: JobKey { id: id.to_string().parse().unwrap(), submit: Timestamp::new(5) },
            array: None,
            user,
            account: empty,
            partition: empty,
            qos: empty,
            name,
            nodes: node,
            licences: None,
            state: "RUNNING".into(),
            start: Some(Timestamp::new(NOW - 36_000)),
            end: None,
            elapsed: Some(36_000),
            time_limit: None::<TimeLimit>,
            cpus: Some(4),
            node_count: Some(1),
            gpus: Some(1),
            memory: None,
            billing: None,
            usage: Usage { gpus, ..Usage::default() },
        };
        gathering.push(job).unwrap();
    }

    #[test]
    fn only_what_is_known_to_be_idle_is_a_case_and_only_what_is_known_to_work_is_busy() {
        let now = Timestamp::new(NOW);
        let window = Window::new(Timestamp::new(NOW - 600), now).unwrap();
        let mut gathering = Gathering::new("c1".parse().unwrap(), window, now, Hardware::default());
        for (id, gpu) in [
            (1, Gpu::Idle),
            (2, Gpu::Rounded),
            (3, Gpu::Worked(250)),
            (4, Gpu::Worked(310)),
            (5, Gpu::Worked(10)),
            (6, Gpu::Dark),
        ] {
            add(&mut gathering, id, "train", &gpu);
        }
        let gathered = Gathered { facts: gathering.finish(), snapshot: None, silent: None };
        let instance = Instance::of(Box::new(CancelZeroGpuJobs::default()));
        let mut sight = Sight::default();
        sight.add(&gathered, &[instance]);
        let idle: Vec<_> = sight
            .idle
            .iter()
            .map(|case| (case.key.job, case.course, case.idle.as_secs() / 60, case.gpus_exact))
            .collect();
        let expected = [
            (1, Course::Fixed, 600, 1),
            (3, Course::Sliding, 250, 1),
            (4, Course::Sliding, 310, 1),
        ];
        assert_eq!(idle, expected);
        let busy: Vec<u32> = sight.busy.iter().map(|key| key.job).collect();
        assert_eq!(busy, [2, 5], "a rounded 0 is no proof of idleness");
        assert_eq!(sight.running.len(), 6);
    }

    #[test]
    fn an_interactive_job_that_the_rule_spares_is_no_case() {
        let now = Timestamp::new(NOW);
        let window = Window::new(Timestamp::new(NOW - 600), now).unwrap();
        let mut gathering = Gathering::new("c1".parse().unwrap(), window, now, Hardware::default());
        add(&mut gathering, 1, "interactive", &Gpu::Idle);
        let (jobs, _) = gathering.jobs_and_names();
        for job in jobs {
            let limit = steward_common::limit::Limit::At(Duration::from_secs(8 * 3600));
            job.time_limit = Some(TimeLimit::Own(limit));
        }
        let gathered = Gathered { facts: gathering.finish(), snapshot: None, silent: None };
        let cases = |spared: &str| {
            let mut rule = CancelZeroGpuJobs::default();
            rule.set("interactive_time", Setting::Text(spared.to_owned())).unwrap();
            rule.set("interactive_gpus", Setting::Number(1.0)).unwrap();
            let mut sight = Sight::default();
            sight.add(&gathered, &[Instance::of(Box::new(rule))]);
            (sight.idle.len(), sight.busy.len())
        };
        assert_eq!(cases("8h"), (0, 0));
        assert_eq!(cases("7h"), (1, 0));
    }
}
