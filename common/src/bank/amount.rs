//! Amounts of service units as people write them.

use super::units::{MOST, Units};
use crate::limit::Limit;

/// Text that is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// It is no whole number.
    #[error("service units: {0:?} is not a whole number such as 10000")]
    NotWhole(String),
    /// It is below the least.
    #[error(
        "service units: {found} is too small; the least is {least} (bank.default_allocation), and \
         -1 stands for unlimited in insert and modify only"
    )]
    TooSmall {
        /// What was given.
        found: i64,
        /// What would have been enough.
        least: i64,
    },
    /// It is 0 or less where something is given or taken.
    #[error(
        "service units: {0} is not an amount; give a whole number above 0 (-1 for unlimited is for \
         insert and modify only; withdraw takes units away)"
    )]
    NotPositive(i64),
    /// It is more than can be counted.
    #[error("service units: {0} is more than can be counted; the most is {MOST}")]
    TooLarge(String),
}

/// What an account may use: at least `least` service units, or -1 for no limit.
///
/// # Errors
/// If it is neither.
pub fn limit(text: &str, least: i64) -> Result<Limit<Units>, AmountError> {
    match whole(text)? {
        -1 => Ok(Limit::Unlimited),
        found if found < least => Err(AmountError::TooSmall { found, least }),
        found => counted(text, found).map(Limit::At),
    }
}

/// The same where there must be a limit.
///
/// # Errors
/// If it is not enough.
pub fn bound(text: &str, least: i64) -> Result<Limit<Units>, AmountError> {
    match limit(text, least)? {
        Limit::Unlimited => Err(AmountError::TooSmall { found: -1, least }),
        bound => Ok(bound),
    }
}

/// What is given or taken: more than nothing.
///
/// # Errors
/// If it is not.
pub fn amount(text: &str) -> Result<Units, AmountError> {
    match whole(text)? {
        found if found <= 0 => Err(AmountError::NotPositive(found)),
        found => counted(text, found),
    }
}

fn whole(text: &str) -> Result<i64, AmountError> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AmountError::NotWhole(text.to_owned()));
    }
    text.parse().map_err(|_| AmountError::TooLarge(text.to_owned()))
}

fn counted(text: &str, hours: i64) -> Result<Units, AmountError> {
    let too_large = || AmountError::TooLarge(text.trim().to_owned());
    Units::of_hours(hours).filter(|_| hours <= MOST).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> Units {
        Units::of_hours(hours).unwrap()
    }

    #[test]
    fn b2_a_limit_is_whole_and_large_enough_or_there_is_none() {
        assert_eq!(limit("10000", 1), Ok(Limit::At(hours(10_000))));
        assert_eq!(limit("-1", 1), Ok(Limit::Unlimited));
        assert_eq!(limit("0", 1), Err(AmountError::TooSmall { found: 0, least: 1 }));
        assert_eq!(limit("-2", 1), Err(AmountError::TooSmall { found: -2, least: 1 }));
        assert_eq!(limit("9", 10), Err(AmountError::TooSmall { found: 9, least: 10 }));
        for text in ["abc", "1.5", "", "-", "1e3", "0x10", "1 000", "１２"] {
            assert_eq!(limit(text, 1), Err(AmountError::NotWhole(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn no_limit_is_for_insert_and_modify_only() {
        assert_eq!(bound("5", 1), Ok(Limit::At(hours(5))));
        assert_eq!(bound("-1", 0), Err(AmountError::TooSmall { found: -1, least: 0 }));
    }

    #[test]
    fn b4_nothing_negative_is_added() {
        assert_eq!(amount(" 500 "), Ok(hours(500)));
        assert_eq!(amount("-1"), Err(AmountError::NotPositive(-1)));
        assert_eq!(amount("0"), Err(AmountError::NotPositive(0)));
        assert!(matches!(amount("2.0"), Err(AmountError::NotWhole(_))));
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        assert!(amount("1000000000000").is_ok());
        for text in ["1000000000001", "9223372036854775807", "99999999999999999999999"] {
            assert_eq!(amount(text), Err(AmountError::TooLarge(text.to_owned())));
            assert_eq!(limit(text, 1), Err(AmountError::TooLarge(text.to_owned())));
        }
    }
}
