//! When jobs whose GPUs idle are cancelled.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::span::Span;

use super::{DAY, from_text};
use crate::schedule::Schedule;

/// When jobs whose GPUs idle are cancelled.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Cancel {
    /// Whether `steward serve` looks after such jobs.
    pub enabled: bool,
    /// When it does.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
    /// What is really done.
    pub mode: Mode,
    /// A program that hands a note to the job's owner, with arguments; none if empty.
    pub tell: Vec<String>,
    /// The signal that a job gets before its end; none if empty.
    pub signal: String,
    /// The time from the signal to the end.
    #[serde(deserialize_with = "from_text")]
    pub grace: Span,
    /// A job that ends by itself within this is left.
    #[serde(deserialize_with = "from_text")]
    pub min_time_left: Span,
    /// Share of a job's time in which its GPUs must have been seen.
    pub coverage: f64,
    /// CPUs that may be busy, on average since the first warning; any number if negative.
    pub busy_cpus: f64,
    /// MiB a second that may be read and written, on average since the first warning; any number if negative.
    pub io_mib: f64,
    /// Most jobs in one run.
    pub most_per_run: u32,
    /// Most jobs in one hour, of all processes that share the store.
    pub most_per_hour: u32,
}

/// What is really done about idle jobs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: it is said what would be.
    #[default]
    DryRun,
    /// Owners are warned; a job ends when an administrator has said so.
    Approval,
    /// Owners are warned, and jobs end.
    Automatic,
}

impl Mode {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::DryRun => "dry-run",
            Mode::Approval => "approval",
            Mode::Automatic => "automatic",
        }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        let minutes = |minutes: u64| Span(Duration::from_secs(60 * minutes));
        Self {
            enabled: false,
            schedule: Schedule::constant("*/5 * * * *"),
            mode: Mode::DryRun,
            tell: Vec::new(),
            signal: "TERM".to_owned(),
            grace: minutes(5),
            min_time_left: minutes(10),
            coverage: 0.99,
            busy_cpus: 0.5,
            io_mib: 1.0,
            most_per_run: 10,
            most_per_hour: 30,
        }
    }
}

impl Cancel {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, why: &str| Err(ConfigError::senseless(key, why));
        if !(0.9..=1.0).contains(&self.coverage) {
            return refuse("cancel.coverage", "must be from 0.9 to 1");
        }
        let name = format!("SIG{}", self.signal.to_uppercase().trim_start_matches("SIG"));
        let known = self.signal.is_empty()
            || self.signal.parse().is_ok_and(|number: i32| Signal::try_from(number).is_ok())
            || name.parse::<Signal>().is_ok();
        if !known {
            return refuse(
                "cancel.signal",
                "must be the name of a signal such as \"TERM\", or \"\"",
            );
        }
        if matches!(self.signal.to_uppercase().trim_start_matches("SIG"), "KILL" | "9" | "STOP") {
            return refuse("cancel.signal", "must be one that a job can answer; \"\" is none");
        }
        if self.tell.first().is_some_and(String::is_empty) {
            return refuse("cancel.tell", "must name a program");
        }
        for (key, span) in
            [("cancel.grace", self.grace), ("cancel.min_time_left", self.min_time_left)]
        {
            if span.0 > DAY {
                return refuse(key, "must be at most 1d");
            }
        }
        for (key, number) in [("cancel.busy_cpus", self.busy_cpus), ("cancel.io_mib", self.io_mib)]
        {
            if !number.is_finite() {
                return refuse(key, "must be a number");
            }
        }
        Ok(())
    }
}
