//! System calls of a cycle, counted by strace: what a process and what a job adds.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::child;
use crate::report::Report;
use crate::subject::Subject;
use crate::workload::Workload;

/// Two sizes that differ in processes only, and two that differ in jobs only.
const PROCESSES: [(u32, u32); 2] = [(24, 4), (24, 16)];
const JOBS: [(u32, u32); 2] = [(8, 8), (40, 8)];
const MOST_A_PROCESS: f64 = 8.0;
const MOST_A_JOB: f64 = 70.0;

/// Long enough for all that the agent does every so many cycles to happen twice.
const CYCLES: usize = 48;
/// Cycles that learn what later ones know.
const WARM_UP: usize = 4;

/// Looked up before each cycle; seen in the trace it says where one begins. It is not there.
const MARK: &str = "/steward-bench-cycle";

/// The name under which this program runs itself below strace.
pub const TRACED: &str = "traced-cycles";

/// What is traced: cycles and nothing else.
pub fn traced() {
    let mut agent = Subject::new();
    for _ in 0..=CYCLES {
        let _absent = std::fs::metadata(MARK);
        agent.cycle();
    }
}

/// Calls of a cycle at one size.
struct Calls {
    /// In the cycle with the fewest: nothing has changed, nothing is looked at anew.
    least: f64,
    /// In the mean, with what is looked at anew every so many cycles.
    mean: f64,
}

/// Measures and prints.
pub fn run(report: &mut Report) {
    println!("System calls of a cycle without changes, by strace, over {CYCLES} cycles");
    println!("  mean: with what is looked at anew every so many cycles\n");
    let mut load = Workload::empty();
    let mut slope = |[small, large]: [(u32, u32); 2], more: u32| {
        let calls = [small, large].map(|(jobs, processes)| {
            load.size(jobs, processes);
            count()
        });
        let [few, many] = &calls;
        Calls {
            least: (many.least - few.least) / f64::from(more),
            mean: (many.mean - few.mean) / f64::from(more),
        }
    };
    let [(jobs, few), (_, many)] = PROCESSES;
    let process = slope(PROCESSES, jobs * (many - few));
    let [(few, processes), (many, _)] = JOBS;
    let with_processes = slope(JOBS, many - few);
    let job = Calls {
        least: with_processes.least - f64::from(processes) * process.least,
        mean: with_processes.mean - f64::from(processes) * process.mean,
    };
    for (what, calls, limit) in [("a process", process, MOST_A_PROCESS), ("a job", job, MOST_A_JOB)]
    {
        println!(
            "  {what:<10} {:6.1}   limit {limit:4.0}   {:<4}   (mean {:.1})",
            calls.least,
            report.hold(calls.least, limit),
            calls.mean
        );
    }
}

/// Runs cycles below strace and counts.
fn count() -> Calls {
    let own = std::env::current_exe().expect("a path");
    // Into a file: what strace writes to a pipe it writes line by line, which takes twice as long.
    let trace = tempfile::NamedTempFile::new().expect("a file");
    let status = child::command("strace")
        .args(["-f", "-qq", "-s", "64", "-e", "signal=none", "-o"])
        .arg(trace.path())
        // That it ends with strace must be said once more: strace is its parent.
        .args(["setpriv", "--pdeathsig", "KILL"])
        .arg(own)
        .arg(TRACED)
        .stdin(Stdio::null())
        .status();
    assert!(status.expect("strace").success(), "strace failed");
    let mut cycles: Vec<u32> = Vec::new();
    for line in BufReader::new(trace).split(b'\n') {
        let line = String::from_utf8_lossy(&line.expect("a trace")).into_owned();
        if line.contains(MARK) {
            cycles.push(0);
        } else if let Some(calls) = cycles.last_mut() {
            // The second half of a call that another thread came in between is no second call.
            *calls += u32::from(!line.contains(" resumed>"));
        }
    }
    // The last one has the end of the program in it.
    assert_eq!(cycles.pop().and(Some(cycles.len())), Some(CYCLES), "cycles in the trace");
    let counted: Vec<f64> = cycles.into_iter().skip(WARM_UP).map(f64::from).collect();
    let length = f64::from(u32::try_from(counted.len()).expect("a few"));
    Calls {
        least: counted.iter().copied().fold(f64::INFINITY, f64::min),
        mean: counted.iter().sum::<f64>() / length,
    }
}
