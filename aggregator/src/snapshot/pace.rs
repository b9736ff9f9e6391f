//! How often slurmctld is asked.

use std::time::Duration;

/// However slow it is, it is asked again after this, unless the interval is longer.
const LONGEST: Duration = Duration::from_secs(300);

/// From the begin of one snapshot to the next: the interval, or as much longer as it takes for
/// asking to be no more than `share` of the time.
#[must_use]
pub fn pause(interval: Duration, share: f64, took: Duration) -> Duration {
    let stretched = Duration::try_from_secs_f64(took.as_secs_f64() / share).unwrap_or(LONGEST);
    stretched.min(LONGEST).max(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_controller_is_asked_less_often() {
        let seconds = Duration::from_secs;
        for (interval, took, expected) in
            [(30, 1, 30), (30, 3, 30), (30, 6, 60), (30, 29, 290), (30, 100, 300), (600, 100, 600)]
        {
            let next = pause(seconds(interval), 0.1, seconds(took));
            assert_eq!(next, seconds(expected), "{interval} {took}");
        }
        assert_eq!(pause(seconds(30), 1e-300, seconds(1)), LONGEST);
    }
}
