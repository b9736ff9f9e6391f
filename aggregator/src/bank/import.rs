//! Dumps of the bank in the form of slurm_su_bank, and reading them, its JSON and its SQLite file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use steward_common::bank::account::{Line, Told, opening, period};
use steward_common::bank::units::{HOUR, MOST};
use steward_common::bank::{Account, Change, Day, Kind, Mechanism, Refused, Units};
use steward_common::limit::Limit;

use super::Bank;
use crate::store::holds::{Hold, Stage};
use crate::store::ledger::Accounts;

/// The columns of slurm_su_bank's table.
const COLUMNS: [&str; 7] = [
    "id",
    "account",
    "su_limit_hrs",
    "date",
    "upper_limit_informed",
    "lower_limit_informed",
    "max_limit_informed",
];

/// One account, as slurm_su_bank has it, and what only we know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its number.
    pub id: usize,
    /// Its name.
    pub account: String,
    /// Its limit in service units, with those for single clusters; -1 is none.
    pub su_limit_hrs: i64,
    /// The first day of its proposal.
    pub date: String,
    /// Whether the second level was told.
    pub upper_limit_informed: bool,
    /// Whether the first level was told.
    pub lower_limit_informed: bool,
    /// Whether it was told that it is held.
    pub max_limit_informed: bool,
    /// The last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Whether the end was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_informed: Option<bool>,
    /// Billing-seconds for all clusters, where that is not the limit in whole hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_seconds: Option<i64>,
    /// Billing-seconds for single clusters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_seconds: BTreeMap<String, i64>,
}

/// Flags are 0, 1, true, false, or words, by who wrote the file.
fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Null => Some(false),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A row of a file, of whatever kind.
#[derive(Debug, Deserialize)]
struct Draft {
    account: String,
    su_limit_hrs: i64,
    date: String,
    #[serde(default)]
    upper_limit_informed: Value,
    #[serde(default)]
    lower_limit_informed: Value,
    #[serde(default)]
    max_limit_informed: Value,
    #[serde(default)]
    end: Option<String>,
    #[serde(default)]
    end_informed: Value,
    #[serde(default)]
    floating_seconds: Option<i64>,
    #[serde(default)]
    cluster_seconds: BTreeMap<String, i64>,
}

/// An account as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its limit for all clusters.
    pub floating: Limit<Units>,
    /// Its limits for single clusters.
    pub clusters: BTreeMap<String, Units>,
    /// Its first and last day.
    pub period: (Day, Day),
    /// What was told.
    pub told: Told,
}

/// A file that is no dump.
#[derive(Debug, thiserror::Error)]
#[error("{0}; nothing was changed")]
pub struct NoDump(String);

impl Draft {
    fn wanted(self, at: usize, days: u32) -> Result<Wanted, NoDump> {
        let wrong = |what: String| NoDump(format!("account {at} of the file: {what}"));
        let is_odd = |letter: char| letter.is_control() || "|,= ".contains(letter);
        if self.account.is_empty() || self.account.contains(is_odd) {
            return Err(wrong(format!("{:?} is no name of an account", self.account)));
        }
        let flag = |name: &str, value: &Value| {
            flag(value).ok_or_else(|| wrong(format!("{name} is {value}, not true or false")))
        };
        let date = |text: &str| {
            // A date of SQLite may have a time behind it.
            let day = text.split(['T', ' ']).next().unwrap_or_default();
            day.parse::<Day>().map_err(|error| wrong(error.to_string()))
        };
        let start = date(&self.date)?;
        let by_default = period(start, days).map_err(|error| wrong(error.to_string()))?;
        let end = self.end.as_deref().map_or(Ok(by_default.1), date)?;
        let bounded = |seconds: i64| {
            let range = 0..=MOST.saturating_mul(HOUR);
            let too_large = || wrong(format!("{} SUs cannot be counted", seconds / HOUR));
            Some(Units::new(seconds)).filter(|_| range.contains(&seconds)).ok_or_else(too_large)
        };
        let floating = match (self.su_limit_hrs, self.floating_seconds) {
            (-1, _) => Limit::Unlimited,
            (_, Some(seconds)) => Limit::At(bounded(seconds)?),
            (hours, None) => Limit::At(bounded(hours.saturating_mul(HOUR))?),
        };
        let part = |(name, seconds): (String, i64)| Ok((name, bounded(seconds)?));
        Ok(Wanted {
            floating,
            clusters: self.cluster_seconds.into_iter().map(part).collect::<Result<_, NoDump>>()?,
            period: (start, end),
            told: Told {
                lower: flag("lower_limit_informed", &self.lower_limit_informed)?,
                upper: flag("upper_limit_informed", &self.upper_limit_informed)?,
                over: flag("max_limit_informed", &self.max_limit_informed)?,
                end: flag("end_informed", &self.end_informed)?,
            },
            name: self.account,
        })
    }
}

