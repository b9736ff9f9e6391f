//! Entries of the ledger. They are added and never changed; all else is their sum.

use std::fmt;
use std::str::FromStr;

use super::units::Units;
use crate::slurm::ParseError;
use crate::time::Timestamp;

/// Why an amount came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Somebody gave it.
    Grant,
    /// Jobs used it on a day, by the archive.
    Charge,
    /// It was given back for jobs that were lost.
    Refund,
    /// It came from another account, or went there.
    Transfer,
    /// A proposal came to its end.
    Expiry,
    /// What was used was set to nothing; charges so far are made good.
    Reset,
    /// The limit was set to another figure, or something was withdrawn.
    Adjustment,
}

/// Every kind with its word.
pub const KINDS: [(Kind, &str); 7] = [
    (Kind::Adjustment, "adjustment"),
    (Kind::Charge, "charge"),
    (Kind::Expiry, "expiry"),
    (Kind::Grant, "grant"),
    (Kind::Refund, "refund"),
    (Kind::Reset, "reset"),
    (Kind::Transfer, "transfer"),
];

impl Kind {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// Whether it is about what was used, and not about what may be.
    #[must_use]
    pub fn is_of_use(self) -> bool {
        matches!(self, Kind::Charge | Kind::Reset)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Kind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Kind, ParseError> {
        let found = KINDS.iter().find(|(_, word)| *word == text).map(|(kind, _)| *kind);
        found.ok_or_else(|| ParseError::new("kind of entry", text, "grant, charge, refund, …"))
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number among the entries of its account.
    pub number: i64,
    /// The account.
    pub account: String,
    /// The cluster it is for; `None` if it is for all.
    pub cluster: Option<String>,
    /// Why.
    pub kind: Kind,
    /// How much.
    pub amount: Units,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub actor: String,
    /// What he said.
    pub reason: String,
    /// The other account of a transfer, the day of a charge.
    pub about: Option<String>,
}

/// Sums of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What may be used.
    pub granted: Units,
    /// What jobs used since the last reset, by the archive.
    pub charged: Units,
}

impl Totals {
    /// The sum of these.
    #[must_use]
    pub fn of(entries: impl IntoIterator<Item = (Kind, Units)>) -> Totals {
        let mut totals = Totals::default();
        for (kind, amount) in entries {
            totals.add(kind, amount);
        }
        totals
    }

    /// One more.
    pub fn add(&mut self, kind: Kind, amount: Units) {
        if kind.is_of_use() {
            self.charged = [self.charged, amount.negated()].into_iter().sum();
        } else {
            self.granted = [self.granted, amount].into_iter().sum();
        }
    }

    /// The sum of all entries: what is left, by the ledger.
    #[must_use]
    pub fn balance(self) -> Units {
        [self.granted, self.charged.negated()].into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_balance_is_the_sum_of_all_entries() {
        let hours = |hours| Units::of_hours(hours).unwrap();
        let entries = [
            (Kind::Grant, hours(10_000)),
            (Kind::Charge, hours(-300)),
            (Kind::Refund, hours(20)),
            (Kind::Transfer, hours(-500)),
            (Kind::Charge, Units::new(-1)),
            (Kind::Adjustment, hours(-20)),
        ];
        let totals = Totals::of(entries);
        assert_eq!(totals.granted, hours(9500));
        assert_eq!(totals.charged, Units::new(300 * 3600 + 1));
        assert_eq!(totals.balance(), entries.iter().map(|(_, amount)| *amount).sum());
        let reset = Totals::of(entries.into_iter().chain([(Kind::Reset, totals.charged)]));
        assert_eq!((reset.charged, reset.balance()), (Units::ZERO, hours(9500)));
    }

    #[test]
    fn every_kind_has_a_word() {
        for (kind, word) in KINDS {
            assert_eq!((word.parse(), kind.word()), (Ok(kind), word));
        }
        assert!("gift".parse::<Kind>().is_err());
    }
}
