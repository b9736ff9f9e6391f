//! Whether a day is one on which people are written to.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::civil::{Date, Weekday};
use steward_common::config::ConfigError;

use crate::config::{Notices, Workdays};

/// A file of holidays is a few lines; one that is larger is another file.
const LARGEST: u64 = 1 << 20;

/// What is said of a day of the file.
const LISTED: &str = "a day of notices.holidays";

/// The days on which people are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    days: Workdays,
    listed: BTreeSet<Date>,
}

impl Calendar {
    /// By the settings, with the days of the file of holidays as it is now.
    ///
    /// # Errors
    /// If the file cannot be read or has a line that is no day; the error names both.
    pub fn open(notices: &Notices) -> Result<Calendar, ConfigError> {
        let listed = match &notices.holidays {
            Some(path) => parse(path, &read(path)?)?,
            None => BTreeSet::new(),
        };
        Ok(Calendar { days: notices.days, listed })
    }

    /// Whether people are written to on that day.
    #[must_use]
    pub fn is_workday(&self, date: Date) -> bool {
        self.why_not(date).is_none()
    }

    /// What day it is, if nobody is written to on it.
    #[must_use]
    pub fn why_not(&self, date: Date) -> Option<&'static str> {
        if self.days == Workdays::Always {
            return None;
        }
        match date.weekday() {
            Weekday::Saturday => return Some("a Saturday"),
            Weekday::Sunday => return Some("a Sunday"),
            _ => {}
        }
        if self.listed.contains(&date) {
            return Some(LISTED);
        }
        if self.days == Workdays::Usa { federal(date) } else { None }
    }

    /// How many days the file of holidays names.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.listed.len()
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > LARGEST {
        let message = format!("{}: {size} bytes are too many for a list of days", path.display());
        return Err(ConfigError::senseless("notices.holidays", message));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// One `YYYY-MM-DD` a line; what follows a `#` is for people.
fn parse(path: &Path, text: &str) -> Result<BTreeSet<Date>, ConfigError> {
    let mut listed = BTreeSet::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let said = line.split('#').next().unwrap_or_default();
        let day = said.trim().trim_start_matches('\u{feff}');
        if !day.is_empty() {
            let date = is_day(day).then(|| day.parse().ok()).flatten().ok_or_else(|| {
                let indent = said.len() - said.trim_start().len();
                let message = format!("expected a day such as 2026-12-24, found {day:?}");
                ConfigError::malformed(path, text, at + indent, &message)
            })?;
            listed.insert(date);
        }
        at += line.len();
    }
    Ok(listed)
}

/// Whether the text has the form `YYYY-MM-DD`: jiff also takes times, and what is not meant to be a
/// day should not pass for one.
fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// When a federal holiday of the United States is.
#[derive(Clone, Copy, Debug)]
enum When {
    /// On that day of that month; on the Friday before if that is a Saturday, on the Monday after if
    /// it is a Sunday.
    Day(i8, i8),
    /// On the nth such day of that month; the last if negative.
    Nth(i8, i8, Weekday),
}

/// The federal holidays (5 U.S.C. 6103), each with its first year.
const FEDERAL: &[(&str, i16, When)] = &[
    ("New Year's Day", 1871, When::Day(1, 1)),
    ("Martin Luther King Day", 1986, When::Nth(3, 1, Weekday::Monday)),
    ("Washington's Birthday", 1971, When::Nth(3, 2, Weekday::Monday)),
    ("Memorial Day", 1971, When::Nth(-1, 5, Weekday::Monday)),
    ("Juneteenth", 2021, When::Day(6, 19)),
    ("Independence Day", 1871, When::Day(7, 4)),
    ("Labor Day", 1894, When::Nth(1, 9, Weekday::Monday)),
    ("Columbus Day", 1971, When::Nth(2, 10, Weekday::Monday)),
    ("Veterans Day", 1978, When::Day(11, 11)),
    ("Thanksgiving Day", 1942, When::Nth(4, 11, Weekday::Thursday)),
    ("Christmas Day", 1871, When::Day(12, 25)),
];

/// The federal holiday that is kept on that weekday.
fn federal(date: Date) -> Option<&'static str> {
    FEDERAL.iter().find(|(_, since, when)| is_kept(*when, *since, date)).map(|(name, _, _)| *name)
}

