//! The settings of evaluations, and what waste costs.

use std::collections::BTreeMap;

use serde::Deserialize;
use steward_common::config::ConfigError;

use super::from_text;
use crate::schedule::Schedule;

/// When and over how many days rules are looked at.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluate {
    /// Whether `steward serve` does it.
    pub enabled: bool,
    /// When.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
    /// Today and this many days before.
    pub days: u16,
    /// Partitions that had another name before: old names with the new ones.
    pub renamed_partitions: BTreeMap<String, String>,
}

impl Default for Evaluate {
    fn default() -> Self {
        Self {
            enabled: true,
            schedule: Schedule::constant("41 * * * *"),
            days: 7,
            renamed_partitions: BTreeMap::new(),
        }
    }
}

/// What an hour costs. What is not set is not guessed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Cost {
    /// The price of a billing hour.
    pub billing_hour: Option<f64>,
    /// What it is paid in.
    pub currency: Option<String>,
    /// Power of a CPU that is held and idle, in watts.
    pub cpu_watts: Option<f64>,
    /// Power of a GPU that is held and idle, in watts.
    pub gpu_watts: Option<f64>,
}

impl Evaluate {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.days > 366 {
            return Err(ConfigError::senseless("evaluate.days", "must be at most 366"));
        }
        Ok(())
    }
}

impl Cost {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, value) in [
            ("cost.billing_hour", self.billing_hour),
            ("cost.cpu_watts", self.cpu_watts),
            ("cost.gpu_watts", self.gpu_watts),
        ] {
            if value.is_some_and(|value| !(value.is_finite() && value > 0.0)) {
                return Err(ConfigError::senseless(key, "must be a number above 0"));
            }
        }
        if self.billing_hour.is_some() && self.currency.is_none() {
            let message = "say what cost.billing_hour is in, such as \"EUR\"";
            return Err(ConfigError::senseless("cost.currency", message));
        }
        Ok(())
    }
}
