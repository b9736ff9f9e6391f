//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until `condition` gives something.
///
/// # Panics
/// If it has not by `patience`; `what` says what was waited for.
pub fn until<T>(what: &str, patience: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {} s in vain: {what}", patience.as_secs());
        thread::sleep(PAUSE);
    }
}

/// Looks until `condition` holds.
///
/// # Panics
/// If it does not by `patience`.
pub fn until_true(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) {
    until(what, patience, || condition().then_some(()));
}
