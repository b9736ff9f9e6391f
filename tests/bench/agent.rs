//! What the agent costs, in numbers, each with its limit beside it: run it as `tests/bench/agent`.
//!
//! Each part is a process of its own, so that no part finds the memory or threads of another.

mod bare;
mod child;
mod cycle;
mod growth;
mod linear;
mod memory;
mod noise;
mod program;
mod report;
mod subject;
mod syscalls;
mod workload;

use std::process::ExitCode;

use report::Report;

/// The parts in the order in which they run.
const PARTS: [&str; 6] = ["cycle", "linear", "syscalls", "memory", "growth", "noise"];

fn main() -> ExitCode {
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let long = options.iter().any(|option| option == "--long");
    let mut report = Report::default();
    match wanted.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return each(&PARTS, &options),
        ["cycle"] => cycle::run(),
        ["linear"] => linear::run(),
        ["syscalls"] => syscalls::run(&mut report),
        ["memory"] => memory::run(&mut report),
        ["growth"] => growth::run(&mut report),
        ["noise"] => noise::run(long),
        [syscalls::TRACED] => syscalls::traced(),
        ref several => return each(several, &options),
    }
    if report.is_over() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs `parts` one after the other; all of them, even if one is over its limit.
fn each(parts: &[&str], options: &[String]) -> ExitCode {
    let own = std::env::current_exe().expect("a path");
    let failed: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| {
            assert!(PARTS.contains(part), "there is no part '{part}'");
            let status = child::command(&own).arg(part).args(options).status();
            println!();
            !status.expect("itself").success()
        })
        .collect();
    if failed.is_empty() {
        println!("Every limit that other work on this machine cannot spoil is kept.");
        return ExitCode::SUCCESS;
    }
    println!("Failed, or over a limit: {}.", failed.join(", "));
    ExitCode::FAILURE
}
