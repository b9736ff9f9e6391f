//! What a cycle of the agent costs, against a bare reader of the same files in the same run.

mod bare;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use steward_agent::Rounds;
use steward_agent::config::Config;
use steward_agent::output::exposition::{Format, encode};
use steward_agent::scan::{Focus, Scanner};

const NODE: &str = "stwbench";
const SIZES: [(u32, u32, f64); 2] = [(64, 16, 1.4), (128, 80, 1.3)];
const CYCLES: usize = 15;

/// CPU time of this thread.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a CPU clock");
    Duration::from(now)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn workload(jobs: u32, processes: u32) -> Child {
    let script = steward_tests::directory().join("bench/workload.py");
    let mut child = Command::new("/usr/bin/python3")
        .arg(script)
        .args([jobs.to_string(), processes.to_string(), NODE.to_owned()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("READY");
    assert_eq!(line.trim(), "READY", "the workload did not start: run as root");
    child
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).expect("a number").to_owned()
}

fn main() {
    println!("CPU of one cycle, median of {CYCLES}, alternated; ratio to the bare reader");
    println!("jobs x processes      bare     agent  (encoding)   ratio   limit   resident");
    for (jobs, processes, limit) in SIZES {
        let mut load = workload(jobs, processes);
        let config =
            Config { node: NODE.parse().ok(), cluster: "bench".parse().ok(), ..Config::default() };
        let scanner = Scanner::new(config.clone()).expect("cgroups");
        let mut rounds = Rounds::new(&config, scanner, None);
        let mut times = (Vec::new(), Vec::new(), Vec::new());
        for cycle in 0..CYCLES + 3 {
            let start = cpu();
            let seen = bare::cycle(NODE);
            let middle = cpu();
            let snapshot = rounds.scan(Focus::All);
            let scanned = cpu();
            let body = encode(&snapshot.samples(), Format::Protobuf).expect("a body");
            let end = cpu();
            let expected = u64::from(jobs) * u64::from(processes);
            assert_eq!((seen.jobs, seen.processes), (u64::from(jobs), expected), "{seen:?}");
            assert!(!body.is_empty());
            // The first cycles fill caches; what counts is one without changes.
            if cycle >= 3 {
                times.0.push(middle - start);
                times.1.push(end - middle);
                times.2.push(end - scanned);
            }
        }
        let (bare, agent, encoding) = (median(times.0), median(times.1), median(times.2));
        println!(
            "{jobs:4} x {processes:<4} {:>15.1} ms {:>6.1} ms {:>6.1} ms {:>6.2}x {limit:>6.2}x {:>7} KiB",
            bare.as_secs_f64() * 1e3,
            agent.as_secs_f64() * 1e3,
            encoding.as_secs_f64() * 1e3,
            agent.as_secs_f64() / bare.as_secs_f64(),
            resident()
        );
        drop(load.stdin.take());
        load.wait().expect("the workload ends");
    }
}
