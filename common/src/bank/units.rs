//! Service units, counted in billing-seconds.

use std::fmt;
use std::iter::Sum;

/// Billing-seconds of a service unit.
pub const HOUR: i64 = 3600;

/// The most that one amount may be: a million million service units. Sums of millions of such
/// amounts still fit.
pub const MOST: i64 = 1_000_000_000_000;

/// An amount of billing-seconds; below 0 where something was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units(i64);

impl Units {
    /// Nothing.
    pub const ZERO: Units = Units(0);

    /// So many billing-seconds.
    #[must_use]
    pub const fn new(seconds: i64) -> Units {
        Units(seconds)
    }

    /// So many whole service units; `None` if that is more than can be counted.
    #[must_use]
    pub fn of_hours(hours: i64) -> Option<Units> {
        hours.checked_mul(HOUR).map(Units)
    }

    /// The billing-seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Service units, for people and for charts; whatever is compared is compared in seconds.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub fn hours(self) -> f64 {
        self.0 as f64 / HOUR as f64
    }

    /// Whole service units; what is beyond them is left out.
    #[must_use]
    pub const fn whole_hours(self) -> i64 {
        self.0.div_euclid(HOUR)
    }

    /// Billing-minutes as Slurm's limits have them; a part of a minute counts as one, so that nothing
    /// that was granted is lost.
    #[must_use]
    pub const fn minutes_up(self) -> i64 {
        self.0.div_euclid(60) + if self.0.rem_euclid(60) == 0 { 0 } else { 1 }
    }

    /// The sum; `None` if it is more than can be counted.
    #[must_use]
    pub fn plus(self, other: Units) -> Option<Units> {
        self.0.checked_add(other.0).map(Units)
    }

    /// The difference; `None` if it is more than can be counted.
    #[must_use]
    pub fn minus(self, other: Units) -> Option<Units> {
        self.0.checked_sub(other.0).map(Units)
    }

    /// The same, taken in place of given.
    #[must_use]
    pub fn negated(self) -> Units {
        Units(self.0.saturating_neg())
    }

    /// This, or nothing if it is below 0.
    #[must_use]
    pub fn or_nothing(self) -> Units {
        Units(self.0.max(0))
    }
}

/// What goes beyond the range of numbers stays at its end: nobody has used or been given so much.
impl Sum for Units {
    fn sum<I: Iterator<Item = Units>>(amounts: I) -> Units {
        Units(amounts.fold(0_i64, |sum, one| sum.saturating_add(one.0)))
    }
}

/// Service units: whole ones as they are, others with two digits.
impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 % HOUR == 0 {
            return f.pad(&(self.0 / HOUR).to_string());
        }
        f.pad(&format!("{:.2}", self.hours()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_shown_as_hours_and_counted_in_seconds() {
        assert_eq!(Units::of_hours(10_000).unwrap().seconds(), 36_000_000);
        for (seconds, shown) in
            [(36_000_000, "10000"), (-3600, "-1"), (0, "0"), (5400, "1.50"), (3601, "1.00")]
        {
            assert_eq!(Units::new(seconds).to_string(), shown);
        }
        assert_eq!(format!("{:>6}", Units::new(7200)), "     2");
        assert_eq!(Units::new(21_599_999).whole_hours(), 5999);
    }

    #[test]
    fn a_part_of_a_minute_is_a_minute() {
        for (seconds, minutes) in [(0, 0), (1, 1), (60, 1), (61, 2), (36_000_000, 600_000)] {
            assert_eq!(Units::new(seconds).minutes_up(), minutes);
        }
    }

    #[test]
    fn nothing_wraps_around() {
        let most = Units::new(i64::MAX);
        assert_eq!(most.plus(Units::new(1)), None);
        assert_eq!(Units::new(i64::MIN).minus(Units::new(1)), None);
        assert_eq!(Units::of_hours(i64::MAX), None);
        assert_eq!([most, most].into_iter().sum::<Units>(), most);
        assert_eq!(Units::new(-5).or_nothing(), Units::ZERO);
    }
}
