//! The end of a job on this node, summed up for the log.

use std::time::Duration;

use steward_common::id::{JobId, NodeName};

use crate::collector::unix;
use crate::kernel::count::Count;
use crate::node::{JobSample, Peaks};
use crate::reading::Key;
use crate::run::Run;

/// What is left to say about a job that ended.
#[derive(Debug)]
pub struct Ending {
    node: NodeName,
    job: JobId,
    last: JobSample,
    peaks: Peaks,
}

impl Ending {
    /// The end of `run`; `None` if nothing was ever measured.
    #[must_use]
    pub fn of(key: &Key, run: &Run) -> Option<Self> {
        let last = run.last.clone()?;
        Some(Self { node: key.0.clone(), job: key.1, last, peaks: run.peaks })
    }

    /// One line, a field for each figure; what was not measured is not there. No user names: logs
    /// travel further than metrics.
    pub fn log(&self) {
        let last = &self.last;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let io = last.io;
        tracing::info!(
            node = %self.node,
            job = self.job.get(),
            sluid = last.sluid.map(tracing::field::display),
            uid = last.uid.map(|uid| uid.get()),
            cpus = last.cpus.map(|cpus| cpus.get()),
            covered_from = unix(last.covered_from),
            covered_until = unix(last.covered_until),
            cpu_seconds = seconds(last.cpu.total),
            memory_peak_bytes = self.peaks.memory,
            memory_limit_bytes = last.memory.limit.and_then(|limit| limit.at()).map(|at| at.get()),
            oom_kills = last.counts.get(&Count::MemoryOomKills),
            rss_peak_bytes = self.peaks.rss,
            processes_peak = self.peaks.processes,
            threads_peak = self.peaks.threads,
            open_files_peak = self.peaks.files,
            requested_read_bytes = io.map(|io| io.rchar),
            requested_write_bytes = io.map(|io| io.wchar),
            read_bytes = io.map(|io| io.read_bytes),
            write_bytes = io.map(|io| io.write_bytes),
            "job ended"
        );
    }
}
