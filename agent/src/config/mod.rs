//! The agent's settings: strict, typed, with a default for every key.

mod section;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
pub use steward_common::config::ConfigError;
use steward_common::config::LOG_LEVELS;
use steward_common::id::{ClusterName, NodeName};
pub use steward_common::span::Span;

use crate::file_class::{self, ClassRule, FileClasses};
use crate::scheduler;

pub use section::{
    Exclude, Limits, Metrics, Paths, Push, Quiet, Scheduler, Scrape, Scratch, Threads, UserRef,
};

/// Where the configuration is looked for unless a flag says otherwise.
pub const DEFAULT_PATH: &str = "/etc/steward/agent.toml";

/// All settings. `deploy/config/agent.toml` explains each.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The cluster's name; found out if not set.
    #[serde(deserialize_with = "from_text_option")]
    pub cluster: Option<ClusterName>,
    /// The only node to report; found out if not set.
    #[serde(deserialize_with = "from_text_option")]
    pub node: Option<NodeName>,
    /// Time between two scans.
    #[serde(deserialize_with = "from_text")]
    pub interval: Span,
    /// How long a scan may take; jobs that were not read by then stand as they were.
    #[serde(deserialize_with = "from_text")]
    pub deadline: Span,
    /// For how many intervals the final values of an ended job stay visible.
    pub linger: u32,
    /// What is logged: error, warn, info, debug, trace or off.
    pub log: String,
    /// Where things are.
    pub paths: Paths,
    /// Which sets of metrics are exported.
    pub metrics: Metrics,
    /// How many series there may be.
    pub limits: Limits,
    /// What is read of threads.
    pub threads: Threads,
    /// How little the agent is to be felt.
    pub quiet: Quiet,
    /// How jobs are found.
    pub scheduler: Scheduler,
    /// Whose jobs are not reported.
    pub exclude: Exclude,
    /// What counts as scratch.
    pub scratch: Scratch,
    /// Classes of file systems by which open files are counted.
    pub file_classes: Vec<ClassRule>,
    /// The listener for Prometheus.
    pub scrape: Scrape,
    /// The Pushgateway.
    pub push: Push,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster: None,
            node: None,
            interval: Span(Duration::from_secs(15)),
            deadline: Span(Duration::from_secs(10)),
            linger: 2,
            log: "info".to_owned(),
            paths: Paths::default(),
            metrics: Metrics::default(),
            limits: Limits::default(),
            threads: Threads::default(),
            quiet: Quiet::default(),
            scheduler: Scheduler::default(),
            exclude: Exclude::default(),
            scratch: Scratch::default(),
            file_classes: file_class::usual(),
            scrape: Scrape::default(),
            push: Push::default(),
        }
    }
}

fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn from_text_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    from_text(deserializer).map(Some)
}

