//! Resident memory of the real program, idle and with many processes to look at.

use std::time::{Duration, Instant};

use crate::program::{CURL, PROMETHEUS, Program};
use crate::report::Report;
use crate::workload::Workload;

/// What it is called, jobs, processes of each, and the most that it may take in MiB.
const SIZES: [(&str, u32, u32, f64); 2] =
    [("no jobs", 0, 0, 10.0), ("10,240 processes", 128, 80, 16.0)];
/// After how many scans it is measured, and who has asked until then. Prometheus first: what the
/// other format takes stays.
const READERS: [(f64, &str, &str); 2] =
    [(20.0, PROMETHEUS, "OpenMetrics"), (25.0, CURL, "then text 0.0.4")];

/// Measures and prints.
pub fn run(report: &mut Report) {
    println!("Resident memory of steward-agent (release) after 20 scans, scraped every second\n");
    for (what, jobs, processes, limit) in SIZES {
        let _load = Workload::of(jobs, processes);
        let agent = Program::start("1s");
        for (scans, accept, reader) in READERS {
            let mut next = Instant::now();
            while agent.scans(accept).expect("it answers") < scans {
                next += Duration::from_secs(1);
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            let mib = agent.resident() / 1024.0;
            println!(
                "  {what:<17} {reader:<16} {mib:6.1} MiB   limit {limit:4.0} MiB   {}",
                report.hold(mib, limit)
            );
        }
    }
}
