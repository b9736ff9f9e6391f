//! What rules cost: `cargo run --release -p steward-common --example rules [JOBS]`. The jobs are
//! made first; only choosing and judging them is timed, rule by rule.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement for people")]

use steward_common::id::{ClusterName, JobId};
use steward_common::intern::Name;
use steward_common::limit::Limit;
use steward_common::rule::{
    self, Facts, Figure, Gathering, GpuUsage, Hardware, Job, JobKey, NodeSize, NodeUsage, Origin,
    Portfolio, RULES, Share, Usage, Utilisation, Verdict,
};
use steward_common::slurm::duration::TimeLimit;
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;
use steward_common::window::Window;

const BEGIN: i64 = 1_790_000_000;
const END: i64 = BEGIN + 7 * 86_400;

/// Small, quick, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(n.max(1))).unwrap_or(0)
    }

    fn share(&mut self) -> Share {
        Share::new(f64::from(self.below(1000)) / 1000.0).unwrap_or(Share::NONE)
    }
}

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let Some(facts) = facts(count) else { return };
    println!("{count} jobs of {} bytes, {} MiB in all", size_of::<Job>(), resident_mib());
    let mut sum = 0.0;
    for (name, make) in RULES {
        let begin = cpu_seconds();
        let rule = make();
        let portfolio = Portfolio::new(&facts, &rule.scope());
        let chosen = cpu_seconds() - begin;
        let (mut findings, mut without) = (0, 0);
        rule::judge(&*rule, &portfolio, |_, verdict| match verdict {
            Verdict::Finding(_) => findings += 1,
            Verdict::NoData(_) => without += 1,
            Verdict::Fine | Verdict::NotApplicable(_) => {}
        });
        let took = cpu_seconds() - begin;
        sum += took;
        println!(
            "{name:28} {took:.3} s of CPU ({chosen:.3} to choose), {} findings, {} without data",
            findings, without
        );
    }
    println!("all rules: {sum:.3} s of CPU, at most {} MiB", resident_mib());
}

/// CPU time of this program: other programs on the machine do not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

/// The most memory this program has had.
fn resident_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn facts(count: u32) -> Option<Facts> {
    let mut hardware = Hardware::default();
    let size = NodeSize { cpus: Some(64), memory: Some(Bytes::new(256 << 30)), gpus: Some(4) };
    hardware.nodes.extend((0..2000).map(|n| (format!("n{n}"), size)));
    let now = Timestamp::new(END);
    let window = Window::new(Timestamp::new(BEGIN), now)?;
    let mut facts = Gathering::new(ClusterName::new("c").ok()?, window, now, hardware);
    let mut dice = Dice(7);
    for number in 1..=count {
        let job = job(&mut facts, &mut dice, number)?;
        facts.push(job).ok()?;
    }
    let begin = cpu_seconds();
    let facts = facts.finish();
    println!("sorted in {:.3} s of CPU", cpu_seconds() - begin);
    Some(facts)
}

fn job(facts: &mut Gathering, dice: &mut Dice, number: u32) -> Option<Job> {
    let mut name = |what: &str, n: u32| facts.names().intern(&format!("{what}{n}"));
    let user = name("user", dice.below(800));
    let nodes: u32 = if dice.below(20) == 0 { 1 + dice.below(8) } else { 1 };
    let first = dice.below(1900);
    let place = if nodes > 1 {
        facts.names().intern(&format!("n[{first}-{}]", first + nodes - 1))
    } else {
        name("n", first)
    };
    let mut name = |what: &str, n: u32| facts.names().intern(&format!("{what}{n}"));
    let elapsed = dice.below(100_000);
    let cpus = nodes << dice.below(6);
    let gpus = if dice.below(10) == 0 { nodes * 4 } else { 0 };
    let end = Timestamp::new(BEGIN + i64::from(dice.below(7 * 86_400)));
    let start = Timestamp::new(end.get() - i64::from(elapsed));
    let states = [JobState::Completed, JobState::Failed, JobState::Timeout, JobState::OutOfMemory];
    Some(Job {
        key: JobKey { id: JobId::new(number)?, submit: start },
        array: None,
        user,
        account: name("account", dice.below(100)),
        partition: name("partition", dice.below(8)),
        qos: name("qos", dice.below(4)),
        name: name("job", dice.below(20_000)),
        nodes: place,
        licences: None,
        state: states.get((dice.below(12).saturating_sub(8)) as usize)?.clone(),
        start: Some(start),
        end: Some(end),
        elapsed: Some(elapsed),
        time_limit: Some(TimeLimit::Own(Limit::At(std::time::Duration::from_secs(100_000)))),
        cpus: Some(cpus),
        node_count: Some(nodes),
        gpus: Some(gpus),
        memory: Some(Bytes::new(u64::from(cpus) << 32)),
        billing: Some(u64::from(cpus)),
        usage: usage(dice, place, (nodes, cpus, gpus, elapsed)),
    })
}

/// As a summary of Jobstats has it; one job in five has none.
fn usage(dice: &mut Dice, node: Name, held: (u32, u32, u32, u32)) -> Usage {
    let (nodes, cpus, gpus, elapsed) = held;
    if dice.below(5) == 0 {
        return Usage::default();
    }
    let used = dice.share().get();
    let cpu_seconds = used * f64::from(cpus) * f64::from(elapsed);
    let memory = Bytes::new(u64::from(cpus) << (27 + dice.below(5)));
    let each = NodeUsage {
        node,
        cpus: Some(cpus / nodes),
        cpu_seconds: Some(cpu_seconds / f64::from(nodes)),
        peak_memory: Some(Bytes::new(memory.get() / u64::from(nodes))),
        memory: None,
    };
    let gpu = GpuUsage {
        node,
        utilisation: Some(Utilisation::rounded(dice.share())),
        peak_memory: Some(Bytes::new(8 << 30)),
        memory: Some(Bytes::new(80 << 30)),
        idle_for: None,
    };
    Usage {
        cpu_seconds: Some(Figure::whole(cpu_seconds, Origin::Summary)),
        peak_memory: Some(Figure::whole(memory, Origin::Summary)),
        nodes: (nodes > 1)
            .then(|| Box::new(Figure::whole((0..nodes).map(|_| each).collect(), Origin::Summary))),
        gpus: (gpus > 0)
            .then(|| Box::new(Figure::whole((0..gpus).map(|_| gpu).collect(), Origin::Summary))),
        work: None,
    }
}
