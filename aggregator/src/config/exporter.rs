//! The settings of snapshots and of what is exported about clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::span::Span;

use super::from_text;
use crate::schedule::Schedule;

/// What is asked of slurmctld, and what of it is exported.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Exporter {
    /// Whether `steward serve` asks and exports.
    pub enabled: bool,
    /// From one snapshot to the next.
    #[serde(deserialize_with = "from_text")]
    pub interval: Span,
    /// How long one command may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
    /// The part of the time that may be spent asking.
    pub share: f64,
    /// When the GPU-years that were used are counted anew.
    #[serde(deserialize_with = "from_text")]
    pub gpu_years: Schedule,
    /// Whether vpenso's names are exported too.
    pub vpenso: bool,
    /// Whether Mila's names are exported too.
    pub mila: bool,
    /// Our own names, by family.
    pub families: Families,
    /// How many names a label may have.
    pub limits: Limits,
    /// Values that are exported as they stand here.
    pub constants: Vec<Constant>,
}

/// Which families of our own names are exported.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Families {
    /// `steward_cluster_…`.
    pub cluster: bool,
    /// `steward_partition_…`.
    pub partitions: bool,
    /// `steward_node_…`.
    pub nodes: bool,
    /// `steward_reservation_…`.
    pub reservations: bool,
    /// `steward_jobs…`.
    pub jobs: bool,
    /// `steward_account_…`.
    pub accounts: bool,
    /// `steward_user_…`.
    pub users: bool,
    /// `steward_fairshare…`.
    pub fairshare: bool,
    /// `steward_account_limit_…`.
    pub limits: bool,
    /// `steward_licences`.
    pub licences: bool,
    /// `steward_scheduler_…`.
    pub scheduler: bool,
}

/// How many names a label may have; those with the fewest jobs are `other` beyond that.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Users.
    pub users: usize,
    /// Accounts.
    pub accounts: usize,
    /// Nodes; the rest has no series.
    pub nodes: usize,
    /// Partitions.
    pub partitions: usize,
    /// Reasons of waiting.
    pub reasons: usize,
}

/// A value that is exported as it stands.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its other labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Default for Exporter {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Span(Duration::from_secs(30)),
            timeout: Span(Duration::from_secs(30)),
            share: 0.1,
            gpu_years: Schedule::constant("27 * * * *"),
            vpenso: true,
            mila: false,
            families: Families::default(),
            limits: Limits::default(),
            constants: Vec::new(),
        }
    }
}

impl Default for Families {
    fn default() -> Self {
        Self {
            cluster: true,
            partitions: true,
            nodes: true,
            reservations: true,
            jobs: true,
            accounts: true,
            users: true,
            fairshare: true,
            limits: true,
            licences: true,
            scheduler: true,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { users: 500, accounts: 500, nodes: 20_000, partitions: 200, reasons: 50 }
    }
}

impl Exporter {
    /// Refuses values that cannot work together or at all.
    ///
    /// # Errors
    /// Names the key and says what to do.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, message: &str| Err(ConfigError::senseless(key, message));
        let bounds = Duration::from_secs(1)..=Duration::from_secs(3600);
        for (key, span) in
            [("exporter.interval", self.interval), ("exporter.timeout", self.timeout)]
        {
            if !bounds.contains(&span.0) {
                return refuse(key, "must be from 1s to 1h");
            }
        }
        if !(0.001..=1.0).contains(&self.share) {
            return refuse("exporter.share", "must be from 0.001 to 1");
        }
        if self.vpenso && self.mila {
            return refuse(
                "exporter.mila",
                "has names that vpenso's exporter has too, with other labels: set exporter.vpenso \
                 = false beside it",
            );
        }
        for constant in &self.constants {
            if constant.name.is_empty() || !constant.value.is_finite() {
                return refuse("exporter.constants", "must have names and finite values");
            }
            if let Some(label) = constant.labels.keys().find(|label| !is_label(label)) {
                return refuse(
                    "exporter.constants",
                    &format!(
                        "{label:?} is no label: letters, digits and underscores, not \"name\""
                    ),
                );
            }
        }
        let identity = |one: &Constant| (one.name.clone(), one.labels.clone());
        let mut seen: Vec<_> = self.constants.iter().map(identity).collect();
        seen.sort();
        if seen.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            return refuse("exporter.constants", "has the same name and labels twice");
        }
        Ok(())
    }
}

/// Whether Prometheus takes it, and it is not the one that we set.
fn is_label(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(letter)
        && text.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !text.starts_with("__")
        && text != "name"
}