fn is_kept(when: When, since: i16, date: Date) -> bool {
    match when {
        When::Nth(nth, month, weekday) => {
            date.month() == month
                && date.year() >= since
                && date.nth_weekday_of_month(nth, weekday).is_ok_and(|day| day == date)
        }
        // A holiday on a Saturday or Sunday may be kept in another year.
        When::Day(month, day) => {
            let is =
                |other: Date| (other.month(), other.day()) == (month, day) && other.year() >= since;
            let beside = |weekday, other: Result<Date, jiff::Error>| {
                date.weekday() == weekday && other.is_ok_and(is)
            };
            is(date)
                || beside(Weekday::Friday, date.tomorrow())
                || beside(Weekday::Monday, date.yesterday())
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn calendar(days: Workdays, file: Option<&str>) -> Calendar {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holidays");
        let holidays = file.map(|text| {
            std::fs::write(&path, text).unwrap();
            path.clone()
        });
        Calendar::open(&Notices { days, holidays, ..Notices::default() }).unwrap()
    }

    #[test]
    fn vector_x7_of_the_reference() {
        let usa = calendar(Workdays::Usa, None);
        let file = calendar(Workdays::Weekdays, Some("2026-11-27\n"));
        let always = calendar(Workdays::Always, Some("2026-11-27\n"));
        assert_eq!(usa.why_not(date(2026, 1, 1)), Some("New Year's Day"));
        assert_eq!(usa.why_not(date(2026, 1, 19)), Some("Martin Luther King Day"));
        assert_eq!(usa.why_not(date(2026, 7, 3)), Some("Independence Day"));
        assert!(usa.is_workday(date(2026, 11, 27)));
        assert_eq!(file.why_not(date(2026, 11, 27)), Some(LISTED));
        assert!(file.is_workday(date(2026, 1, 1)));
        for saturday in [date(2026, 7, 4), date(2026, 11, 28)] {
            assert_eq!(usa.why_not(saturday), Some("a Saturday"));
            assert_eq!(file.why_not(saturday), Some("a Saturday"));
            assert!(always.is_workday(saturday));
        }
        assert_eq!(file.why_not(date(2026, 11, 29)), Some("a Sunday"));
        assert!(always.is_workday(date(2026, 11, 27)));
    }

    /// All weekdays of a year on which a holiday is kept.
    fn kept(year: i16) -> Vec<(i8, i8)> {
        let days = date(year, 1, 1).series(jiff::Span::new().days(1));
        let days = days.take_while(|day| day.year() == year);
        let weekday = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
        let kept = days.filter(weekday).filter(|day| federal(*day).is_some());
        kept.map(|day| (day.month(), day.day())).collect()
    }

    /// The lists of the Office of Personnel Management.
    #[test]
    fn holidays_of_whole_years_with_the_days_on_which_they_are_kept() {
        assert_eq!(
            kept(2026),
            [
                (1, 1),
                (1, 19),
                (2, 16),
                (5, 25),
                (6, 19),
                (7, 3),
                (9, 7),
                (10, 12),
                (11, 11),
                (11, 26),
                (12, 25)
            ]
        );
        // New Year's Day of 2022 is a Saturday, so it is kept in 2021, and 2022 begins without.
        assert_eq!(
            kept(2021),
            [
                (1, 1),
                (1, 18),
                (2, 15),
                (5, 31),
                (6, 18),
                (7, 5),
                (9, 6),
                (10, 11),
                (11, 11),
                (11, 25),
                (12, 24),
                (12, 31)
            ]
        );
        assert_eq!(
            kept(2022),
            [
                (1, 17),
                (2, 21),
                (5, 30),
                (6, 20),
                (7, 4),
                (9, 5),
                (10, 10),
                (11, 11),
                (11, 24),
                (12, 26)
            ]
        );
        // Of 2023 a Sunday.
        assert_eq!(kept(2023).first(), Some(&(1, 2)));
        assert_eq!(kept(2020).len(), 10, "Juneteenth is one since 2021");
        // A Thursday before and a Tuesday after are no holidays.
        assert!(federal(date(2026, 7, 2)).is_none() && federal(date(2026, 7, 6)).is_none());
        assert!(federal(date(2023, 1, 3)).is_none());
    }

    #[test]
    fn the_first_and_the_last_day_of_all_have_no_neighbour() {
        let usa = calendar(Workdays::Usa, None);
        // A Monday and a Friday.
        assert!(usa.is_workday(Date::MIN) && usa.is_workday(Date::MAX));
    }

    #[test]
    fn a_file_has_comments_and_blank_lines() {
        let text = "\u{feff}# closed\r\n\r\n 2026-12-24  # Christmas Eve\r\n2026-12-24\n2027-01-04";
        let found = calendar(Workdays::Weekdays, Some(text));
        assert_eq!(found.listed, BTreeSet::from([date(2026, 12, 24), date(2027, 1, 4)]));
    }

    #[test]
    fn a_line_that_is_no_day_is_named() {
        let path = Path::new("/etc/steward/holidays");
        for (line, place) in [
            ("24.12.2026", "3:1"),
            ("  2026-02-30", "3:3"),
            ("2026-12-24T10:00", "3:1"),
            ("20261224", "3:1"),
            ("2026-12-24 2026-12-25", "3:1"),
            ("+002026-12-24", "3:1"),
        ] {
            let text = format!("# days\n2026-12-31\n{line}\n");
            let error = parse(path, &text).unwrap_err().to_string();
            let begin = format!("/etc/steward/holidays:{place}: expected a day such as");
            assert!(error.starts_with(&begin), "{line}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_is_no_list_is_named() {
        let open = |path: &Path| {
            let holidays = Some(path.to_owned());
            let error = Calendar::open(&Notices { holidays, ..Notices::default() }).unwrap_err();
            error.to_string()
        };
        assert!(
            open(Path::new("/nonexistent/days")).starts_with("/nonexistent/days: No such file")
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(open(&path).contains("too many"), "{}", open(&path));
    }
}