impl Config {
    /// Reads the file at `path`. A file that was not asked for by name may be missing.
    ///
    /// # Errors
    /// If it cannot be read or holds anything that is not a setting.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let (path, required) = path.map_or((Path::new(DEFAULT_PATH), false), |path| (path, true));
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {
                Ok(Self::default())
            }
            Err(source) => Err(ConfigError::Unreadable { path: path.to_path_buf(), source }),
        }
    }

    /// Reads `text`; `path` is for messages.
    ///
    /// # Errors
    /// If it holds anything that is not a setting.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            ConfigError::malformed(path, text, at, error.message())
        })
    }

    /// Refuses values that cannot work together or at all.
    ///
    /// # Errors
    /// Names the key and says what to do.
    pub fn check(&self) -> Result<(), ConfigError> {
        let senseless = |key, message: &str| Err(ConfigError::senseless(key, message));
        let (least, most) = (Duration::from_millis(100), Duration::from_secs(3600));
        if !(least..=most).contains(&self.interval.0) {
            return senseless("interval", "must be from 100ms to 60m");
        }
        if !(least..=most).contains(&self.push.timeout.0) {
            return senseless("push.timeout", "must be from 100ms to 60m");
        }
        if !(least..=most).contains(&self.deadline.0) {
            return senseless("deadline", "must be from 100ms to 60m");
        }
        let threads = self.threads.interval.0;
        if threads > most || (Duration::from_millis(1)..least).contains(&threads) {
            return senseless("threads.interval", "must be from 100ms to 60m, or 0s for never");
        }
        if !(self.quiet.share > 0.0 && self.quiet.share <= 1.0) {
            return senseless("quiet.share", "must be above 0 and at most 1");
        }
        if self.quiet.nice > 19 {
            return senseless("quiet.nice", "must be from 0 to 19");
        }
        if let Err(why) = FileClasses::new(self.file_classes.clone()) {
            return senseless("file_classes", &why.to_string());
        }
        if self.limits.series_per_job == 0 || self.limits.series_per_node == 0 {
            return senseless("limits", "leave room for at least one series");
        }
        if let Err(why) = scheduler::from_config(&self.scheduler) {
            return senseless("scheduler.pattern", &why);
        }
        if !LOG_LEVELS.contains(&self.log.as_str()) {
            return senseless("log", "must be error, warn, info, debug, trace or off");
        }
        if !(0.0..=1.0).contains(&self.push.spread) {
            return senseless("push.spread", "must be from 0 to 1");
        }
        if !self.metrics.original && !self.metrics.modern {
            return senseless("metrics", "switch on 'original' or 'modern': both are off");
        }
        if let Some(path) = self.scratch.paths.iter().find(|path| !path.is_absolute()) {
            return senseless(
                "scratch.paths",
                &format!("{} must be an absolute path", path.display()),
            );
        }
        match self.push.gateway.as_deref().map(reqwest::Url::parse) {
            None => Ok(()),
            Some(Ok(url)) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
            Some(_) => {
                senseless("push.gateway", "must be an address such as http://127.0.0.1:9091")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("agent.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(parse("").unwrap(), Config::default());
        Config::default().check().unwrap();
    }

    #[test]
    fn an_unknown_key_is_named_with_line_and_column() {
        let message = parse("linger = 1\n[scrape]\n  lisen = \"127.0.0.1:1\"\n").unwrap_err();
        assert!(message.starts_with("agent.toml:3:3: "), "{message}");
        assert!(message.contains("lisen") && message.contains("listen"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn a_wrong_type_is_named_with_line_and_column() {
        for (text, at) in [
            ("linger = \"two\"\n", "agent.toml:1:10: "),
            ("\ninterval = 15\n", "agent.toml:2:12: "),
            ("interval = \"15\"\n", "agent.toml:1:12: "),
            ("cluster = \"a b\"\n", "agent.toml:1:11: "),
            ("linger = -1\n", "agent.toml:1:10: "),
            ("linger = \n", "agent.toml:1:"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with(at), "{text:?}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn senseless_values_are_refused_by_key() {
        for (text, key) in [
            ("interval = \"0s\"", "interval"),
            ("interval = \"18446744073709551615s\"", "interval"),
            ("deadline = \"0s\"", "deadline"),
            ("[quiet]\nshare = 0", "quiet.share"),
            ("[quiet]\nnice = 20", "quiet.nice"),
            ("[threads]\ninterval = \"18446744073709551615s\"", "threads.interval"),
            ("[limits]\nseries_per_job = 0", "limits"),
            ("[[file_classes]]\nname = \"\"", "file_classes"),
            ("[quiet]\nshare = nan", "quiet.share"),
            ("[scheduler]\npattern = \"system.slice\"", "scheduler.pattern"),
            ("log = \"warning\"", "log"),
            ("log = \"\"", "log"),
            ("[push]\ntimeout = \"0s\"", "push.timeout"),
            ("[push]\ngateway = \"localhost:9091\"", "push.gateway"),
            ("[push]\nspread = 1.5", "push.spread"),
            ("[push]\nspread = nan", "push.spread"),
            ("[metrics]\noriginal = false\nmodern = false", "metrics"),
            ("[scratch]\npaths = [\"scratch\"]", "scratch.paths"),
        ] {
            let message = parse(text).unwrap().check().unwrap_err().to_string();
            assert!(message.starts_with(key), "{text:?}: {message}");
        }
    }

    #[test]
    fn users_are_meant_by_name_or_number() {
        let config = parse("[exclude]\nusers = [\"root\", 1001, \"1002\"]").unwrap();
        let excluded =
            |uid, name| config.exclude.users.iter().any(|user: &UserRef| user.is(uid, name));
        assert!(excluded(0, Some("root")));
        assert!(!excluded(0, None));
        assert!(excluded(1001, Some("alice")));
        assert!(excluded(1002, None));
        assert!(!excluded(1003, Some("bob")));
    }

    /// The example names every key at its default; a commented key is one that has none.
    #[test]
    fn the_example_file_shows_every_key_at_its_default() {
        let text = include_str!("../../../deploy/config/agent.toml");
        assert_eq!(parse(text).unwrap(), Config::default());
        let set: String = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        parse(&set).unwrap();
        let set: toml::Table = set.parse().unwrap();
        for key in keys_of("") {
            let section = keys_of(&format!("[{key}]\n"));
            assert!(set.contains_key(&key), "{key} is missing in deploy/config/agent.toml");
            for inner in section {
                let table = set[&key].as_table().unwrap();
                assert!(table.contains_key(&inner), "{key}.{inner} is missing there");
            }
        }
    }

    fn is_setting(line: &str) -> bool {
        line.split_once(" = ")
            .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    }

    /// The keys that a section takes, from its own complaint about one that it does not take.
    fn keys_of(section: &str) -> Vec<String> {
        let message = parse(&format!("{section}no_such_key = 1")).unwrap_err();
        let Some((_, list)) = message.split_once("expected") else {
            return Vec::new();
        };
        if !message.contains("unknown field") {
            return Vec::new();
        }
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_section_is_strict() {
        for section in ["", "[paths]\n", "[metrics]\n", "[exclude]\n", "[scratch]\n", "[push]\n"] {
            assert!(!keys_of(section).is_empty(), "{section:?} takes unknown keys");
        }
    }
}
