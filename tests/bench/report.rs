//! How numbers are shown: medians with quartiles, and a plain word beside each limit.

use std::time::Duration;

/// Which limits were kept.
#[derive(Default)]
pub struct Report {
    over: bool,
}

impl Report {
    /// The word for a value whose limit does not depend on what else the machine does: going over
    /// it fails the run.
    pub fn hold(&mut self, value: f64, limit: f64) -> &'static str {
        self.over |= value > limit;
        mark(value, limit)
    }

    /// Whether a value that [`Self::hold`] saw was over its limit.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

/// The word for a value that other work on the machine may spoil: it is shown, and fails nothing.
pub fn mark(value: f64, limit: f64) -> &'static str {
    if value > limit { "OVER" } else { "OK" }
}

/// Median and quartiles.
#[derive(Clone, Copy)]
pub struct Spread {
    /// A quarter of the values are below.
    pub low: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters.
    pub high: f64,
}

impl Spread {
    /// Of `values`, of which there must be some.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

/// Milliseconds.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
