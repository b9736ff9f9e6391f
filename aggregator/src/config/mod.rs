//! The centre's settings: strict, typed, with a default for every key.

mod bank;
mod cancel;
mod evaluate;
mod exporter;
mod gpus;
mod mail;
mod notices;
mod outlets;
mod rules;
mod section;
mod value;
mod warning;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Deserialize;
use steward_common::config::LOG_LEVELS;

use crate::store::Place;

pub use steward_common::config::ConfigError;
pub use steward_common::span::Span;

pub use bank::{Bank, Exactly};
pub use cancel::{Cancel, Mode as CancelMode};
pub use evaluate::{Cost, Evaluate};
pub use exporter::{Constant, Exporter, Families, Limits};
pub use gpus::{Gpus, JobOf, Mapping, Preset};
pub use mail::{
    AddressMethod, Addresses, Greeting, GreetingMethod, LANGUAGES, Ldap, Mail, Smtp, Tls,
    Transport, address,
};
pub use notices::{AfterCrash, Ladder, Notices, Workdays};
pub use outlets::{Alertmanager, Outlets, Webhook};
pub use rules::{Listed, Rules};
pub use section::{
    Archive, Collect, GroupSource, Groups, Prometheus, Pushgateway, S3, Serve, Slurm, Store,
};
pub use value::{Location, Mode, Zone};

/// Where the configuration is looked for unless a flag says otherwise.
pub const DEFAULT_PATH: &str = "/etc/steward/steward.toml";

/// All settings. `deploy/config/steward.toml` explains each.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The file that they came from; `None` if there is none and the defaults hold.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// The zone in which people see days, and schedules times; see [`Config::zone`].
    #[serde(deserialize_with = "from_text_option")]
    pub time_zone: Option<Zone>,
    /// What is logged: error, warn, info, debug, trace or off.
    pub log: String,
    /// Where jobs are kept.
    pub archive: Archive,
    /// How Slurm is asked.
    pub slurm: Slurm,
    /// How jobs are collected.
    pub collect: Collect,
    /// The Prometheus that collects from the agents.
    pub prometheus: Prometheus,
    /// The Pushgateway that agents push to.
    pub pushgateway: Pushgateway,
    /// Which group a user belongs to.
    pub groups: Groups,
    /// Snapshots of clusters, and what is exported about them.
    pub exporter: Exporter,
    /// The exporter that measures GPUs.
    pub gpus: Gpus,
    /// When rules are looked at.
    pub evaluate: Evaluate,
    /// The rules.
    pub rules: Rules,
    /// What waste costs.
    pub cost: Cost,
    /// Mail.
    pub mail: Mail,
    /// Who is written to, and how often.
    pub notices: Notices,
    /// Cancelling of idle jobs.
    pub cancel: Cancel,
    /// Other ways out than mail.
    pub outlets: Outlets,
    /// Service units of accounts.
    pub bank: Bank,
    /// The service.
    pub serve: Serve,
    /// The service's memory.
    pub store: Store,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            file: None,
            time_zone: None,
            log: "info".to_owned(),
            archive: Archive::default(),
            slurm: Slurm::default(),
            collect: Collect::default(),
            prometheus: Prometheus::default(),
            pushgateway: Pushgateway::default(),
            groups: Groups::default(),
            exporter: Exporter::default(),
            gpus: Gpus::default(),
            evaluate: Evaluate::default(),
            rules: Rules::default(),
            cost: Cost::default(),
            mail: Mail::default(),
            notices: Notices::default(),
            cancel: Cancel::default(),
            outlets: Outlets::default(),
            bank: Bank::default(),
            serve: Serve::default(),
            store: Store::default(),
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

fn each_from_text<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

