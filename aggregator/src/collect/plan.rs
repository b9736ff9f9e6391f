//! Which stretches of time sacct is asked for.
//!
//! Each collection goes from a little before the end of the last one up to now. Beyond that it
//! fills gaps, and asks once more for every day when nothing of that day can still be on its way
//! to the database. Time is cut into UTC days, because the archive's files are.

use std::time::Duration;

use steward_common::stretches::Stretches;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::archive::Day;
use crate::archive::manifest::Cluster;

/// After every moment.
const FOREVER: Timestamp = Timestamp::new(i64::MAX);

/// What decides the plan.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The moment of the collection.
    pub now: Timestamp,
    /// From when on jobs are wanted.
    pub since: Timestamp,
    /// How far before the end of the last collection to begin.
    pub overlap: Duration,
    /// How long after its end a day may still change.
    pub grace: Duration,
}

/// The part of a collection that falls on one UTC day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The day.
    pub day: Day,
    /// What of it is asked for. A run belongs to the window in which it ended.
    pub windows: Vec<Window>,
    /// Whether this is the part that reaches up to now, and so has the runs that have not ended.
    pub is_last: bool,
}

/// The parts, oldest first. Never empty: what happens now is always asked for.
#[must_use]
pub fn units(cluster: &Cluster, terms: Terms) -> Vec<Unit> {
    let wanted = wanted(cluster, terms);
    let mut units: Vec<Unit> = Vec::new();
    for window in wanted.windows() {
        for day in Day::touched(*window) {
            let Some(part) = day.window().and_then(|day| day.overlap(*window)) else { continue };
            match units.last_mut() {
                Some(unit) if unit.day == day => unit.windows.push(part),
                _ => units.push(Unit { day, windows: vec![part], is_last: false }),
            }
        }
    }
    if let Some(last) = units.last_mut() {
        last.is_last = true;
    }
    units
}

fn wanted(cluster: &Cluster, terms: Terms) -> Stretches {
    let mut wanted = Stretches::default();
    let mut covered = cluster.covered.clone();
    // What a clock that was wrong has collected of the future is still to come.
    if let Some(future) = Window::new(terms.now, FOREVER) {
        covered.remove(future);
    }
    // A second at least, so that a clock that stands still does not make an empty plan.
    let until = terms.now.after(Duration::from_secs(1));
    let mut add = |from: Timestamp, to: Timestamp| {
        if let Some(window) = Window::new(from, to) {
            wanted.add(window);
        }
    };
    match covered.last() {
        Some(last) => {
            // The time since the last collection, however long ago that was.
            add(last.min(terms.now).before(terms.overlap), until);
            let since = terms.since.min(covered.first().unwrap_or(terms.since));
            if let Some(all) = Window::new(since, until) {
                for gap in covered.missing(all).windows() {
                    add(gap.from(), gap.to());
                }
                for day in Day::touched(all) {
                    let over = day.end().after(terms.grace) <= terms.now;
                    let settled = Window::new(day.start().max(since), day.end())
                        .is_none_or(|day| cluster.settled.holds(day));
                    if over && !settled {
                        add(day.start().max(since), day.end());
                    }
                }
            }
        }
        None => add(terms.since.min(terms.now), until),
    }
    wanted
}

