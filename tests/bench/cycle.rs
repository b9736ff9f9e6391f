//! CPU of a cycle against a bare reader of the same files, in one run, taking turns.

use crate::bare;
use crate::report::{Spread, mark, ms};
use crate::subject::{Subject, cpu};
use crate::workload::{NODE, Workload};

/// Jobs, processes of each, and the most that the agent may take of the bare reader's time.
const SIZES: [(u32, u32, f64); 2] = [(64, 16, 1.4), (128, 80, 1.3)];
/// More than the cycles after which the agent reads links again, so that these are among them.
const CYCLES: usize = 25;
/// The first cycles learn what later ones know; what counts is a cycle without changes.
pub const WARM_UP: usize = 3;

/// Measures and prints.
pub fn run() {
    println!("CPU of one cycle: scan, samples, encoding");
    println!("  median [quartiles] of {CYCLES}, in ms; the bare reader reads the same files\n");
    println!(
        "  jobs x processes  bare reader             agent                   (encoding)  ratio                  limit"
    );
    for (jobs, processes, limit) in SIZES {
        let _load = Workload::of(jobs, processes);
        let mut agent = Subject::new();
        let (mut bare, mut whole, mut encoding) = (Vec::new(), Vec::new(), Vec::new());
        for cycle in 0..WARM_UP + CYCLES {
            // Whoever comes second finds the kernel's memory warm.
            let (read, cost) = if cycle % 2 == 0 {
                let read = bare_cycle(jobs, processes);
                (read, agent.cycle())
            } else {
                let cost = agent.cycle();
                (bare_cycle(jobs, processes), cost)
            };
            if cycle >= WARM_UP {
                bare.push(read);
                whole.push(ms(cost.whole));
                encoding.push(ms(cost.encoding));
            }
        }
        let ratios = Spread::of(whole.iter().zip(&bare).map(|(agent, bare)| agent / bare));
        let (bare, whole) = (Spread::of(bare), Spread::of(whole));
        println!(
            "  {jobs:4} x {processes:<9}  {:<22}  {:<22}  {:6.1}      {:<21}  {limit:.2}  {}",
            shown(bare, 1),
            shown(whole, 1),
            Spread::of(encoding).median,
            shown(ratios, 3),
            mark(ratios.median, limit)
        );
    }
}

/// CPU time of one round of the bare reader, in ms.
fn bare_cycle(jobs: u32, processes: u32) -> f64 {
    let start = cpu();
    let seen = bare::cycle(NODE);
    let time = cpu() - start;
    let expected = (u64::from(jobs), u64::from(jobs) * u64::from(processes));
    assert_eq!((seen.jobs, seen.processes), expected, "{seen:?}");
    ms(time)
}

fn shown(spread: Spread, digits: usize) -> String {
    let Spread { low, median, high } = spread;
    format!("{median:.digits$} [{low:.digits$} {high:.digits$}]")
}
