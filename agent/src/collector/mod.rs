//! From what a scan found to samples with catalogue names. No file names here.
//!
//! To add a collector: one file, its `mod` line, its line in [`COLLECTORS`].

mod cpu;
mod files;
mod gpu;
mod info;
mod io;
mod memory;
pub mod own;
mod process;

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
    Collector { name: "cpu", collect: cpu::collect },
    Collector { name: "files", collect: files::collect },
    Collector { name: "gpu", collect: gpu::collect },
    Collector { name: "info", collect: info::collect },
    Collector { name: "io", collect: io::collect },
    Collector { name: "memory", collect: memory::collect },
    Collector { name: "process", collect: process::collect },
];

/// All samples about the jobs of `node`.
pub fn collect(node: &Node, out: &mut Samples) {
    for job in &node.jobs {
        for collector in COLLECTORS {
            (collector.collect)(job, out);
        }
    }
}

/// A count as a sample value. Prometheus has no other number; beyond 2^53 the last digits go.
#[allow(clippy::cast_precision_loss, reason = "the exposition format has only f64")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}
