//! An account of the bank, and what each operation changes of it. Nothing is changed here: a [`Change`] says which
//! entries are to be added.

use std::collections::BTreeMap;

use super::day::Day;
use super::entry::{Kind, Totals};
use super::level::Level;
use super::standing::{Allocation, Usage};
use super::units::Units;
use crate::limit::Limit;
use crate::time::Timestamp;

/// What an account may use, since when and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Slurm's name of it.
    pub name: String,
    /// Whether the part that floats has no limit.
    pub unlimited: bool,
    /// The first day of the proposal.
    pub start: Day,
    /// The last day of the proposal.
    pub end: Day,
    /// What was told in this period.
    pub told: Told,
    /// When it was put into the bank.
    pub made: Timestamp,
    /// Sums of entries by cluster; `None` is for all clusters.
    pub parts: BTreeMap<Option<String>, Totals>,
}

/// What was told in a period, or would have been if mail were on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "four flags of a table")]
pub struct Told {
    /// That the first level is reached.
    pub lower: bool,
    /// That the second level is reached.
    pub upper: bool,
    /// That the limit is passed.
    pub over: bool,
    /// That the end is near.
    pub end: bool,
}

impl Told {
    /// Whether this level was told.
    #[must_use]
    pub fn of(self, level: Level) -> bool {
        match level {
            Level::Lower => self.lower,
            Level::Upper => self.upper,
            Level::Over => self.over,
        }
    }
}

/// An entry to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The cluster it is for; `None` if it is for all.
    pub cluster: Option<String>,
    /// Why.
    pub kind: Kind,
    /// How much.
    pub amount: Units,
    /// The other account of a transfer, the day of a charge.
    pub about: Option<String>,
}

/// What an operation changes. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Entries to be added.
    pub lines: Vec<Line>,
    /// Whether the part that floats has no limit.
    pub unlimited: Option<bool>,
    /// The first and the last day of the proposal.
    pub period: Option<(Day, Day)>,
    /// What was told.
    pub told: Option<Told>,
    /// Whether Slurm's usage is to be set to nothing.
    pub reset: bool,
}

/// Something that is not done, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is in the bank.
    #[error("account {0} already exists in the bank; `steward bank modify` sets another limit")]
    Exists(String),
    /// It is not in the bank.
    #[error("account {0} is not in the bank; `steward bank insert` puts it there")]
    Unknown(String),
    /// It has no limit that something could be added to.
    #[error("account {0} has no limit; `steward bank modify` gives it one")]
    Unlimited(String),
    /// There is not so much to take.
    #[error("account {account} has {has} SUs{place}, which is less than {wanted}")]
    TooLittle {
        /// The account.
        account: String,
        /// What it has.
        has: Units,
        /// Where.
        place: String,
        /// What was to be taken.
        wanted: Units,
    },
    /// The sum cannot be counted.
    #[error("account {0} would have more SUs than can be counted")]
    TooMuch(String),
    /// A transfer to oneself.
    #[error("a transfer needs two accounts; {0} was given twice")]
    Same(String),
    /// A part that is for one cluster always has a limit.
    #[error("-1 (unlimited) is for all clusters together; leave out --cluster")]
    UnlimitedPart,
    /// A day that cannot be the first or the last of a proposal.
    #[error("{0}")]
    Period(String),
}

impl Refused {
    /// Whether what was given makes no sense, as opposed to something that is not allowed now.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Refused::Exists(_) | Refused::Unlimited(_) | Refused::TooLittle { .. })
    }
}

/// A proposal that begins on `start` and lasts so many days.
///
/// # Errors
/// If it would end beyond the calendar.
pub fn period(start: Day, days: u32) -> Result<(Day, Day), Refused> {
    let end = start.plus(i64::from(days));
    let beyond = || Refused::Period(format!("a proposal from {start} ends beyond the calendar"));
    Ok((start, end.ok_or_else(beyond)?))
}

/// The first change of a new account.
#[must_use]
pub fn opening(cluster: Option<String>, limit: Limit<Units>) -> Change {
    let (amount, about) = words(limit);
    Change {
        lines: vec![Line { cluster, kind: Kind::Grant, amount, about }],
        unlimited: Some(limit.is_unlimited()),
        ..Change::default()
    }
}

/// What an entry says about a limit: its amount, or that there is none.
fn words(limit: Limit<Units>) -> (Units, Option<String>) {
    match limit {
        Limit::At(units) => (units, None),
        Limit::Unlimited => (Units::ZERO, Some("unlimited".to_owned())),
    }
}

