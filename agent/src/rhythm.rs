//! When scans and looks are due.
//!
//! Scans fall on multiples of the interval by the wall clock, so that all nodes of a parallel job
//! are disturbed at the same moment. Scans that take more CPU than their share are done less often.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// New jobs are looked at so often between scans.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A look at what changed may take one part in so many of the time; a last one, which cannot wait,
/// half of it.
const LOOK_SHARE: u32 = 10;

/// However cheap it is, a look does not follow another sooner than this.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// Why a look is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Some job is new.
    New,
    /// Something changed where jobs are.
    Changed,
    /// The last process of a step ended: its directory will be gone in a moment.
    Last,
}

/// The agent's beat.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    interval: Duration,
    aligned: bool,
    share: f64,
    period: Duration,
    next_scan: Instant,
    next_look: Instant,
    next_last: Instant,
    looked: Instant,
}

impl Rhythm {
    /// The first scan is due at once.
    #[must_use]
    pub fn new(interval: Duration, aligned: bool, share: f64, now: Instant) -> Self {
        let (next_scan, next_look, next_last, looked) = (now, now, now, now);
        let period = interval;
        Self { interval, aligned, share, period, next_scan, next_look, next_last, looked }
    }

    /// The time from scan to scan, as it is now.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// When the next scan is due.
    #[must_use]
    pub const fn next_scan(&self) -> Instant {
        self.next_scan
    }

    /// When a look for that reason is due.
    #[must_use]
    pub fn next_look(&self, reason: Reason) -> Instant {
        match reason {
            Reason::New => self.next_look.max(self.looked + LOOK_EVERY),
            Reason::Changed => self.next_look,
            Reason::Last => self.next_last,
        }
    }

    /// A scan is done that took so much CPU; `time` is the wall clock's `now`.
    pub fn scanned(&mut self, now: Instant, time: SystemTime, took: Duration) {
        self.period = self.stretched(took);
        // Not aligned, it keeps its distance from when this one was due, unless that is long ago.
        let due = self.next_scan.max(now.checked_sub(self.period).unwrap_or(now));
        self.next_scan =
            if self.aligned { now + until_multiple(time, self.period) } else { due + self.period };
        self.looked(now, took, Reason::New);
    }

    /// A look is done that took so much CPU.
    pub fn looked(&mut self, now: Instant, took: Duration, reason: Reason) {
        // A last look reads no new jobs.
        if reason != Reason::Last {
            self.looked = now;
        }
        self.next_last = now + took.max(LEAST_PAUSE);
        self.next_look = now + (took * LOOK_SHARE).max(LEAST_PAUSE);
    }

    /// The least multiple of the interval of which `took` is no more than its share.
    fn stretched(&self, took: Duration) -> Duration {
        let needed = took.as_secs_f64() / self.share / self.interval.as_secs_f64();
        // An interval is at least 100 ms and a scan has a deadline: far below any overflow.
        let times = (1..=MOST_STRETCH).find(|times| f64::from(*times) >= needed);
        self.interval * times.unwrap_or(MOST_STRETCH)
    }
}

/// No scan is put off for longer than this many intervals.
const MOST_STRETCH: u32 = 20;

/// How long it is until the wall clock shows a multiple of `period`.
fn until_multiple(time: SystemTime, period: Duration) -> Duration {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let over = since.checked_rem(period.as_nanos()).unwrap_or(0);
    let wait = period.as_nanos().saturating_sub(over);
    Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: f64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn scans_fall_on_multiples_of_the_interval() {
        let now = Instant::now();
        let mut rhythm = Rhythm::new(15 * SECOND, true, 0.1, now);
        assert_eq!(rhythm.next_scan(), now);
        rhythm.scanned(now, at(1_000_003.5), SECOND / 10);
        assert_eq!(rhythm.next_scan() - now, Duration::from_millis(1_500), "1,000,005 is next");
        rhythm.scanned(now, at(1_000_005.0), SECOND / 10);
        assert_eq!(rhythm.next_scan() - now, 15 * SECOND);
    }

    #[test]
    fn unaligned_scans_keep_their_distance() {
        let now = Instant::now();
        let mut rhythm = Rhythm::new(15 * SECOND, false, 0.1, now);
        rhythm.scanned(now + SECOND, at(1_000_003.5), SECOND / 10);
        assert_eq!(rhythm.next_scan() - now, 15 * SECOND);
        let late = now + 100 * SECOND;
        rhythm.scanned(late, at(0.0), SECOND / 10);
        assert_eq!(rhythm.next_scan(), late, "one that was missed is made up for once");
    }

    #[test]
    fn a_dear_scan_is_done_less_often_and_a_cheap_one_as_before() {
        let now = Instant::now();
        let mut rhythm = Rhythm::new(15 * SECOND, true, 0.1, now);
        for (took, periods) in [(0.1, 1), (1.5, 1), (1.6, 2), (4.4, 3), (1000.0, 20), (0.1, 1)] {
            rhythm.scanned(now, at(0.0), Duration::from_secs_f64(took));
            assert_eq!(rhythm.period(), 15 * SECOND * periods, "{took} s");
        }
    }

    #[test]
    fn looks_take_a_part_of_the_time_at_most() {
        let now = Instant::now();
        let mut rhythm = Rhythm::new(15 * SECOND, true, 0.1, now);
        rhythm.looked(now, Duration::from_millis(1), Reason::New);
        assert_eq!(rhythm.next_look(Reason::Changed) - now, LEAST_PAUSE);
        assert_eq!(rhythm.next_look(Reason::New) - now, LOOK_EVERY);
        rhythm.looked(now, Duration::from_millis(100), Reason::New);
        assert_eq!(rhythm.next_look(Reason::Changed) - now, SECOND);
        assert_eq!(rhythm.next_look(Reason::New) - now, SECOND);
        rhythm.looked(now, SECOND, Reason::New);
        assert_eq!(rhythm.next_look(Reason::New) - now, 10 * SECOND);
        assert_eq!(rhythm.next_look(Reason::Last) - now, SECOND, "it can wait less");
        let later = now + SECOND / 10;
        rhythm.looked(later, Duration::from_millis(1), Reason::Last);
        assert_eq!(rhythm.next_look(Reason::New) - now, LOOK_EVERY, "one for new jobs stays due");
    }
}
