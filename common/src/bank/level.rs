//! Levels of use at which somebody is told, and the limit itself.

use super::units::Units;

/// What reaching the limit exactly means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtLimit {
    /// Nothing yet: an account is held when it has used more.
    #[default]
    Strict,
    /// The account is held.
    Inclusive,
}

impl AtLimit {
    /// Whether that is too much.
    #[must_use]
    pub fn is_beyond(self, used: Units, limit: Units) -> bool {
        match self {
            AtLimit::Strict => used > limit,
            AtLimit::Inclusive => used >= limit,
        }
    }
}

/// How far an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// At the first level or above.
    Lower,
    /// At the second level or above.
    Upper,
    /// Beyond the limit.
    Over,
}

impl Level {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Level::Lower => "lower",
            Level::Upper => "upper",
            Level::Over => "over",
        }
    }
}

/// Where the levels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The first, in percent.
    pub lower: u32,
    /// The second, in percent.
    pub upper: u32,
    /// What reaching the limit exactly means.
    pub at_limit: AtLimit,
}

impl Default for Levels {
    fn default() -> Self {
        Levels { lower: 60, upper: 90, at_limit: AtLimit::Strict }
    }
}

impl Levels {
    /// The level below the limit that this has reached, if it has. Of a limit of nothing there is no
    /// part.
    #[must_use]
    pub fn reached(&self, used: Units, limit: Units) -> Option<Level> {
        let at_least = |percent: u32| {
            let (used, limit) = (i128::from(used.seconds()), i128::from(limit.seconds()));
            limit > 0 && used * 100 >= limit * i128::from(percent)
        };
        if at_least(self.upper) {
            Some(Level::Upper)
        } else if at_least(self.lower) {
            Some(Level::Lower)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Units = Units::new(36_000_000);

    fn reached(seconds: i64) -> Option<Level> {
        Levels::default().reached(Units::new(seconds), LIMIT)
    }

    #[test]
    fn b5_b6_b8_levels_are_reached_at_their_percent_and_nothing_is_cut_off() {
        assert_eq!(reached(21_599_999), None, "59.99 %");
        assert_eq!(reached(21_600_000), Some(Level::Lower));
        assert_eq!(reached(32_399_999), Some(Level::Lower));
        assert_eq!(reached(32_400_000), Some(Level::Upper));
        assert_eq!(reached(0), None);
        assert_eq!(Levels::default().reached(Units::new(5), Units::ZERO), None);
    }

    #[test]
    fn b10_b12_the_limit_itself_is_not_beyond_it_unless_it_is_meant_to_be() {
        for (seconds, strict, inclusive) in [
            (35_999_999, false, false),
            (36_000_000, false, true),
            (36_000_001, true, true),
            (36_003_600, true, true),
        ] {
            let used = Units::new(seconds);
            assert_eq!(AtLimit::Strict.is_beyond(used, LIMIT), strict, "{seconds}");
            assert_eq!(AtLimit::Inclusive.is_beyond(used, LIMIT), inclusive, "{seconds}");
        }
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let most = Units::new(i64::MAX);
        assert_eq!(Levels::default().reached(most, most), Some(Level::Upper));
    }
}