impl Account {
    /// What it may use, as parts.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        let floating =
            if self.unlimited { Limit::Unlimited } else { Limit::At(self.granted(None)) };
        let own = self.parts.iter().filter_map(|(cluster, totals)| {
            let cluster = cluster.clone().filter(|_| totals.granted > Units::ZERO)?;
            Some((cluster, totals.granted))
        });
        Allocation { floating, clusters: own.collect() }
    }

    /// What it may use in all.
    #[must_use]
    pub fn limit(&self) -> Limit<Units> {
        self.allocation().total()
    }

    /// Sums over all clusters.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = |one: fn(&Totals) -> Units| self.parts.values().map(one).sum();
        Totals { granted: sum(|totals| totals.granted), charged: sum(|totals| totals.charged) }
    }

    /// As it is after a change.
    #[must_use]
    pub fn after(&self, change: &Change) -> Account {
        let mut after = self.clone();
        for line in &change.lines {
            after.parts.entry(line.cluster.clone()).or_default().add(line.kind, line.amount);
        }
        after.unlimited = change.unlimited.unwrap_or(after.unlimited);
        (after.start, after.end) = change.period.unwrap_or((after.start, after.end));
        after.told = change.told.unwrap_or(after.told);
        after
    }

    fn granted(&self, cluster: Option<&str>) -> Units {
        let key = cluster.map(str::to_owned);
        self.parts.get(&key).map_or(Units::ZERO, |totals| totals.granted)
    }

    fn line(cluster: Option<&str>, kind: Kind, amount: Units, about: Option<String>) -> Line {
        Line { cluster: cluster.map(str::to_owned), kind, amount, about }
    }

    /// Units come: the date stays, and levels are told anew.
    ///
    /// # Errors
    /// If it has no limit, or that cannot be counted.
    pub fn give(
        &self,
        cluster: Option<&str>,
        amount: Units,
        kind: Kind,
        about: Option<String>,
    ) -> Result<Change, Refused> {
        if self.unlimited {
            return Err(Refused::Unlimited(self.name.clone()));
        }
        let most = Units::of_hours(super::units::MOST).unwrap_or(Units::new(i64::MAX));
        let after = self.totals().granted.plus(amount).filter(|after| *after <= most);
        after.ok_or_else(|| Refused::TooMuch(self.name.clone()))?;
        Ok(Change {
            lines: vec![Self::line(cluster, kind, amount, about)],
            told: Some(Told { end: self.told.end, ..Told::default() }),
            ..Change::default()
        })
    }

    /// Units go: no more than `has`.
    fn take(
        &self,
        cluster: Option<&str>,
        amount: Units,
        has: Units,
        line: (Kind, Option<String>),
    ) -> Result<Change, Refused> {
        if self.unlimited {
            return Err(Refused::Unlimited(self.name.clone()));
        }
        if has < amount {
            let place = cluster.map_or_else(String::new, |name| format!(" on {name}"));
            let account = self.name.clone();
            return Err(Refused::TooLittle { account, has, place, wanted: amount });
        }
        let (kind, about) = line;
        let lines = vec![Self::line(cluster, kind, amount.negated(), about)];
        Ok(Change { lines, ..Change::default() })
    }

    /// Takes units away, used or not.
    ///
    /// # Errors
    /// If it has not so many.
    pub fn withdraw(&self, cluster: Option<&str>, amount: Units) -> Result<Change, Refused> {
        self.take(cluster, amount, self.granted(cluster), (Kind::Adjustment, None))
    }

    /// Units go to another account: only those that no job has used, by the ledger and by what Slurm counts.
    ///
    /// # Errors
    /// If it has not so many, or the other cannot take them.
    pub fn transfer(
        &self,
        to: &Account,
        amount: Units,
        used: &Usage,
    ) -> Result<(Change, Change), Refused> {
        if self.name == to.name {
            return Err(Refused::Same(self.name.clone()));
        }
        let taken = self.allocation().taken(used);
        let unused = self.granted(None).minus(taken).unwrap_or(Units::ZERO);
        let has = self.totals().balance().min(unused).or_nothing();
        let away = self.take(None, amount, has, (Kind::Transfer, Some(to.name.clone())));
        let away = away.map_err(|refused| match refused {
            Refused::TooLittle { account, has, wanted, .. } => {
                let place = " for all clusters that nobody has used".to_owned();
                Refused::TooLittle { account, has, place, wanted }
            }
            other => other,
        })?;
        let there = to.give(None, amount, Kind::Transfer, Some(self.name.clone()))?;
        Ok((away, there))
    }

    /// Sets another limit; the date stays, and levels are told anew.
    ///
    /// # Errors
    /// If a cluster's own part were to be unlimited.
    pub fn set(&self, cluster: Option<&str>, limit: Limit<Units>) -> Result<Change, Refused> {
        if cluster.is_some() && limit.is_unlimited() {
            return Err(Refused::UnlimitedPart);
        }
        let (amount, about) = match limit {
            Limit::Unlimited => words(limit),
            Limit::At(units) => {
                let less = units.minus(self.granted(cluster));
                (less.ok_or_else(|| Refused::TooMuch(self.name.clone()))?, None)
            }
        };
        Ok(Change {
            lines: vec![Self::line(cluster, Kind::Adjustment, amount, about)],
            unlimited: cluster.is_none().then(|| limit.is_unlimited()),
            told: Some(Told { end: self.told.end, ..Told::default() }),
            ..Change::default()
        })
    }

    /// The same, and the proposal begins today.
    ///
    /// # Errors
    /// As there, or if it would end beyond the calendar.
    pub fn modify(
        &self,
        cluster: Option<&str>,
        limit: Limit<Units>,
        today: Day,
        days: u32,
    ) -> Result<Change, Refused> {
        let change = self.set(cluster, limit)?;
        let told = Some(Told::default());
        Ok(Change { period: Some(period(today, days)?), told, ..change })
    }

    /// What jobs used is made good, Slurm's usage is set to nothing, and the proposal begins today.
    ///
    /// # Errors
    /// If it would end beyond the calendar.
    pub fn reset(&self, today: Day, days: u32) -> Result<Change, Refused> {
        Ok(Change {
            lines: self.made_good(),
            period: Some(period(today, days)?),
            told: Some(Told::default()),
            reset: true,
            ..Change::default()
        })
    }

    /// At least one entry: from it on the ledger charges anew.
    fn made_good(&self) -> Vec<Line> {
        let used = self.parts.iter().filter(|(_, totals)| totals.charged != Units::ZERO);
        let line = |(cluster, totals): (&Option<String>, &Totals)| {
            Self::line(cluster.as_deref(), Kind::Reset, totals.charged, None)
        };
        let mut lines: Vec<Line> = used.map(line).collect();
        if lines.is_empty() {
            lines.push(Self::line(None, Kind::Reset, Units::ZERO, None));
        }
        lines
    }

    /// A new proposal begins today: what was granted expires, and `limit` is granted in its place; the clusters' own
    /// parts are granted again.
    ///
    /// # Errors
    /// If it would end beyond the calendar.
    pub fn renew(&self, limit: Limit<Units>, today: Day, days: u32) -> Result<Change, Refused> {
        let mut lines = self.made_good();
        let granted = self.granted(None);
        if granted != Units::ZERO {
            lines.push(Self::line(None, Kind::Expiry, granted.negated(), None));
        }
        let (amount, about) = words(limit);
        lines.push(Self::line(None, Kind::Grant, amount, about));
        for (cluster, granted) in self.allocation().clusters {
            lines.push(Self::line(Some(&cluster), Kind::Expiry, granted.negated(), None));
            lines.push(Self::line(Some(&cluster), Kind::Grant, granted, None));
        }
        Ok(Change {
            lines,
            unlimited: Some(limit.is_unlimited()),
            period: Some(period(today, days)?),
            told: Some(Told::default()),
            reset: true,
        })
    }

    /// The proposal has ended: what was granted expires, down to `least` of the part that floats. An account without
    /// limit, or with a limit of nothing, keeps it. Nothing happens up to the last day.
    ///
    /// # Errors
    /// If the next one would end beyond the calendar.
    pub fn expire(&self, least: Units, today: Day, days: u32) -> Result<Option<Change>, Refused> {
        if today <= self.end {
            return Ok(None);
        }
        let limit = match self.limit() {
            Limit::Unlimited => Limit::Unlimited,
            Limit::At(Units::ZERO) => Limit::At(Units::ZERO),
            Limit::At(_) => Limit::At(least),
        };
        let kept = Account { parts: self.parts.clone(), ..self.clone() };
        let mut change = kept.renew(limit, today, days)?;
        // The clusters' own parts end with the proposal.
        change.lines.retain(|line| line.cluster.is_none() || line.kind != Kind::Grant);
        Ok(Some(change))
    }

    /// Whether the end is near, and this was not told in this period.
    #[must_use]
    pub fn ends_soon(&self, today: Day, days: u32) -> bool {
        let ahead = self.end.since(today);
        !self.told.end && !self.unlimited && (0..=i64::from(days)).contains(&ahead)
    }

    /// What jobs used on a day, by the archive: only what is not charged yet, which is below 0 if the archive has
    /// fewer jobs than before.
    #[must_use]
    pub fn charge(cluster: &str, day: Day, used: Units, charged: Units) -> Option<Change> {
        let more = used.minus(charged).filter(|more| *more != Units::ZERO)?;
        let about = Some(day.to_string());
        let lines = vec![Self::line(Some(cluster), Kind::Charge, more.negated(), about)];
        Some(Change { lines, ..Change::default() })
    }
}

#[cfg(test)]
mod tests;
