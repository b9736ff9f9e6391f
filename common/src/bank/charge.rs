//! Charges of a ledger: what jobs used on each day, by the archive.

use std::collections::BTreeMap;

use super::account::{Account, Line};
use super::day::Day;
use super::entry::{Entry, Kind};
use super::units::Units;
use crate::time::Timestamp;

/// What was used, or charged, by cluster and day.
pub type Days = BTreeMap<(String, Day), Units>;

/// What is charged since usage began anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// When it did; `None` if it never did.
    pub since: Option<Timestamp>,
    /// What is charged.
    pub days: Days,
}

impl Charges {
    /// Of all entries of an account, in their order.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Charges {
        let mut charges = Charges::default();
        for entry in entries {
            match (entry.kind, &entry.cluster, &entry.about) {
                (Kind::Reset, ..) => {
                    charges = Charges { since: Some(entry.at), days: Days::new() };
                }
                (Kind::Charge, Some(cluster), Some(day)) => {
                    // What is not written by us is not ours to correct.
                    let Ok(day) = day.parse::<Day>() else { continue };
                    let sum = charges.days.entry((cluster.clone(), day)).or_default();
                    *sum = [*sum, entry.amount.negated()].into_iter().sum();
                }
                _ => {}
            }
        }
        charges
    }

    /// Entries that make the charges what was used, on the days that were looked at.
    #[must_use]
    pub fn corrections(&self, used: &Days) -> Vec<Line> {
        let mut lines = Vec::new();
        for ((cluster, day), used) in used {
            let key = (cluster.clone(), *day);
            let charged = self.days.get(&key).copied().unwrap_or(Units::ZERO);
            let change = Account::charge(cluster, *day, *used, charged);
            lines.extend(change.into_iter().flat_map(|change| change.lines));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, amount: i64, day: &str, at: i64) -> Entry {
        Entry {
            number: 1,
            account: "a".into(),
            cluster: (kind == Kind::Charge).then(|| "c1".into()),
            kind,
            amount: Units::new(amount),
            at: Timestamp::new(at),
            actor: String::new(),
            reason: String::new(),
            about: (!day.is_empty()).then(|| day.to_owned()),
        }
    }

    fn used(seconds: i64) -> Days {
        [(("c1".to_owned(), "2026-11-15".parse().unwrap()), Units::new(seconds))].into()
    }

    #[test]
    fn a_day_is_charged_once_however_often_it_is_looked_at() {
        let mut entries = vec![entry(Kind::Grant, 9000, "", 1)];
        let first = Charges::of(&entries).corrections(&used(500));
        assert_eq!(first.len(), 1);
        entries.push(entry(Kind::Charge, -500, "2026-11-15", 2));
        assert_eq!(Charges::of(&entries).corrections(&used(500)), []);
        // Jobs that came into the archive later.
        let late = Charges::of(&entries).corrections(&used(700));
        assert_eq!(late[0].amount, Units::new(-200));
    }

    #[test]
    fn what_was_charged_before_usage_began_anew_does_not_count() {
        let entries = [
            entry(Kind::Charge, -500, "2026-11-15", 2),
            entry(Kind::Reset, 500, "", 3),
            entry(Kind::Charge, -20, "2026-11-15", 4),
        ];
        let charges = Charges::of(&entries);
        assert_eq!(charges.since, Some(Timestamp::new(3)));
        assert_eq!(charges.days, used(20));
    }
}
