//! A stretch of time, and how much of a job falls into it.

use crate::time::Timestamp;

/// From one moment up to, not including, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    /// `None` unless it begins before it ends.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Window> {
        (from < to).then_some(Window { from, to })
    }

    /// Its first moment.
    #[must_use]
    pub fn from(self) -> Timestamp {
        self.from
    }

    /// The first moment after it.
    #[must_use]
    pub fn to(self) -> Timestamp {
        self.to
    }

    /// Its length in seconds.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.to.get().saturating_sub(self.from.get())
    }

    /// Whether the moment is in it.
    #[must_use]
    pub fn holds(self, moment: Timestamp) -> bool {
        self.from <= moment && moment < self.to
    }

    /// What is in both.
    #[must_use]
    pub fn overlap(self, other: Window) -> Option<Window> {
        Window::new(self.from.max(other.from), self.to.min(other.to))
    }

    /// The share of `whole` that falls into this window, from 0 to 1.
    #[must_use]
    pub fn share_of(self, whole: Window) -> f64 {
        self.overlap(whole).map_or(0.0, |part| part.seconds() as f64 / whole.seconds() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: i64, to: i64) -> Window {
        Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap()
    }

    #[test]
    fn a_job_that_crosses_the_border_is_divided() {
        let (first, second, job) = (window(0, 100), window(100, 200), window(60, 160));
        assert!((first.share_of(job) - 0.4).abs() < 1e-12);
        assert!((second.share_of(job) - 0.6).abs() < 1e-12);
        assert!(window(200, 300).share_of(job).abs() < 1e-12);
    }

    #[test]
    fn the_end_is_not_in_it_and_an_empty_one_is_none() {
        assert!(window(0, 10).holds(Timestamp::new(0)) && !window(0, 10).holds(Timestamp::new(10)));
        assert_eq!(Window::new(Timestamp::new(5), Timestamp::new(5)), None);
    }
}