impl Config {
    /// Reads the file at `path`. A file that was not asked for by name may be missing.
    ///
    /// # Errors
    /// If it cannot be read or holds anything that is not a setting or makes no sense.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let (path, required) = path.map_or((Path::new(DEFAULT_PATH), false), |path| (path, true));
        let config = match std::fs::read_to_string(path) {
            Ok(text) => Self { file: Some(path.to_owned()), ..Self::parse(path, &text)? },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {
                Self::default()
            }
            Err(source) => {
                return Err(ConfigError::Unreadable { path: path.to_path_buf(), source });
            }
        };
        config.check().map_err(|error| error.in_file(path))?;
        Ok(config)
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
        let refuse = |key, message: &str| Err(ConfigError::senseless(key, message));
        if !LOG_LEVELS.contains(&self.log.as_str()) {
            return refuse("log", "must be error, warn, info, debug, trace or off");
        }
        if matches!(&self.archive.directory, Location::Directory(path) if !path.is_absolute()) {
            return refuse("archive.directory", "must be an absolute path, or s3://bucket/prefix");
        }
        for (key, span) in [
            ("archive.retention_raw", self.archive.retention_raw),
            ("archive.retention_processed", self.archive.retention_processed),
        ] {
            if span.is_some_and(|span| span.0 < DAY) {
                return refuse(key, "must be at least 1d; leave it out to keep jobs for ever");
            }
        }
        if self.archive.s3.access_key_file.is_some() != self.archive.s3.secret_key_file.is_some() {
            return refuse(
                "archive.s3",
                "set both access_key_file and secret_key_file, or neither",
            );
        }
        for (key, argv) in [
            ("slurm.sacct", &self.slurm.sacct),
            ("slurm.sacctmgr", &self.slurm.sacctmgr),
            ("slurm.scontrol", &self.slurm.scontrol),
            ("slurm.squeue", &self.slurm.squeue),
            ("slurm.sinfo", &self.slurm.sinfo),
            ("slurm.sshare", &self.slurm.sshare),
            ("slurm.sdiag", &self.slurm.sdiag),
            ("slurm.scancel", &self.slurm.scancel),
        ] {
            if argv.first().is_none_or(String::is_empty) {
                return refuse(key, "must name a program");
            }
        }
        if !(1..=64).contains(&self.slurm.parallel) {
            return refuse("slurm.parallel", "must be from 1 to 64");
        }
        if self.slurm.retries > 100 {
            return refuse("slurm.retries", "must be at most 100");
        }
        for (key, span, most) in [
            ("slurm.timeout", self.slurm.timeout, DAY),
            ("prometheus.timeout", self.prometheus.timeout, HOUR),
            ("pushgateway.timeout", self.pushgateway.timeout, HOUR),
            ("pushgateway.stale_after", self.pushgateway.stale_after, DAY * 366),
        ] {
            if !(Duration::from_secs(1)..=most).contains(&span.0) {
                let most = Span(most);
                return refuse(key, &format!("must be from 1s to {most}"));
            }
        }
        for (key, span) in
            [("collect.overlap", self.collect.overlap), ("collect.grace", self.collect.grace)]
        {
            if span.0 > DAY * 31 {
                return refuse(key, "must be at most 31d");
            }
        }
        if self.collect.days > 36_600 {
            return refuse("collect.days", "must be at most 36600");
        }
        for (key, url) in [
            ("prometheus.url", &self.prometheus.url),
            ("pushgateway.url", &self.pushgateway.url),
            ("archive.s3.endpoint", &self.archive.s3.endpoint),
        ] {
            if url.as_deref().is_some_and(|url| !is_http(url)) {
                return refuse(key, "must be an address such as http://127.0.0.1:9091");
            }
        }
        if self.groups.source == Some(GroupSource::Config) && self.groups.members.is_empty() {
            return refuse(
                "groups.members",
                "must name the groups' users when source is \"config\"",
            );
        }
        self.exporter.check()?;
        self.gpus.mapping()?;
        self.evaluate.check()?;
        self.rules.instances()?;
        self.cost.check()?;
        self.mail.check()?;
        self.notices.check()?;
        self.cancel.check()?;
        self.outlets.check()?;
        self.bank.check()?;
        if self.store.retention_states.0 < HOUR {
            return refuse("store.retention_states", "must be at least 1h");
        }
        if self.store.url.is_some() && self.store.path.is_some() {
            return refuse("store.url", "set this or path, not both");
        }
        if self.store.url.is_none() && self.store.password_file.is_some() {
            return refuse("store.password_file", "is for PostgreSQL: set url too");
        }
        for (key, path) in [
            ("serve.socket", Some(&self.serve.socket)),
            ("serve.state", Some(&self.serve.state)),
            ("store.path", self.store.path.as_ref()),
            ("store.password_file", self.store.password_file.as_ref()),
        ] {
            if path.is_some_and(|path| !path.is_absolute()) {
                return refuse(key, "must be an absolute path");
            }
        }
        Ok(())
    }

    /// Where the service's memory is: as configured, else `steward.db` in `serve.state`.
    #[must_use]
    pub fn store(&self) -> Place {
        let Store { path, url, password_file, .. } = &self.store;
        match url {
            Some(address) => {
                Place::Server { address: address.clone(), password_file: password_file.clone() }
            }
            None => {
                Place::File(path.clone().unwrap_or_else(|| self.serve.state.join("steward.db")))
            }
        }
    }

    /// Why days are those of UTC although nobody wants that: the system's zone is not known.
    #[must_use]
    pub fn zone_trouble(&self) -> Option<String> {
        if self.time_zone.is_some() {
            return None;
        }
        let error = TimeZone::try_system().err()?;
        let zone =
            std::env::var("TZ").map_or_else(|_| String::new(), |zone| format!(" (TZ={zone})"));
        Some(format!(
            "the system's time zone{zone} is not known, so days are those of UTC: {error}"
        ))
    }

    /// The zone in which people see days, and schedules times: as configured, else the system's.
    #[must_use]
    pub fn zone(&self) -> TimeZone {
        self.time_zone.as_ref().map_or_else(TimeZone::system, |zone| zone.0.clone())
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn is_http(text: &str) -> bool {
    reqwest::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

#[cfg(test)]
mod tests;
