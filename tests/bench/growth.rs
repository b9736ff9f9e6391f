//! Memory over many cycles while jobs come and go: what is forgotten must be given back.

use crate::child::resident;
use crate::report::Report;
use crate::subject::Subject;
use crate::workload::Workload;

const CYCLES: u32 = 10_000;
/// By then every table has had its size.
const FIRST: u32 = 1_000;
/// A job ends, another begins and a third has a process replaced, every so many cycles: jobs are
/// seen for long enough to be remembered, and linger.
const TURN_EVERY: u32 = 4;
const JOBS: u32 = 5;
const PROCESSES: u32 = 2;
const MOST_KIB: f64 = 512.0;

/// Measures and prints. It must be alone in its process: memory that an earlier part left free
/// would hide a growth.
pub fn run(report: &mut Report) {
    let turns = CYCLES / TURN_EVERY;
    println!("Growth over {CYCLES} cycles, in which {turns} jobs end and {turns} begin\n");
    let mut load = Workload::of(JOBS, PROCESSES);
    let mut agent = Subject::new();
    let mut first = 0.0;
    for cycle in 1..=CYCLES {
        if cycle % TURN_EVERY == 0 {
            load.turn();
        }
        agent.cycle();
        if cycle == FIRST {
            first = resident("self");
        }
    }
    let last = resident("self");
    println!(
        "  resident at cycle {FIRST} {first:.0} KiB, at {CYCLES} {last:.0} KiB: {:+.0} KiB   limit {MOST_KIB:.0} KiB   {}",
        last - first,
        report.hold(last - first, MOST_KIB)
    );
}
