//! When things are due: cron expressions on the clocks of the site's time zone.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Times by a cron expression: minute, hour, day of the month, month, day of the week; seconds may
/// stand in front. `@hourly`, `@daily`, `@weekly` and `@monthly` are understood.
///
/// When clocks go forward, a time of day that does not exist is made up for at the end of the gap;
/// when they go back, one that comes twice counts once. What is due every so many minutes is due
/// then too.
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Never due without one.
    cron: Option<Cron>,
    text: String,
}

impl Schedule {
    /// A schedule that is written in the program. One that is no cron expression would never be
    /// due; the test of the default settings sees to it that there is none.
    pub(crate) fn constant(text: &'static str) -> Self {
        text.parse().unwrap_or_else(|_| Self { cron: None, text: text.to_owned() })
    }

    /// The first time after `now`; `None` if there is none, as for 30 February.
    #[must_use]
    pub fn next_after(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let now = now.to_zoned(zone.clone());
        self.cron.as_ref()?.find_next_occurrence(&now, false).ok().map(|next| next.timestamp())
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(cron) => Ok(Self { cron: Some(cron), text: text.to_owned() }),
            Err(why) => Err(format!(
                "expected a cron expression such as \"17 * * * *\" (minute, hour, day, month, \
                 weekday), found {text:?}: {why}"
            )),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What croner makes of it is a page long and says no more.
impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// A schedule on its way through time. It reads no clock: whoever asks says what time it is.
#[derive(Clone, Debug)]
pub struct Plan {
    schedule: Schedule,
    zone: TimeZone,
    /// When it was asked last.
    asked: Timestamp,
    next: Option<Timestamp>,
}

impl Plan {
    /// Begins at `now`; a time that is over by then is not made up for.
    #[must_use]
    pub fn new(schedule: Schedule, zone: TimeZone, now: Timestamp) -> Self {
        let next = schedule.next_after(now, &zone);
        Self { schedule, zone, asked: now, next }
    }

    /// The next time that it is due.
    #[must_use]
    pub const fn next(&self) -> Option<Timestamp> {
        self.next
    }

    /// Whether it has become due since it was asked last. However many times went by meanwhile, as
    /// on a machine that slept, they count once.
    pub fn is_due(&mut self, now: Timestamp) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        // A clock that was put back must not leave it waiting for what was the future.
        if due || now < self.asked {
            self.next = self.schedule.next_after(now, &self.zone);
        }
        self.asked = now;
        due
    }

    /// How long to sleep before asking again: until it is due, but no longer than `most`, because
    /// a clock may be set meanwhile.
    #[must_use]
    pub fn pause(&self, now: Timestamp, most: Duration) -> Duration {
        let until = self.next.map_or(most, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or(Duration::ZERO)
        });
        until.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The times from `from` up to `to`, as people in Berlin read them.
    fn times(schedule: &str, from: &str, to: &str) -> Vec<String> {
        let (schedule, zone): (Schedule, _) = (schedule.parse().unwrap(), berlin());
        let mut found = Vec::new();
        let mut now = at(from);
        while let Some(next) = schedule.next_after(now, &zone).filter(|next| *next < at(to)) {
            found.push(next.to_zoned(zone.clone()).strftime("%d %H:%M %Z").to_string());
            now = next;
        }
        found
    }

    #[test]
    fn an_hour_that_is_left_out_in_spring_costs_no_run_and_doubles_none() {
        // 2026-03-29, 02:00 CET is 03:00 CEST.
        let day = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
        assert_eq!(times("30 2 * * *", day.0, day.1), ["29 03:00 CEST"]);
        assert_eq!(times("30 4 * * *", day.0, day.1), ["29 04:30 CEST"]);
        let hourly = times("17 * * * *", day.0, day.1);
        assert_eq!(hourly.len(), 23);
        assert_eq!(hourly[1..4], ["29 01:17 CET", "29 03:17 CEST", "29 04:17 CEST"]);
    }

    #[test]
    fn an_hour_that_comes_twice_in_autumn_runs_daily_work_once_and_hourly_work_twice() {
        // 2026-10-25, 03:00 CEST is 02:00 CET.
        let day = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        assert_eq!(times("30 2 * * *", day.0, day.1), ["25 02:30 CEST"]);
        let hourly = times("17 * * * *", day.0, day.1);
        assert_eq!(hourly.len(), 25);
        assert_eq!(hourly[2..4], ["25 02:17 CEST", "25 02:17 CET"]);
    }

    #[test]
    fn a_night_is_midnight_of_the_site_whatever_the_season() {
        let zone = berlin();
        let schedule: Schedule = "0 0 * * *".parse().unwrap();
        for (now, next) in [
            ("2026-01-15T12:00:00Z", "2026-01-15T23:00:00Z"),
            ("2026-07-15T12:00:00Z", "2026-07-15T22:00:00Z"),
        ] {
            assert_eq!(schedule.next_after(at(now), &zone), Some(at(next)));
        }
    }

    #[test]
    fn seconds_may_be_given_and_nonsense_is_named() {
        assert_eq!(
            times("*/20 * * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z").len(),
            2
        );
        assert_eq!("@daily".parse::<Schedule>().unwrap().to_string(), "@daily");
        for bad in ["", "hourly", "61 * * * *", "* * * *", "17 * * * * * * *"] {
            let message = bad.parse::<Schedule>().unwrap_err();
            assert!(message.contains("cron expression"), "{bad:?}: {message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn times_that_went_by_count_once_and_the_next_is_ahead() {
        let start = at("2026-05-01T10:00:00Z");
        let mut plan = Plan::new("17 * * * *".parse().unwrap(), berlin(), start);
        assert_eq!(plan.next(), Some(at("2026-05-01T10:17:00Z")));
        assert!(!plan.is_due(at("2026-05-01T10:16:59Z")));
        assert!(plan.is_due(at("2026-05-01T10:17:00Z")));
        assert!(!plan.is_due(at("2026-05-01T10:17:01Z")), "once");
        assert!(plan.is_due(at("2026-05-01T19:30:00Z")), "the machine slept");
        assert_eq!(plan.next(), Some(at("2026-05-01T20:17:00Z")));
    }

    #[test]
    fn a_clock_put_back_does_not_leave_it_waiting_for_the_past_future() {
        let mut plan =
            Plan::new("17 * * * *".parse().unwrap(), berlin(), at("2031-01-01T00:00:00Z"));
        assert!(!plan.is_due(at("2026-05-01T10:00:00Z")));
        assert_eq!(plan.next(), Some(at("2026-05-01T10:17:00Z")));
    }

    #[test]
    fn a_pause_ends_at_the_time_and_never_lasts_too_long() {
        let now = at("2026-05-01T10:16:50Z");
        let plan = Plan::new("17 * * * *".parse().unwrap(), berlin(), now);
        let most = Duration::from_secs(30);
        assert_eq!(plan.pause(now, most), Duration::from_secs(10));
        assert_eq!(plan.pause(at("2026-05-01T10:00:00Z"), most), most);
        assert_eq!(plan.pause(at("2026-05-01T11:00:00Z"), most), Duration::ZERO);
        let never = Plan::new("0 0 30 2 *".parse().unwrap(), berlin(), now);
        assert_eq!((never.next(), never.pause(now, most)), (None, most));
    }
}
