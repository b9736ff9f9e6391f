//! What Slurm says about its own settings: `scontrol show config`, `sacctmgr show configuration`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;

use super::command::{CommandError, Running, TEXT};
use super::sacct::Stop;

/// Words that stand for "not set".
const NOTHING: [&str; 4] = ["(null)", "N/A", "(none)", ""];

/// All that a command of Slurm prints, in English and with times in UTC.
///
/// # Errors
/// If it does not end well within `limit`.
pub fn text(
    argv: &[String],
    arguments: &[&str],
    limit: Duration,
    stop: &Stop,
) -> Result<String, CommandError> {
    let stop = Arc::clone(stop);
    let environment = [("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("SLURM_TIME_FORMAT", "standard")];
    let argv: Vec<String> =
        argv.iter().cloned().chain(arguments.iter().map(ToString::to_string)).collect();
    let bytes = Running::start(&argv, &environment, limit, move || stop())?.text(TEXT)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Settings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
    /// When they held, in UTC, if the first line says so.
    pub as_of: Option<DateTime>,
}

impl Settings {
    /// Of lines `Name = value`; what is not such a line is passed over. Of a name that comes twice
    /// the last counts: in sacctmgr's answer slurmdbd's own settings come last.
    #[must_use]
    pub fn parse(text: &str) -> Settings {
        let mut settings = Settings::default();
        for line in text.lines() {
            if let Some(moment) = line.strip_prefix("Configuration data as of ") {
                settings.as_of = moment.trim().parse().ok();
            } else if let Some((name, value)) = line.split_once('=') {
                settings.values.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
        settings
    }

    /// A setting; `None` if it is not set or not there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !NOTHING.contains(value))
    }

    /// Whether a setting that is a list with commas holds a word.
    #[must_use]
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.get(name).is_some_and(|list| list.split(',').any(|one| one.trim() == word))
    }

    /// Whether this is about settings at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from the testbed: see the README beside them.
    const CONFIG: &str =
        include_str!("../../../../tests/fixtures/slurm-settings/scontrol-show-config.txt");
    const DATABASE: &str =
        include_str!("../../../../tests/fixtures/slurm-settings/sacctmgr-show-configuration.txt");

    #[test]
    fn the_controllers_settings_are_read() {
        let settings = Settings::parse(CONFIG);
        assert_eq!(settings.get("AccountingStorageType"), Some("accounting_storage/slurmdbd"));
        assert_eq!(settings.get("ClusterName"), Some("steward"));
        assert_eq!(settings.get("JobAcctGatherParams"), None, "(null)");
        assert!(settings.lists("AccountingStorageTRES", "gres/gpu"));
        assert!(!settings.lists("AccountingStorageTRES", "gres"));
        assert!(settings.as_of.unwrap().to_string().starts_with("2026-11-16T09:"));
    }

    #[test]
    fn the_databases_settings_are_read() {
        let settings = Settings::parse(DATABASE);
        assert_eq!(settings.get("PurgeJobAfter"), Some("NONE"));
        assert_eq!(settings.get("MessageTimeout"), Some("10 secs"), "slurmdbd's own");
        assert_eq!(settings.get("ArchiveScript"), None);
        assert!(Settings::parse("sacctmgr: error: nobody home\n").is_empty());
    }
}
