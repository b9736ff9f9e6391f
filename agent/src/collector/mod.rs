//! From what a scan found to samples with catalogue names. No file names here.
//!
//! To add a collector: one file, its `mod` line, its line in [`COLLECTORS`].

mod counts;
mod coverage;
mod cpu;
mod files;
mod gpu;
mod info;
mod io;
mod memory;
pub mod own;
mod process;
mod threads;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::node::{JobSample, Node};
use crate::sample::Samples;

/// Turns one aspect of a job into samples.
pub struct Collector {
    /// Its name, for messages and documentation.
    pub name: &'static str,
    /// Total and pure: what the scan could not measure is left out, never made up.
    pub collect: fn(&JobSample, &mut Samples),
}

/// Every collector, in alphabetical order.
pub const COLLECTORS: &[Collector] = &[
    Collector { name: "counts", collect: counts::collect },
    Collector { name: "coverage", collect: coverage::collect },
    Collector { name: "cpu", collect: cpu::collect },
    Collector { name: "files", collect: files::collect },
    Collector { name: "gpu", collect: gpu::collect },
    Collector { name: "info", collect: info::collect },
    Collector { name: "io", collect: io::collect },
    Collector { name: "memory", collect: memory::collect },
    Collector { name: "process", collect: process::collect },
    Collector { name: "threads", collect: threads::collect },
];

/// All samples about the jobs of `node`.
pub fn collect(node: &Node, out: &mut Samples) {
    for job in &node.jobs {
        for collector in COLLECTORS {
            (collector.collect)(job, out);
        }
    }
}

/// Seconds since 1970; a clock before that is a clock that is not set.
pub(crate) fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// A count as a sample value. Prometheus has no other number; beyond 2^53 the last digits go.
#[allow(clippy::cast_precision_loss, reason = "the exposition format has only f64")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}
