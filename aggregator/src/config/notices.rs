//! Who is written to, and how often.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use steward_common::config::ConfigError;
use steward_common::span::Span;

use super::{DAY, from_text};
use crate::schedule::Schedule;

/// Notices about what rules found.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Notices {
    /// Whether `steward serve` sends them.
    pub enabled: bool,
    /// When.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
    /// When mails that were refused, or could not be sent, are tried again.
    #[serde(deserialize_with = "from_text")]
    pub post: Schedule,
    /// For how long nobody hears of a rule again on the same cluster.
    #[serde(deserialize_with = "from_text")]
    pub quiet: Span,
    /// The same for single instances of rules, by name.
    #[serde(deserialize_with = "of_each")]
    pub quiet_of: BTreeMap<String, Span>,
    /// On which days.
    pub days: Workdays,
    /// A file of days on which nothing is sent, one `YYYY-MM-DD` a line.
    pub holidays: Option<PathBuf>,
    /// Least share of a user's jobs in a finding that was measured.
    pub coverage: f64,
    /// Most users written to in one run; the administrators are told of the rest.
    pub most: usize,
    /// What becomes of a notice that was begun when the program died.
    pub after_crash: AfterCrash,
    /// How often a refused recipient is tried.
    pub tries: u32,
    /// How long after the first refusal; then twice as long each time.
    #[serde(deserialize_with = "from_text")]
    pub retry: Span,
    /// The ladder.
    pub ladder: Ladder,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            enabled: false,
            schedule: Schedule::constant("0 9 * * *"),
            post: Schedule::constant("*/5 * * * *"),
            quiet: Span(DAY * 7),
            quiet_of: BTreeMap::new(),
            days: Workdays::default(),
            holidays: None,
            coverage: 0.0,
            most: 200,
            after_crash: AfterCrash::default(),
            tries: 5,
            retry: Span(Duration::from_secs(900)),
            ladder: Ladder::default(),
        }
    }
}

/// On which days notices are sent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Workdays {
    /// On every day.
    Always,
    /// Not on Saturdays, Sundays and the days of the file.
    #[default]
    Weekdays,
    /// Nor on the federal holidays of the United States.
    Usa,
}

/// What becomes of a notice that was begun when the program died.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum AfterCrash {
    /// It counts as sent, and the administrators are told.
    #[default]
    CountsAsSent,
    /// It is sent again under the same Message-ID.
    SendAgain,
}

/// What happens when a user is written to again and again.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Ladder {
    /// Whether there is one.
    pub enabled: bool,
    /// After so long without a notice it begins anew.
    #[serde(deserialize_with = "from_text")]
    pub memory: Span,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { enabled: false, memory: Span(DAY * 90) }
    }
}

fn of_each<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Span>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(from)?;
    let parse = |(name, text): (String, String)| {
        Ok((name, text.parse().map_err(serde::de::Error::custom)?))
    };
    texts.into_iter().map(parse).collect()
}

impl Notices {
    /// For how long nobody hears of this instance again.
    #[must_use]
    pub fn quiet_of(&self, instance: &str) -> Duration {
        self.quiet_of.get(instance).unwrap_or(&self.quiet).0
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: &str| {
            Err(ConfigError::senseless(format!("notices.{key}"), message))
        };
        if !(0.0..=1.0).contains(&self.coverage) {
            return refuse("coverage", "must be from 0 to 1");
        }
        if self.most == 0 {
            return refuse("most", "must be at least 1; set enabled = false to send none");
        }
        if !(1..=20).contains(&self.tries) {
            return refuse("tries", "must be from 1 to 20");
        }
        if self.retry.0 < Duration::from_secs(1) {
            return refuse("retry", "must be at least 1s");
        }
        if self.holidays.as_ref().is_some_and(|path| !path.is_absolute()) {
            return refuse("holidays", "must be an absolute path");
        }
        Ok(())
    }
}
