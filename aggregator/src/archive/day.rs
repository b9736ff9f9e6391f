//! A UTC day, by which files of the archive are named.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use steward_common::time::Timestamp;
use steward_common::window::Window;

const SECONDS: i64 = 86_400;

/// A day, UTC, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day of a moment.
    #[must_use]
    pub fn of(moment: Timestamp) -> Day {
        Day(moment.get().div_euclid(SECONDS))
    }

    /// The day with this number, counted from 1970-01-01.
    #[must_use]
    pub fn new(number: i64) -> Day {
        Day(number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }

    /// Its first moment.
    #[must_use]
    pub fn start(self) -> Timestamp {
        Timestamp::new(self.0.saturating_mul(SECONDS))
    }

    /// The first moment of the next day.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.next().start()
    }

    /// The next day.
    #[must_use]
    pub fn next(self) -> Day {
        Day(self.0.saturating_add(1))
    }

    /// All of it.
    #[must_use]
    pub fn window(self) -> Option<Window> {
        Window::new(self.start(), self.end())
    }

    /// The days that the window touches.
    pub fn touched(window: Window) -> impl Iterator<Item = Day> {
        let last = Day::of(Timestamp::new(window.to().get().saturating_sub(1)));
        (Day::of(window.from()).0..=last.0).map(Day)
    }

    fn date(self) -> Option<Date> {
        let second = jiff::Timestamp::from_second(self.start().get()).ok()?;
        Some(second.to_zoned(jiff::tz::TimeZone::UTC).date())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date() {
            Some(date) => date.fmt(f),
            None => write!(f, "day{}", self.0),
        }
    }
}

impl FromStr for Day {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Day, jiff::Error> {
        let date: Date = text.parse()?;
        let start = date.to_zoned(jiff::tz::TimeZone::UTC)?;
        Ok(Day::of(Timestamp::new(start.timestamp().as_second())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_as_a_date_and_read_again() {
        let day: Day = "2026-11-16".parse().unwrap();
        assert_eq!(day.start(), Timestamp::new(1_794_787_200));
        assert_eq!(day.to_string(), "2026-11-16");
        assert_eq!(Day::of(Timestamp::new(1_794_787_199)).to_string(), "2026-11-15");
        let window = Window::new(day.start(), day.end().after(std::time::Duration::from_secs(1)));
        let days: Vec<String> = Day::touched(window.unwrap()).map(|day| day.to_string()).collect();
        assert_eq!(days, ["2026-11-16", "2026-11-17"]);
        assert!("16.11.2026".parse::<Day>().is_err());
    }
}
