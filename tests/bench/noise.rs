//! What a parallel program feels: a loop full of barriers on all cores, with the agent and without.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::child;
use crate::program::Program;
use crate::report::Spread;
use crate::workload::Workload;

const JOBS: u32 = 64;
const PROCESSES: u32 = 16;
const PAIRS: usize = 8;
/// Quartiles of runs without the agent that are further apart than this, in percent, drown it.
const BUSY: f64 = 5.0;
/// An interval and how long one run shall take: some scans must fall into each.
const SHORT: (&str, f64) = ("1s", 4.0);
const LONG: (&str, f64) = ("15s", 31.0);

/// Measures and prints; `long` adds the interval that the agent has by default.
pub fn run(long: bool) {
    println!("Noise: a loop full of barriers on all cores beside {JOBS} x {PROCESSES} processes");
    println!("  agent on against agent stopped, {PAIRS} pairs, each in random order\n");
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("noise");
    let source = steward_tests::directory().join("bench/noise.c");
    let built =
        Command::new("cc").args(["-O2", "-fopenmp", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("cc").success(), "noise.c does not compile");

    let _load = Workload::of(JOBS, PROCESSES);
    for (interval, seconds) in [Some(SHORT), long.then_some(LONG)].into_iter().flatten() {
        pairs(&program, interval, seconds);
    }
}

fn pairs(program: &Path, interval: &str, seconds: f64) {
    let agent = Program::start(interval);
    let measure = |steps: f64, on: bool| {
        // A stopped agent takes no CPU, and the first scan, which learns everything, is done once.
        agent.process.signal(if on { Signal::SIGCONT } else { Signal::SIGSTOP });
        loop_time(program, steps)
    };
    const TRY: f64 = 20_000.0;
    let steps = (TRY * seconds / measure(TRY, false)).ceil();
    let (mut slower, mut off) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let on_first = RandomState::new().hash_one(pair) % 2 == 0;
        let [first, second] = [on_first, !on_first].map(|on| measure(steps, on));
        let (with, without) = if on_first { (first, second) } else { (second, first) };
        slower.push((with / without - 1.0) * 100.0);
        off.push(without);
    }
    let slower = Spread::of(slower);
    let usual = Spread::of(off.iter().copied()).median;
    let off = Spread::of(off.iter().map(|time| (time / usual - 1.0) * 100.0));
    println!(
        "  every {interval:<4} slower by {:+.1} % [{:+.1} {:+.1}]   stopped against stopped [{:+.1} {:+.1}] %   no limit{}",
        slower.median,
        slower.low,
        slower.high,
        off.low,
        off.high,
        if off.high - off.low > BUSY { "; the machine is too busy to tell" } else { "" }
    );
}

/// Seconds that the loop says it took.
fn loop_time(program: &Path, steps: f64) -> f64 {
    let output = child::command(program)
        .arg(format!("{steps:.0}"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("noise");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("seconds")
}
