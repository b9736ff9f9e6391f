//! Made-up clusters and jobs for the tests of rules.

use std::time::Duration;

use crate::id::{ClusterName, JobId};
use crate::intern::Name;
use crate::limit::Limit;
use crate::slurm::duration::TimeLimit;
use crate::slurm::state::JobState;
use crate::time::Timestamp;
use crate::unit::Bytes;
use crate::window::Window;

use super::usage::{Figure, GpuUsage, NodeUsage, Origin, Usage, Utilisation, Work};
use super::{Facts, Finding, Gathering, Hardware, Job, JobKey, NodeSize, Portfolio, Rule, Scope};
use super::{Share, Subject, Verdict};

/// The present of all samples.
pub(crate) const NOW: Timestamp = Timestamp::new(30 * 86_400);

pub(crate) fn gib(gib: f64) -> Bytes {
    #[allow(clippy::cast_sign_loss)]
    Bytes::new((gib * (1u64 << 30) as f64).round() as u64)
}

pub(crate) fn share(value: f64) -> Share {
    Share::new(value).unwrap()
}

/// One node of a job: CPU seconds, GiB used.
type OfNode = (Option<f64>, Option<f64>);

/// A job to be.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) user: &'static str,
    pub(crate) partition: &'static str,
    pub(crate) qos: &'static str,
    pub(crate) name: &'static str,
    pub(crate) nodes: &'static str,
    pub(crate) state: JobState,
    pub(crate) seconds: u32,
    pub(crate) end: Timestamp,
    pub(crate) limit: Option<TimeLimit>,
    pub(crate) cpus: u32,
    pub(crate) gpus: u32,
    pub(crate) gib: f64,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) gib_used: Option<f64>,
    pub(crate) by_node: Option<Vec<OfNode>>,
    pub(crate) gpu: Option<Vec<GpuUsage>>,
    pub(crate) work: Option<Work>,
    pub(crate) licences: Option<&'static str>,
    pub(crate) array: Option<(u32, Option<u32>)>,
    pub(crate) coverage: f64,
    pub(crate) account: &'static str,
    /// Whether Slurm bills it, by CPU.
    pub(crate) billed: bool,
}

/// A job of an hour on one core of node n1, of which nothing was measured.
pub(crate) fn job(user: &'static str) -> Draft {
    Draft {
        user,
        partition: "main",
        qos: "normal",
        name: "job",
        nodes: "n1",
        state: JobState::Completed,
        seconds: 3600,
        end: Timestamp::new(NOW.get() - 3600),
        limit: None,
        cpus: 1,
        gpus: 0,
        gib: 1.0,
        cpu_seconds: None,
        gib_used: None,
        by_node: None,
        gpu: None,
        work: None,
        licences: None,
        array: None,
        coverage: 1.0,
        account: "account",
        billed: true,
    }
}

pub(crate) fn gpu(utilisation: Utilisation) -> GpuUsage {
    let mut names = crate::intern::Names::default();
    GpuUsage {
        node: names.intern(""),
        utilisation: Some(utilisation),
        peak_memory: None,
        memory: None,
        idle_for: None,
    }
}

impl Draft {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Draft)) -> Draft {
        change(&mut self);
        self
    }

    pub(crate) fn hours(self, hours: f64) -> Draft {
        #[allow(clippy::cast_sign_loss)]
        self.with(|job| job.seconds = (hours * 3600.0).round() as u32)
    }

    pub(crate) fn held(self, nodes: &'static str, cpus: u32, gpus: u32) -> Draft {
        self.with(|job| (job.nodes, job.cpus, job.gpus) = (nodes, cpus, gpus))
    }

    /// CPU time used, as a share of what is held.
    pub(crate) fn cpu_used(self, share: f64) -> Draft {
        let held = f64::from(self.cpus) * f64::from(self.seconds);
        self.with(|job| job.cpu_seconds = Some(share * held))
    }

    pub(crate) fn memory(self, used: f64, held: f64) -> Draft {
        self.with(|job| (job.gib_used, job.gib) = (Some(used), held))
    }

    /// Utilisation of each GPU in per cent, as measured.
    pub(crate) fn gpu_used(self, per_cent: &[f64]) -> Draft {
        let used = |value: &f64| gpu(Utilisation::measured(share(value / 100.0), None));
        self.with(|job| job.gpu = Some(per_cent.iter().map(used).collect()))
    }

    pub(crate) fn by_node(self, nodes: &[(f64, f64)]) -> Draft {
        let some = |(cpu, gib): &(f64, f64)| (Some(*cpu), Some(*gib));
        self.with(|job| job.by_node = Some(nodes.iter().map(some).collect()))
    }

    pub(crate) fn limit_minutes(self, minutes: u64) -> Draft {
        let limit = TimeLimit::Own(Limit::At(Duration::from_secs(60 * minutes)));
        self.with(|job| job.limit = Some(limit))
    }

    pub(crate) fn state(self, state: JobState) -> Draft {
        self.with(|job| job.state = state)
    }

    pub(crate) fn running(self) -> Draft {
        self.state(JobState::Running)
    }

    pub(crate) fn worked(self, work: Work) -> Draft {
        self.with(|job| job.work = Some(work))
    }
}

/// A cluster with jobs: nodes n1 to n9 have 32 cores, 190 GiB and 4 GPUs.
pub(crate) struct World {
    pub(crate) facts: Facts,
}

