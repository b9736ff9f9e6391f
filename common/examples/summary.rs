//! What a summary costs: `cargo run --release -p steward-common --example summary [ROWS]`. The rows
//! are made first, in batches; only the adding and the tables are timed.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement for people")]

use std::collections::HashMap;

use steward_common::intern::{Name, Names};
use steward_common::summary::Summary;
use steward_common::summary::row::Row;
use steward_common::summary::scope::{Day, Detail, Filter, Grouping, Scope};
use steward_common::time::Timestamp;
use steward_common::window::Window;

const DAY: i64 = 86_400;
const BEGIN: i64 = 1_790_000_000;

/// Small, quick, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(n.max(1))).unwrap_or(0)
    }

    /// Small ones more often, as in life.
    fn skewed(&mut self, n: u32) -> u32 {
        let bound = self.below(n) + 1;
        self.below(bound)
    }

    fn pick(&mut self, from: &[Name]) -> Option<Name> {
        let at = self.skewed(u32::try_from(from.len()).unwrap_or(0));
        from.get(at as usize).copied()
    }
}

fn main() {
    let count: u32 =
        std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let mut names = Names::default();
    let rows = rows(count, &mut names).unwrap_or_default();
    let Some(scope) = scope() else { return };
    // What it takes to look at the rows at all, on this machine at this moment.
    let begin = cpu_seconds();
    let looked: f64 = rows.iter().filter_map(|row| row.cpu_seconds).sum();
    println!("looking at the rows: {:.3} s of CPU ({looked:.0})", cpu_seconds() - begin);
    let begin = cpu_seconds();
    let mut summary = Summary::new(scope);
    rows.chunks(8192).for_each(|batch| summary.add(batch, &names));
    let added = cpu_seconds() - begin;
    let report = summary.finish(&names);
    println!(
        "{count} rows of {} bytes: added in {added:.3} s of CPU, with tables {:.3} s",
        size_of::<Row>(),
        cpu_seconds() - begin
    );
    println!(
        "{} jobs, {} users, {} nodes, {:.0} CPU-hours",
        report.total.tally.jobs,
        report.users.len(),
        report.nodes.len(),
        report.total.tally.cpu.reserved
    );
}

/// CPU time of this program: other programs on the machine do not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn window(from: i64, to: i64) -> Option<Window> {
    Window::new(Timestamp::new(from), Timestamp::new(to))
}

fn scope() -> Option<Scope> {
    let day = |n: i64| {
        Some(Day { label: n.to_string(), window: window(BEGIN + n * DAY, BEGIN + (n + 1) * DAY)? })
    };
    Some(Scope {
        window: window(BEGIN, BEGIN + 30 * DAY)?,
        days: (0..30).filter_map(day).collect(),
        filter: Filter::default(),
        grouping: Grouping::Users(Box::new(|user| vec![format!("group{}", user.len() % 3)])),
        nodes: HashMap::new(),
        detail: Detail::All,
    })
}

fn rows(count: u32, names: &mut Names) -> Option<Vec<Row>> {
    let mut dice = Dice(7);
    let mut make = |what: &str, n: u32| -> Vec<Name> {
        (0..n).map(|i| names.intern(&format!("{what}{i}"))).collect()
    };
    let (users, accounts, partitions, qos) =
        (make("user", 800), make("account", 120), make("partition", 8), make("qos", 4));
    let single = make("n", 2000);
    let mut lists: Vec<Name> = (0..4000u32)
        .map(|i| names.intern(&format!("n[{}-{}]", i % 1900, i % 1900 + 1 + i % 60)))
        .collect();
    lists.extend(single.iter().cycle().take(40_000));
    let states: Vec<Name> =
        ["COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL"]
            .iter()
            .map(|state| names.intern(state))
            .collect();
    let types: Vec<Name> =
        ["", "a100=1", "h100=4", "a100=1,v100=1"].iter().map(|t| names.intern(t)).collect();
    let cluster = names.intern("c1");
    let mut rows = Vec::new();
    for _ in 0..count {
        let submit = BEGIN + i64::from(dice.below(30 * 86_400));
        let start = submit + i64::from(dice.skewed(40_000));
        let elapsed = dice.skewed(100_000);
        let cpus = 1 << dice.skewed(8);
        let gpus = dice.below(5).saturating_sub(3) * 2;
        // A user has one account or two, and habits.
        let who = dice.skewed(800);
        let habit = |of: &[Name], add: u32| of.get((who + add) as usize % of.len()).copied();
        rows.push(Row {
            cluster,
            user: habit(&users, 0)?,
            account: habit(&accounts, dice.below(10) / 9)?,
            partition: habit(&partitions, dice.skewed(3))?,
            qos: habit(&qos, dice.below(10) / 8)?,
            state: dice.pick(&states)?,
            nodes: lists.get(dice.below(44_000) as usize).copied()?,
            gpu_types: if gpus > 0 { dice.pick(&types)? } else { *types.first()? },
            submit: Timestamp::new(submit),
            start: Some(Timestamp::new(start)),
            end: Some(Timestamp::new(start + i64::from(elapsed))),
            collected: Timestamp::new(BEGIN + 40 * DAY),
            elapsed: Some(elapsed),
            cpus: Some(cpus),
            gpus: Some(gpus),
            alloc_mem_mb: Some(f64::from(dice.below(64_000) + 100)),
            max_rss_mb: (dice.below(10) > 1).then(|| f64::from(dice.below(64_000))),
            cpu_seconds: Some(
                f64::from(cpus) * f64::from(elapsed) * f64::from(dice.below(1000)) / 1000.0,
            ),
            gpu_seconds: None,
            time_limit: Some(100_000),
        });
    }
    Some(rows)
}