/// Reads a dump: a list of rows, alone or as `results` of an object. A file that is not whole gives nothing.
///
/// # Errors
/// If it is no dump, or an account stands in it twice.
pub fn parse(text: &str, days: u32) -> Result<Vec<Wanted>, NoDump> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| NoDump(format!("no JSON: {error}")))?;
    let rows = match value {
        Value::Array(rows) => rows,
        Value::Object(mut object) => {
            let count = object.get("count").cloned();
            match object.remove("results") {
                Some(Value::Array(rows)) => {
                    let found = rows.len();
                    if let Some(count) = count.filter(|count| *count != found) {
                        let why = format!("it says {count} accounts and has {found}");
                        return Err(NoDump(why));
                    }
                    rows
                }
                _ => return Err(NoDump("no list of accounts under \"results\"".to_owned())),
            }
        }
        _ => return Err(NoDump("no list of accounts".to_owned())),
    };
    drafts(rows.into_iter().map(|row| serde_json::from_value(row).map_err(|e| e.to_string())), days)
}

fn drafts(
    rows: impl Iterator<Item = Result<Draft, String>>,
    days: u32,
) -> Result<Vec<Wanted>, NoDump> {
    let mut found: Vec<Wanted> = Vec::new();
    for (at, row) in rows.enumerate() {
        let row = row.map_err(|why| NoDump(format!("account {} of the file: {why}", at + 1)))?;
        let wanted = row.wanted(at + 1, days)?;
        if found.iter().any(|one| one.name == wanted.name) {
            return Err(NoDump(format!("account {} stands in it twice", wanted.name)));
        }
        found.push(wanted);
    }
    Ok(found)
}

/// Reads the table of slurm_su_bank's SQLite file, which is not changed.
///
/// # Errors
/// If it is no such file.
pub async fn read_sqlite(path: &Path, table: &str, days: u32) -> anyhow::Result<Vec<Wanted>> {
    type One = (String, i64, String, Option<i64>, Option<i64>, Option<i64>);
    if !table.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        anyhow::bail!("{table:?} is no name of a table");
    }
    let mut file = SqliteConnectOptions::new().filename(path).read_only(true).connect().await?;
    let text = format!(
        "SELECT account, su_limit_hrs, date, upper_limit_informed, lower_limit_informed, \
         max_limit_informed FROM {table} ORDER BY id"
    );
    let rows: Vec<One> = sqlx::query_as(sqlx::AssertSqlSafe(text)).fetch_all(&mut file).await?;
    let rows = rows.into_iter().map(|(account, su_limit_hrs, date, upper, lower, max)| {
        Ok(Draft {
            account,
            su_limit_hrs,
            date,
            upper_limit_informed: upper.into(),
            lower_limit_informed: lower.into(),
            max_limit_informed: max.into(),
            end: None,
            end_informed: Value::Null,
            floating_seconds: None,
            cluster_seconds: BTreeMap::new(),
        })
    });
    Ok(drafts(rows, days)?)
}

impl Row {
    /// The row of an account.
    #[must_use]
    pub fn new(id: usize, account: &Account) -> Row {
        let allocation = account.allocation();
        let floating = allocation.floating.at();
        let parts = allocation.clusters.iter().map(|(name, units)| (name.clone(), units.seconds()));
        let parts: BTreeMap<String, i64> = parts.collect();
        let odd = floating.filter(|units| units.seconds() % HOUR != 0 || !parts.is_empty());
        let told = account.told;
        Row {
            id,
            account: account.name.clone(),
            su_limit_hrs: account.limit().at().map_or(-1, Units::whole_hours),
            date: account.start.to_string(),
            upper_limit_informed: told.upper,
            lower_limit_informed: told.lower,
            max_limit_informed: told.over,
            end: Some(account.end.to_string()),
            end_informed: Some(told.end),
            floating_seconds: odd.map(Units::seconds),
            cluster_seconds: parts,
        }
    }

    /// Its columns as text, flags in the words for no and yes.
    #[must_use]
    pub fn columns(&self, [no, yes]: [&str; 2]) -> [String; 7] {
        let flag = |flag: bool| if flag { yes } else { no }.to_owned();
        [
            self.id.to_string(),
            self.account.clone(),
            self.su_limit_hrs.to_string(),
            self.date.clone(),
            flag(self.upper_limit_informed),
            flag(self.lower_limit_informed),
            flag(self.max_limit_informed),
        ]
    }
}