impl World {
    pub(crate) fn new(drafts: impl IntoIterator<Item = Draft>) -> World {
        let node = NodeSize { cpus: Some(32), memory: Some(gib(190.0)), gpus: Some(4) };
        let mut hardware = Hardware::default();
        hardware.nodes.extend((1..10).map(|n| (format!("n{n}"), node)));
        hardware.longest.insert("main".into(), Limit::At(Duration::from_secs(48 * 3600)));
        World::with(hardware, drafts)
    }

    pub(crate) fn with(hardware: Hardware, drafts: impl IntoIterator<Item = Draft>) -> World {
        World::of("c", hardware, drafts)
    }

    pub(crate) fn of(
        cluster: &str,
        hardware: Hardware,
        drafts: impl IntoIterator<Item = Draft>,
    ) -> World {
        let cluster = ClusterName::new(cluster).unwrap();
        let window = Window::new(Timestamp::new(NOW.get() - 7 * 86_400), NOW).unwrap();
        let mut facts = Gathering::new(cluster, window, NOW, hardware);
        for (number, draft) in (1..).zip(drafts) {
            add(&mut facts, number, &draft);
        }
        World { facts: facts.finish() }
    }

    pub(crate) fn name(&self, text: &str) -> Name {
        self.facts.names.find(text).unwrap()
    }

    pub(crate) fn check(&self, rule: &dyn Rule) -> Vec<(Subject, Verdict)> {
        self.check_in(rule, &rule.scope())
    }

    pub(crate) fn check_in(&self, rule: &dyn Rule, scope: &Scope) -> Vec<(Subject, Verdict)> {
        rule.check(&Portfolio::new(&self.facts, scope))
    }

    /// The only verdict on a user.
    pub(crate) fn on(&self, rule: &dyn Rule, user: &str) -> Verdict {
        let name = self.name(user);
        let of = |subject: &Subject| match subject {
            Subject::User { user, .. } | Subject::Job { user, .. } => *user == name,
        };
        let mut verdicts = self.check(rule);
        verdicts.retain(|(subject, _)| of(subject));
        assert_eq!(verdicts.len(), 1, "verdicts on {user}: {verdicts:?}");
        verdicts.pop().unwrap().1
    }

    /// The only finding on a user.
    pub(crate) fn finding(&self, rule: &dyn Rule, user: &str) -> Finding {
        match self.on(rule, user) {
            Verdict::Finding(finding) => finding,
            other => panic!("no finding on {user} but {other:?}"),
        }
    }

    /// Who was found, in the order of the verdicts.
    pub(crate) fn found(&self, rule: &dyn Rule) -> Vec<&str> {
        let name = |(subject, verdict): &(Subject, Verdict)| {
            let (Subject::User { user, .. } | Subject::Job { user, .. }) = subject;
            verdict.finding().map(|_| self.facts.names.text(*user))
        };
        self.check(rule).iter().filter_map(name).collect()
    }
}

/// Whether the finding has the figure, to nine digits.
pub(crate) fn near(finding: &Finding, key: &str, expected: f64) -> bool {
    let found = finding.figures.number(key).unwrap();
    let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(close, "{key}: {found} instead of {expected}");
    close
}

/// Adds it with that number.
fn add(facts: &mut Gathering, number: u32, draft: &Draft) {
    let names = facts.names();
    let coverage = share(draft.coverage);
    let nodes = crate::slurm::hostlist::expand(draft.nodes).unwrap();
    let figure = |value| Figure { value, origin: Origin::Agent, coverage };
    let by_node = draft.by_node.as_ref().map(|list| {
        let node = |(n, (cpu_seconds, used)): (usize, &OfNode)| NodeUsage {
            node: names.intern(nodes[n].as_str()),
            cpus: None,
            cpu_seconds: *cpu_seconds,
            peak_memory: used.map(gib),
            memory: None,
        };
        list.iter().enumerate().map(node).collect::<Box<[_]>>()
    });
    let usage = Usage {
        cpu_seconds: draft.cpu_seconds.map(figure),
        peak_memory: draft.gib_used.map(|used| Figure {
            value: gib(used),
            origin: Origin::Agent,
            coverage,
        }),
        nodes: by_node.map(|value| Box::new(Figure { value, origin: Origin::Agent, coverage })),
        gpus: draft.gpu.clone().map(|gpus| {
            let value = gpus.into_boxed_slice();
            Box::new(Figure { value, origin: Origin::Exporter, coverage })
        }),
        work: draft
            .work
            .clone()
            .map(|value| Box::new(Figure { value, origin: Origin::Agent, coverage })),
    };
    let start = Timestamp::new(draft.end.get() - i64::from(draft.seconds));
    let pending = draft.state == JobState::Pending;
    let job = Job {
        key: JobKey { id: JobId::new(number).unwrap(), submit: start },
        array: draft.array,
        user: names.intern(draft.user),
        account: names.intern(draft.account),
        partition: names.intern(draft.partition),
        qos: names.intern(draft.qos),
        name: names.intern(draft.name),
        nodes: names.intern(draft.nodes),
        licences: draft.licences.map(|text| names.intern(text)),
        start: (!pending).then_some(start),
        end: draft.state.is_ended().then_some(draft.end),
        state: draft.state.clone(),
        elapsed: (!pending).then_some(draft.seconds),
        time_limit: draft.limit,
        cpus: Some(draft.cpus),
        node_count: Some(u32::try_from(nodes.len()).unwrap()),
        gpus: Some(draft.gpus),
        memory: Some(gib(draft.gib)),
        billing: draft.billed.then(|| u64::from(draft.cpus)),
        usage,
    };
    facts.push(job).unwrap();
}
