//! Days of the calendar on which proposals begin and end.

use std::fmt;
use std::str::FromStr;

use crate::slurm::ParseError;

const EXPECTED: &str = "a day of the calendar such as 2026-11-16";

/// Days of four hundred years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// A day of the calendar from year 1 to 9999, whatever the time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// 1970-01-01.
    pub const EPOCH: Day = Day(0);

    /// The day with this number, counted from 1970-01-01; `None` if the calendar has none.
    #[must_use]
    pub fn new(number: i64) -> Option<Day> {
        let day = Day(number);
        let (year, _, _) = civil(number);
        (1..=9999).contains(&year).then_some(day)
    }

    /// Its number, counted from 1970-01-01.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// So many days later, or earlier; `None` beyond the calendar.
    #[must_use]
    pub fn plus(self, days: i64) -> Option<Day> {
        Day::new(self.0.checked_add(days)?)
    }

    /// Days from `earlier` to here; below 0 if that is later.
    #[must_use]
    pub const fn since(self, earlier: Day) -> i64 {
        self.0 - earlier.0
    }
}

/// Year, month and day by number: the years are counted from March, so that the leap day is last.
fn civil(number: i64) -> (i64, i64, i64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = number.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march = (month + 9) % 12;
    let of_year = (153 * march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * ERA + of_era - 719_468
}

impl FromStr for Day {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Day, ParseError> {
        let wrong = || ParseError::new("date", text, EXPECTED);
        let part = |text: &str, width: usize| -> Option<i64> {
            let whole = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
            whole.then(|| text.parse().ok()).flatten()
        };
        let mut parts = text.splitn(3, '-');
        let mut next = |width| parts.next().and_then(|text| part(text, width));
        let (year, month, day) = (next(4), next(2), next(2));
        let (Some(year), Some(month), Some(day)) = (year, month, day) else { return Err(wrong()) };
        let found = number(year, month, day);
        // The 30th of February is another day.
        if year < 1 || civil(found) != (year, month, day) {
            return Err(wrong());
        }
        Ok(Day(found))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0);
        f.pad(&format!("{year:04}-{month:02}-{day:02}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_and_written_alike() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2026-11-16", 20_773),
            ("2100-02-28", 47_540),
            ("2100-03-01", 47_541),
        ] {
            let day: Day = text.parse().unwrap();
            assert_eq!((day.number(), day.to_string().as_str()), (number, text));
        }
        for number in (-700_000..2_900_000).step_by(97) {
            let day = Day(number);
            assert_eq!(day.to_string().parse(), Ok(day));
        }
    }

    #[test]
    fn odd_forms_are_refused() {
        for text in [
            "",
            "today",
            "2026-2-3",
            "02/03/26",
            "2026-02-30",
            "2026-13-01",
            "2026-00-10",
            "2100-02-29",
            "26-02-03",
            "2026-02-03T00:00",
            " 2026-02-03",
            "0000-01-01",
            "2026-02",
            "-2026-02-03",
            "２０２６-02-03",
        ] {
            let error = text.parse::<Day>().unwrap_err();
            assert!(error.to_string().contains("2026-11-16"), "{text:?}: {error}");
        }
    }

    #[test]
    fn days_are_added_within_the_calendar() {
        let day: Day = "2026-11-16".parse().unwrap();
        assert_eq!(day.plus(365).unwrap().to_string(), "2027-11-16");
        assert_eq!(day.plus(365).unwrap().since(day), 365);
        assert_eq!(day.plus(i64::MAX), None);
        assert_eq!(day.plus(3_000_000), None);
    }
}
