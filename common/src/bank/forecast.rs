//! When an account will have used up what it may use, if it goes on as it did.

use super::day::Day;
use super::units::Units;

/// What is to be expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Service units used on a day.
    pub per_day: f64,
    /// The day on which nothing is left; `None` if nothing is used, or not within the calendar.
    pub exhausted: Option<Day>,
    /// Whether that is before the end of the proposal.
    pub before_end: Option<bool>,
    /// What will be left at the end; `None` if that is not to come any more.
    pub left_at_end: Option<f64>,
}

impl Forecast {
    /// Goes on with what was `used` in the last `days`; `None` if no day has passed.
    #[must_use]
    pub fn new(used: Units, days: i64, left: Units, today: Day, end: Day) -> Option<Forecast> {
        if days <= 0 {
            return None;
        }
        #[allow(clippy::cast_precision_loss, reason = "a forecast")]
        let per_day = used.or_nothing().hours() / days as f64;
        let ahead = end.since(today);
        #[allow(clippy::cast_precision_loss, reason = "a forecast")]
        let left_at_end = (ahead >= 0).then(|| left.hours() - per_day * ahead as f64);
        let exhausted = days_left(left, used, days).and_then(|days| today.plus(days));
        Some(Forecast {
            per_day,
            exhausted,
            before_end: exhausted.map(|day| day <= end),
            left_at_end,
        })
    }
}

/// Whole days for which what is left lasts.
fn days_left(left: Units, used: Units, days: i64) -> Option<i64> {
    let (left, used) = (i128::from(left.or_nothing().seconds()), i128::from(used.seconds()));
    if used <= 0 {
        return None;
    }
    i64::try_from(left * i128::from(days) / used).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> Units {
        Units::of_hours(hours).unwrap()
    }

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    #[test]
    fn use_goes_on_as_it_did() {
        let (today, end) = (day("2026-11-16"), day("2027-11-16"));
        let forecast = Forecast::new(hours(300), 30, hours(1000), today, end).unwrap();
        assert_eq!(forecast.exhausted, Some(day("2027-02-24")), "a hundred days on");
        assert_eq!((forecast.per_day, forecast.before_end), (10.0, Some(true)));
        assert_eq!(forecast.left_at_end, Some(1000.0 - 3650.0));
        let slow = Forecast::new(hours(30), 30, hours(1000), today, end).unwrap();
        assert_eq!(slow.before_end, Some(false));
        assert_eq!(slow.left_at_end, Some(635.0));
    }

    #[test]
    fn without_use_nothing_is_used_up_and_without_days_nothing_is_known() {
        let (today, end) = (day("2026-11-16"), day("2026-11-01"));
        let idle = Forecast::new(Units::ZERO, 30, hours(1000), today, end).unwrap();
        assert_eq!((idle.exhausted, idle.before_end, idle.left_at_end), (None, None, None));
        assert_eq!(Forecast::new(hours(1), 0, hours(5), today, end), None);
        let over = Forecast::new(hours(10), 1, hours(-5), today, end).unwrap();
        assert_eq!(over.exhausted, Some(today));
        let never = Forecast::new(Units::new(1), 30, hours(1_000_000_000), today, end).unwrap();
        assert_eq!(never.exhausted, None, "beyond the calendar");
    }
}