/// All accounts as rows, numbered in the order in which they came: a number stays the same when others come.
#[must_use]
pub fn rows(accounts: &Accounts) -> Vec<Row> {
    let mut all: Vec<&Account> = accounts.values().collect();
    all.sort_by_key(|account| account.made);
    all.into_iter().enumerate().map(|(at, account)| Row::new(at + 1, account)).collect()
}

/// The dump.
///
/// # Errors
/// Never.
pub fn json(accounts: &Accounts) -> serde_json::Result<String> {
    let rows = rows(accounts);
    let dump = serde_json::json!({ "count": rows.len(), "results": rows });
    Ok(serde_json::to_string_pretty(&dump)? + "\n")
}

/// All accounts as comma-separated values, byte by byte as slurm_su_bank writes them.
#[must_use]
pub fn csv(accounts: &Accounts) -> String {
    let line = |row: Row| row.columns(["False", "True"]).join(",") + "\r\n";
    COLUMNS.join(",") + "\r\n" + &rows(accounts).into_iter().map(line).collect::<String>()
}

/// All accounts as the table of slurm_su_bank prints them.
#[must_use]
pub fn raw(accounts: &Accounts) -> String {
    let line = |row: Row| row.columns(["0", "1"]).join("|") + "\n";
    rows(accounts).into_iter().map(line).collect()
}

impl Bank {
    /// Makes the accounts of the file as it has them: those that are not there are opened, the others get entries of the
    /// difference. Accounts that the file lacks stay. Gives how many came and how many changed.
    ///
    /// # Errors
    /// If it cannot be written; what was written up to then stays, and the same call does the rest.
    pub async fn repopulate(&self, all: &[Wanted], what: &str) -> anyhow::Result<(usize, usize)> {
        let (mut made, mut changed) = (0, 0);
        let there = self.store.accounts().await?;
        for wanted in all {
            if !there.contains_key(&wanted.name) {
                let change = opening(None, wanted.floating);
                let author = self.author(what);
                self.store.open_account(&wanted.name, wanted.period, &change, &author).await?;
                made += 1;
            } else {
                changed += 1;
            }
            let plan = |all: &Accounts| {
                let account = all.get(&wanted.name);
                let account = account.ok_or_else(|| Refused::Unknown(wanted.name.clone()))?;
                Ok(vec![(wanted.name.clone(), difference(account, wanted)?)])
            };
            let author = self.author(what);
            self.store.change_accounts(&[&wanted.name], &author, &[], plan).await?;
        }
        Ok((made, changed))
    }
}

impl Bank {
    /// Holds of accounts that were told to be held count as ours, where Slurm has them. Gives how many.
    ///
    /// # Errors
    /// If Slurm does not say which limits there are, or it cannot be written.
    pub async fn adopt(&self, all: &[Wanted]) -> anyhow::Result<usize> {
        let places = self.slurm.clusters().await?;
        let found = self.slurm.associations(&places).await.map_err(|why| anyhow::anyhow!(why))?;
        let held = |name: &str| all.iter().any(|one| one.name == name && one.told.over);
        let mut adopted = 0;
        for one in found.iter().filter(|one| held(&one.account)) {
            let ways = [Mechanism::CpuMinutes, Mechanism::RunningMinutes, Mechanism::Submission];
            let way = ways.into_iter().find(|way| one.limit(*way) == Some(0));
            let Some(mechanism) = way else { continue };
            let hold = Hold {
                account: one.account.clone(),
                cluster: one.cluster.clone(),
                mechanism,
                value: 0,
                previous: None,
                stage: Stage::Held,
                since: super::now(),
            };
            self.store.put_hold(&hold, &self.actor).await?;
            adopted += 1;
        }
        Ok(adopted)
    }
}

/// What makes an account as it is wanted.
fn difference(account: &Account, wanted: &Wanted) -> Result<Change, Refused> {
    let mut lines: Vec<Line> = Vec::new();
    if account.allocation().floating != wanted.floating {
        lines.extend(account.set(None, wanted.floating)?.lines);
    }
    let own = account.allocation().clusters;
    let none = Units::ZERO;
    for (cluster, units) in &wanted.clusters {
        if own.get(cluster) != Some(units) {
            lines.extend(account.set(Some(cluster), Limit::At(*units))?.lines);
        }
    }
    for cluster in own.keys().filter(|name| !wanted.clusters.contains_key(*name)) {
        lines.extend(account.set(Some(cluster), Limit::At(none))?.lines);
    }
    let kind = |line: Line| Line { kind: Kind::Adjustment, ..line };
    Ok(Change {
        lines: lines.into_iter().map(kind).collect(),
        unlimited: Some(wanted.floating.is_unlimited()),
        period: Some(wanted.period),
        told: Some(wanted.told),
        reset: false,
    })
}

#[cfg(test)]
mod tests;
