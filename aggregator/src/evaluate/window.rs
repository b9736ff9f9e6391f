//! The time that an evaluation is about.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::command::BadInput;

/// `--days`, `--starttime` and `--endtime`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Period {
    /// Today and this many days before [default: evaluate.days].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=3660))]
    pub days: Option<u16>,
    /// From this moment on, on the site's clocks: 2026-11-09 or 2026-11-09T08:00:00.
    #[arg(long, short = 'S', value_name = "TIME")]
    pub starttime: Option<DateTime>,
    /// Until this moment [default: now, or --days after --starttime].
    #[arg(long, short = 'E', value_name = "TIME")]
    pub endtime: Option<DateTime>,
}

impl Period {
    /// The window: from midnight so many days ago, or before the end, or from the time given.
    ///
    /// # Errors
    /// If there is no such time, or it has not come.
    pub fn window(
        &self,
        default: u16,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Window, BadInput> {
        let bad = |error: jiff::Error| BadInput(error.to_string());
        let moment = |time: DateTime| -> Result<Timestamp, BadInput> {
            let moment = time.to_zoned(zone.clone()).map_err(bad)?.timestamp();
            Ok(Timestamp::new(moment.as_second()))
        };
        let to = match (self.endtime, self.starttime, self.days) {
            (Some(end), ..) => moment(end)?.min(now),
            (None, Some(start), Some(days)) => {
                let end = start.checked_add(jiff::Span::new().days(days)).map_err(bad)?;
                moment(end)?.min(now)
            }
            (None, ..) => now,
        };
        let from = match self.starttime {
            Some(start) => moment(start)?,
            None => midnight_before(to, self.days.unwrap_or(default), zone).map_err(bad)?,
        };
        let empty = || {
            BadInput("the window is empty: --starttime must be before --endtime and now".to_owned())
        };
        Window::new(from, to).ok_or_else(empty)
    }
}

/// Midnight on the site's clocks so many days before the day of a moment.
///
/// # Errors
/// If the calendar does not reach so far.
pub fn midnight_before(
    moment: Timestamp,
    days: u16,
    zone: &TimeZone,
) -> Result<Timestamp, jiff::Error> {
    let last = jiff::Timestamp::from_second(moment.get())?.to_zoned(zone.clone()).date();
    let first = last.checked_sub(jiff::Span::new().days(days))?;
    let midnight = first.to_zoned(zone.clone())?.timestamp();
    Ok(Timestamp::new(midnight.as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(period: &Period) -> Result<(i64, i64), String> {
        let now: jiff::Timestamp = "2026-11-16T06:30:00Z".parse().unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let window = period.window(7, Timestamp::new(now.as_second()), &zone);
        window
            .map(|w| (now.as_second() - w.from().get(), now.as_second() - w.to().get()))
            .map_err(|e| e.0)
    }

    #[test]
    fn days_begin_at_midnight_on_the_sites_clocks() {
        let hours = |hours: f64| (hours * 3600.0) as i64;
        assert_eq!(window(&Period::default()).unwrap(), (hours(7.0 * 24.0 + 7.5), 0));
        let zero = Period { days: Some(0), ..Period::default() };
        assert_eq!(window(&zero).unwrap(), (hours(7.5), 0));
        let start =
            Period { starttime: Some("2026-11-16T06:30:00".parse().unwrap()), ..Period::default() };
        assert_eq!(window(&start).unwrap(), (hours(1.0), 0));
        let end = Period {
            endtime: Some("2026-11-15".parse().unwrap()),
            days: Some(1),
            ..Period::default()
        };
        assert_eq!(window(&end).unwrap(), (hours(24.0 + 31.5), hours(31.5)));
        let from = Some("2026-11-10T12:00:00".parse().unwrap());
        let both = Period { starttime: from, days: Some(3), ..Period::default() };
        assert_eq!(window(&both).unwrap(), (hours(139.5), hours(67.5)), "three days from then on");
        let later = Period { starttime: Some("2026-12-01".parse().unwrap()), ..Period::default() };
        assert!(window(&later).unwrap_err().contains("empty"));
        let beyond = Period { endtime: Some("2027-12-01".parse().unwrap()), ..Period::default() };
        assert_eq!(window(&beyond).unwrap(), (hours(7.0 * 24.0 + 7.5), 0), "until now at most");
    }
}
