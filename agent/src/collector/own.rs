//! The agent about itself.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use steward_common::metric;

use super::{float, unix};
use crate::kernel::error::Reason;
use crate::node::Node;
use crate::publish::Pushes;
use crate::sample::Samples;
use crate::scan::Scan;

/// Totals since the agent started.
#[derive(Debug)]
pub struct Own {
    started: SystemTime,
    scans: u64,
    errors: BTreeMap<Reason, u64>,
    last: (SystemTime, Duration),
    looks: u64,
    skipped: u64,
    stuck: u64,
    dropped: u64,
    period: Duration,
}

impl Own {
    /// An agent that started now.
    #[must_use]
    pub fn new(started: SystemTime, period: Duration) -> Self {
        let errors = Reason::ALL.into_iter().map(|reason| (reason, 0)).collect();
        let last = (started, Duration::ZERO);
        Self { started, scans: 0, errors, last, looks: 0, skipped: 0, stuck: 0, dropped: 0, period }
    }

    /// Takes note of one scan.
    pub fn note(&mut self, began: SystemTime, took: Duration, scan: &Scan) {
        self.scans += 1;
        self.last = (began, took);
        self.skipped = scan.skipped;
        self.count(scan);
    }

    /// The time from scan to scan is this from now on.
    pub const fn set_period(&mut self, period: Duration) {
        self.period = period;
    }

    /// The time from scan to scan.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Takes note of series that there was no room for.
    pub const fn note_dropped(&mut self, series: u64) {
        self.dropped = self.dropped.saturating_add(series);
    }

    /// Takes note of a look between scans.
    pub fn note_look(&mut self, scan: &Scan) {
        self.looks += 1;
        self.count(scan);
    }

    fn count(&mut self, scan: &Scan) {
        self.stuck = scan.stuck;
        for (reason, count) in scan.errors.counts() {
            *self.errors.entry(reason).or_insert(0) += count;
        }
    }

    /// The self-metrics under the name of `node`; `series` is how many the jobs have. Several nodes
    /// on one host share an agent, and with it these totals.
    pub fn collect(&self, node: &Node, series: usize, pushes: Option<&Pushes>, out: &mut Samples) {
        let (began, took) = self.last;
        let running = || node.jobs.iter().filter(|job| !job.ended);
        let processes: u64 =
            running().filter_map(|job| job.processes.as_ref()).map(|p| p.count).sum();
        out.agent(&metric::AGENT_BUILD_INFO, &[&env!("CARGO_PKG_VERSION")], 1.0);
        out.agent(&metric::AGENT_START_TIME, &[], unix(self.started));
        out.agent(&metric::AGENT_LAST_SCAN_TIMESTAMP, &[], unix(began));
        out.agent(&metric::AGENT_LAST_SCAN_DURATION, &[], took.as_secs_f64());
        out.agent(&metric::AGENT_SCANS, &[], float(self.scans));
        out.agent(&metric::AGENT_INTERVAL, &[], self.period.as_secs_f64());
        out.agent(&metric::AGENT_SERIES_DROPPED, &[], float(self.dropped));
        out.agent(&metric::AGENT_LOOKS, &[], float(self.looks));
        out.agent(&metric::AGENT_SKIPPED_JOBS, &[], float(self.skipped));
        out.agent(&metric::AGENT_STUCK_READERS, &[], float(self.stuck));
        out.agent(&metric::AGENT_JOBS, &[], float(running().map(|_| 1).sum()));
        out.agent(&metric::AGENT_PROCESSES, &[], float(processes));
        out.agent(&metric::AGENT_LEFTOVERS, &[], float(node.leftovers));
        out.agent(&metric::AGENT_SERIES, &[], float(series.try_into().unwrap_or(u64::MAX)));
        let failed = pushes.map_or(0, |pushes| pushes.failed.load(Ordering::Relaxed));
        for (reason, count) in &self.errors {
            let count = if *reason == Reason::Push { failed } else { *count };
            out.agent(&metric::AGENT_ERRORS, &[reason], float(count));
        }
        if let Some(pushes) = pushes {
            let ok = pushes.ok.load(Ordering::Relaxed);
            out.agent(&metric::AGENT_PUSHES, &[&"ok"], float(ok));
            out.agent(&metric::AGENT_PUSHES, &[&"failed"], float(failed));
        }
    }
}
