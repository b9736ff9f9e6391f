//! What is measured: the agent's cycle in this process, from the scan to the encoded samples.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use steward_agent::Rounds;
use steward_agent::config::{Config, Span};
use steward_agent::output::text;
use steward_agent::scan::{Focus, Scanner};

use crate::workload::NODE;

/// The agent without its listener.
pub struct Subject {
    rounds: Rounds,
}

/// CPU time of one cycle.
#[derive(Clone, Copy)]
pub struct Cost {
    /// All of it.
    pub whole: Duration,
    /// The part that went into encoding.
    pub encoding: Duration,
}

impl Subject {
    /// An agent for the benchmark's node that has scanned nothing yet.
    pub fn new() -> Self {
        let mut config =
            Config { node: NODE.parse().ok(), cluster: "bench".parse().ok(), ..Config::default() };
        // Threads have an interval of their own and are no part of the budget.
        config.threads.interval = Span(Duration::ZERO);
        let scanner = Scanner::new(config.clone()).expect("cgroups");
        Self { rounds: Rounds::new(&config, scanner, None) }
    }

    /// One cycle.
    pub fn cycle(&mut self) -> Cost {
        let start = cpu();
        let snapshot = self.rounds.scan(Focus::All);
        let scanned = cpu();
        let body = text::write(&snapshot.samples()).expect("a body");
        let end = cpu();
        assert!(!body.is_empty(), "nothing was exported");
        Cost { whole: end - start, encoding: end - scanned }
    }
}

/// CPU time of this process: a scan may use threads of its own, and their work is work.
pub fn cpu() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a CPU clock");
    Duration::from(now)
}