/// Enters what was collected.
pub fn enter(cluster: &mut Cluster, units: &[Unit], terms: Terms) {
    if let Some(future) = Window::new(terms.now, FOREVER) {
        cluster.covered.remove(future);
        cluster.settled.remove(future);
    }
    for window in units.iter().flat_map(|unit| &unit.windows) {
        if let Some(known) = Window::new(window.from(), window.to().min(terms.now)) {
            cluster.covered.add(known);
            if known.to().after(terms.grace) <= terms.now {
                cluster.settled.add(known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    fn terms(now: i64, since: i64) -> Terms {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        let (now, since) = (Timestamp::new(now), Timestamp::new(since));
        Terms { now, since, overlap: hours(1), grace: hours(6) }
    }

    fn asked(cluster: &Cluster, terms: Terms) -> Vec<(i64, i64)> {
        let units = units(cluster, terms);
        assert!(units.last().unwrap().is_last);
        assert_eq!(units.iter().filter(|unit| unit.is_last).count(), 1);
        let windows = units.iter().flat_map(|unit| &unit.windows);
        windows.map(|window| (window.from().get(), window.to().get())).collect()
    }

    fn collect(cluster: &mut Cluster, terms: Terms) {
        let units = units(cluster, terms);
        enter(cluster, &units, terms);
    }

    #[test]
    fn the_first_collection_goes_back_as_far_as_wanted_day_by_day() {
        let cluster = Cluster::default();
        let now = 10 * DAY + 2 * HOUR;
        assert_eq!(
            asked(&cluster, terms(now, 9 * DAY)),
            [(9 * DAY, 10 * DAY), (10 * DAY, now + 1)]
        );
    }

    #[test]
    fn the_next_goes_from_an_hour_before_the_last() {
        let mut cluster = Cluster::default();
        let first = terms(10 * DAY + 10 * HOUR, 10 * DAY);
        collect(&mut cluster, first);
        let next = terms(10 * DAY + 11 * HOUR, 10 * DAY);
        let expected = [(10 * DAY + 9 * HOUR, 10 * DAY + 11 * HOUR + 1)];
        assert_eq!(asked(&cluster, next), expected);
    }

    #[test]
    fn today_is_never_final_and_a_past_day_is_asked_for_once_more_after_the_grace() {
        let mut cluster = Cluster::default();
        collect(&mut cluster, terms(10 * DAY + 23 * HOUR, 10 * DAY));
        // 01:00 of the next day: only what is new.
        let night = terms(11 * DAY + HOUR, 10 * DAY);
        let expected = [(10 * DAY + 22 * HOUR, 11 * DAY), (11 * DAY, 11 * DAY + HOUR + 1)];
        assert_eq!(asked(&cluster, night), expected);
        collect(&mut cluster, night);
        let day = Day::of(Timestamp::new(10 * DAY));
        assert!(!cluster.is_final(day));
        // 06:00: the grace is over, the whole day is asked for again, and is final.
        let morning = terms(11 * DAY + 6 * HOUR, 10 * DAY);
        assert_eq!(asked(&cluster, morning)[0], (10 * DAY, 11 * DAY));
        collect(&mut cluster, morning);
        assert!(cluster.is_final(day) && !cluster.is_final(day.next()));
        let later = terms(11 * DAY + 7 * HOUR, 10 * DAY);
        assert_eq!(asked(&cluster, later).len(), 1);
    }

    #[test]
    fn a_gap_is_filled_even_if_it_is_older_than_wanted() {
        let mut cluster = Cluster::default();
        collect(&mut cluster, terms(10 * DAY + HOUR, 10 * DAY));
        let after_a_week = terms(17 * DAY + HOUR, 16 * DAY);
        let windows = asked(&cluster, after_a_week);
        assert_eq!(windows[0], (10 * DAY, 11 * DAY));
        assert_eq!(windows.len(), 8);
        collect(&mut cluster, after_a_week);
        assert_eq!(cluster.covered.windows().len(), 1);
    }

    #[test]
    fn earlier_days_can_be_asked_for_later() {
        let mut cluster = Cluster::default();
        collect(&mut cluster, terms(10 * DAY + 8 * HOUR, 10 * DAY));
        let windows = asked(&cluster, terms(10 * DAY + 8 * HOUR, 7 * DAY));
        assert_eq!(windows[0], (7 * DAY, 8 * DAY));
        assert_eq!(*windows.last().unwrap(), (10 * DAY + 7 * HOUR, 10 * DAY + 8 * HOUR + 1));
        assert_eq!(windows.len(), 4);
    }

    #[test]
    fn a_clock_that_went_back_still_asks_for_now() {
        let mut cluster = Cluster::default();
        collect(&mut cluster, terms(10 * DAY + 8 * HOUR, 10 * DAY));
        let windows = asked(&cluster, terms(10 * DAY + 3 * HOUR, 10 * DAY));
        assert!(windows.contains(&(10 * DAY + 2 * HOUR, 10 * DAY + 3 * HOUR + 1)), "{windows:?}");
    }
}
