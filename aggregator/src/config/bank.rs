//! The settings of the bank.

use std::path::PathBuf;

use serde::Deserialize;
use steward_common::bank::{AtLimit, Levels, Mechanism};
use steward_common::config::ConfigError;
use steward_common::id::ClusterName;

use super::{each_from_text, from_text};
use crate::schedule::Schedule;

/// Service units of accounts, and what happens when they are used up.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Bank {
    /// Whether `steward serve` checks all accounts.
    pub enabled: bool,
    /// When.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
    /// The clusters on which units are used; `slurm.clusters` if empty.
    #[serde(deserialize_with = "each_from_text")]
    pub clusters: Vec<ClusterName>,
    /// Accounts that `check --all` looks at, as patterns.
    pub include: Vec<String>,
    /// Accounts that it passes over.
    pub exclude: Vec<String>,
    /// How an account is held.
    #[serde(deserialize_with = "from_text")]
    pub hold: Mechanism,
    /// What reaching the limit exactly means.
    pub at_limit: Exactly,
    /// The first level at which somebody is told, in percent.
    pub lower_percent: u32,
    /// The second.
    pub upper_percent: u32,
    /// Days before the end of a proposal from which that is told.
    pub notice_days: u32,
    /// How long a proposal lasts, in days.
    pub proposal_days: u32,
    /// The least limit in service units; also what remains after the end of a proposal.
    pub default_allocation: i64,
    /// Whether units expire at the end of a proposal.
    pub enforce_end_date: bool,
    /// Whether levels are told by mail; they are recorded all the same.
    pub mail: bool,
    /// Whether, with mail, each account gets a statement of every month.
    pub statements: bool,
    /// Whether what jobs used is charged to the ledger, by the archive.
    pub charge: bool,
    /// Where `repopulate_json` first writes what there is.
    pub backup: Option<PathBuf>,
}

/// What reaching the limit exactly means.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Exactly {
    /// Nothing yet.
    #[default]
    Strict,
    /// The account is held.
    Inclusive,
}

impl Default for Bank {
    fn default() -> Self {
        Self {
            enabled: false,
            schedule: Schedule::constant("*/15 * * * *"),
            clusters: Vec::new(),
            include: vec!["*".to_owned()],
            exclude: vec!["root".to_owned()],
            hold: Mechanism::RunningMinutes,
            at_limit: Exactly::Strict,
            lower_percent: 60,
            upper_percent: 90,
            notice_days: 90,
            proposal_days: 365,
            default_allocation: 1,
            enforce_end_date: false,
            mail: false,
            statements: true,
            charge: true,
            backup: None,
        }
    }
}

impl Bank {
    /// The levels of use.
    #[must_use]
    pub fn levels(&self) -> Levels {
        let at_limit = match self.at_limit {
            Exactly::Strict => AtLimit::Strict,
            Exactly::Inclusive => AtLimit::Inclusive,
        };
        Levels { lower: self.lower_percent, upper: self.upper_percent, at_limit }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, message: &str| Err(ConfigError::senseless(format!("bank.{key}"), message));
        if !(1..=100).contains(&self.upper_percent) {
            return refuse("upper_percent", "must be from 1 to 100");
        }
        if !(1..=self.upper_percent).contains(&self.lower_percent) {
            return refuse("lower_percent", "must be from 1 to upper_percent");
        }
        if !(1..=36_600).contains(&self.proposal_days) {
            return refuse("proposal_days", "must be from 1 to 36600");
        }
        if self.notice_days > 36_600 {
            return refuse("notice_days", "must be at most 36600");
        }
        if !(0..=1_000_000_000).contains(&self.default_allocation) {
            return refuse("default_allocation", "must be from 0 to 1000000000");
        }
        if self.backup.as_ref().is_some_and(|path| !path.is_absolute()) {
            return refuse("backup", "must be an absolute path");
        }
        Ok(())
    }
}
