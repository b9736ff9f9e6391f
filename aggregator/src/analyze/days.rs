//! Which days are meant, and when they are in the site's time zone.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use steward_common::summary::scope::Day;
use steward_common::time;
use steward_common::window::Window;

/// More days than Slurm has existed are a mistake.
const MOST: usize = 36_525;

/// Days without gaps, and the time from the first moment of the first to the last of the last, or
/// until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    /// All of it.
    pub window: Window,
    /// Each day; the last one ends now if it is today.
    pub days: Vec<Day>,
    /// The first.
    pub from: Date,
    /// The last.
    pub to: Date,
}

/// Why there are no such days.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DaysError {
    /// The first is after the last.
    #[error("--from {from} is after --to {to}")]
    Backwards {
        /// The first.
        from: Date,
        /// The last.
        to: Date,
    },
    /// They have not come yet.
    #[error("{0} has not begun")]
    Future(Date),
    /// There are too many.
    #[error("from {from} to {to} are more than a hundred years")]
    Many {
        /// The first.
        from: Date,
        /// The last.
        to: Date,
    },
    /// The calendar ends.
    #[error("no such day: {0}")]
    Calendar(String),
}

impl From<jiff::Error> for DaysError {
    fn from(error: jiff::Error) -> DaysError {
        DaysError::Calendar(error.to_string())
    }
}

/// The days from `from`, or from `back` days before the last one, to `to`, or to today.
///
/// # Errors
/// If there are no such days, or too many.
pub fn days(
    from: Option<Date>,
    to: Option<Date>,
    back: u16,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Days, DaysError> {
    let today = now.to_zoned(zone.clone()).date();
    let to = to.unwrap_or(today);
    let from = match from {
        Some(from) => from,
        None => to.checked_sub(jiff::Span::new().days(back))?,
    };
    if from > to {
        return Err(DaysError::Backwards { from, to });
    }
    let now = time::Timestamp::new(now.as_second());
    let mut days = Vec::new();
    let mut day = from;
    while day <= to {
        let start = begin(day, zone)?;
        let next = day.tomorrow()?;
        // Hours that have not come are hours in which nothing could be used.
        let Some(window) = Window::new(start, begin(next, zone)?.min(now)) else { break };
        days.push(Day { label: day.to_string(), window });
        if days.len() > MOST {
            return Err(DaysError::Many { from, to });
        }
        day = next;
    }
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return Err(DaysError::Future(from));
    };
    let window = Window::new(first.window.from(), last.window.to());
    let window = window.ok_or(DaysError::Future(from))?;
    Ok(Days { window, days, from, to })
}

/// The first moment of a day, which is not midnight everywhere.
fn begin(day: Date, zone: &TimeZone) -> Result<time::Timestamp, DaysError> {
    Ok(time::Timestamp::new(day.to_zoned(zone.clone())?.timestamp().as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn lengths(days: &Days) -> Vec<i64> {
        days.days.iter().map(|day| day.window.seconds() / 3600).collect()
    }

    fn date(text: &str) -> Option<Date> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn seven_days_are_today_and_seven_before_and_today_ends_now() {
        let now: Timestamp = "2026-11-16T06:30:00Z".parse().unwrap();
        let days = days(None, None, 7, now, &TimeZone::UTC).unwrap();
        assert_eq!((days.days.len(), days.days[0].label.as_str()), (8, "2026-11-09"));
        assert_eq!(days.days[7].label, "2026-11-16");
        assert_eq!(days.days[7].window.seconds(), 6 * 3600 + 1800);
        assert_eq!(days.window.seconds(), 7 * 86_400 + 6 * 3600 + 1800);
    }

    #[test]
    fn today_is_that_of_the_site() {
        let now: Timestamp = "2026-11-15T23:30:00Z".parse().unwrap();
        let days = days(None, None, 0, now, &zone("Europe/Helsinki")).unwrap();
        assert_eq!((days.days[0].label.as_str(), lengths(&days)), ("2026-11-16", vec![1]));
    }

    #[test]
    fn days_on_which_clocks_change_have_23_and_25_hours() {
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let spring = days(date("2026-03-28"), date("2026-03-30"), 7, now, &zone("Europe/Berlin"));
        assert_eq!(lengths(&spring.unwrap()), [24, 23, 24]);
        let autumn = days(date("2026-10-24"), date("2026-10-26"), 7, now, &zone("Europe/Berlin"));
        assert_eq!(lengths(&autumn.unwrap()), [24, 25, 24]);
        // There is no midnight: the day begins at one o'clock.
        let beirut = days(date("2026-03-28"), date("2026-03-30"), 7, now, &zone("Asia/Beirut"));
        assert_eq!(lengths(&beirut.unwrap()), [24, 23, 24]);
    }

    #[test]
    fn the_last_day_is_in_it() {
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let one = days(date("2026-05-01"), date("2026-05-01"), 7, now, &TimeZone::UTC).unwrap();
        assert_eq!((one.days.len(), one.window.seconds()), (1, 86_400));
        let back = days(None, date("2026-05-03"), 2, now, &TimeZone::UTC).unwrap();
        assert_eq!((back.from, back.days.len()), (date("2026-05-01").unwrap(), 3));
    }

    #[test]
    fn days_that_cannot_be_are_refused() {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let ask = |from, to| days(date(from), date(to), 7, now, &TimeZone::UTC);
        assert!(matches!(ask("2026-02-01", "2026-01-01"), Err(DaysError::Backwards { .. })));
        assert!(matches!(ask("2026-06-01", "2026-06-02"), Err(DaysError::Future(_))));
        assert!(matches!(ask("0001-01-01", "2026-01-01"), Err(DaysError::Many { .. })));
    }
}
