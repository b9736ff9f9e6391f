//! Other ways out than mail: an Alertmanager, webhooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::span::Span;

use super::{from_text, is_http};

/// Labels of an alert that Steward sets itself.
pub const OWN_LABELS: [&str; 8] =
    ["alertname", "rule", "cluster", "user", "severity", "job", "partition", "job_name"];

/// Other ways out than mail: an Alertmanager, webhooks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Outlets {
    /// The Alertmanager, if there is one.
    pub alertmanager: Option<Alertmanager>,
    /// Webhooks, by name.
    pub webhook: BTreeMap<String, Webhook>,
}

/// An Alertmanager, by its API of version 2.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Alertmanager {
    /// Its address.
    pub url: String,
    /// How long it may take.
    #[serde(default = "timeout", deserialize_with = "from_text")]
    pub timeout: Span,
    /// Labels that every alert gets.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Who asks, if it wants to know.
    #[serde(default)]
    pub user: Option<String>,
    /// The file with his password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// The file with a bearer token instead.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
}

/// Somebody who is told of events as they happen.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where.
    pub url: String,
    /// The file with the key of the signature.
    pub secret_file: PathBuf,
    /// How long it may take.
    #[serde(default = "timeout", deserialize_with = "from_text")]
    pub timeout: Span,
    /// How often an event is tried.
    #[serde(default = "tries")]
    pub tries: u32,
}

fn timeout() -> Span {
    Span(Duration::from_secs(10))
}

fn tries() -> u32 {
    100
}

impl Outlets {
    /// Whether anybody is told of anything.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.alertmanager.is_some() || !self.webhook.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if let Some(alertmanager) = &self.alertmanager {
            alertmanager.check()?;
        }
        self.webhook.iter().try_for_each(|(name, webhook)| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if !(1..=64).contains(&name.len()) || !name.chars().all(is_plain) {
                let message = "its name must be 1 to 64 letters, digits, '-' and '_'";
                return Err(ConfigError::senseless(format!("outlets.webhook.{name:?}"), message));
            }
            webhook.check(&format!("outlets.webhook.{name}"))
        })
    }
}

impl Alertmanager {
    fn check(&self) -> Result<(), ConfigError> {
        let place = "outlets.alertmanager";
        let refuse = |key: &str, message: &str| {
            Err(ConfigError::senseless(format!("{place}.{key}"), message))
        };
        shared(place, &self.url, self.timeout)?;
        for name in self.labels.keys() {
            let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !begins || !name.chars().all(is_plain) {
                return refuse("labels", &format!("{name:?} cannot be the name of a label"));
            }
            if OWN_LABELS.contains(&name.as_str()) {
                return refuse("labels", &format!("{name} is set by Steward itself"));
            }
        }
        if self.user.is_some() != self.password_file.is_some() {
            return refuse("user", "set both user and password_file, or neither");
        }
        if self.user.is_some() && self.token_file.is_some() {
            return refuse("token_file", "set either this or user and password_file");
        }
        for (key, path) in
            [("password_file", &self.password_file), ("token_file", &self.token_file)]
        {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                return refuse(key, "must be an absolute path");
            }
        }
        Ok(())
    }
}

impl Webhook {
    fn check(&self, place: &str) -> Result<(), ConfigError> {
        shared(place, &self.url, self.timeout)?;
        let refuse = |key: &str, message: &str| {
            Err(ConfigError::senseless(format!("{place}.{key}"), message))
        };
        if !Path::is_absolute(&self.secret_file) {
            return refuse("secret_file", "must be an absolute path");
        }
        if !(1..=1000).contains(&self.tries) {
            return refuse("tries", "must be from 1 to 1000");
        }
        Ok(())
    }
}

fn shared(place: &str, url: &str, timeout: Span) -> Result<(), ConfigError> {
    let refuse =
        |key: &str, message: &str| Err(ConfigError::senseless(format!("{place}.{key}"), message));
    if !is_http(url) {
        return refuse("url", "must be an address such as http://127.0.0.1:9093");
    }
    // An address is shown to whoever reads the log.
    if reqwest::Url::parse(url).is_ok_and(|url| url.password().is_some()) {
        return refuse("url", "must not hold a password: give the name of a file that does");
    }
    if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&timeout.0) {
        return refuse("timeout", "must be from 1s to 5m");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<Outlets, String> {
        let config = Config::parse(Path::new("a.toml"), text).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config.outlets)
    }

    #[test]
    fn little_must_be_said() {
        assert!(!parse("").unwrap().is_any());
        let found = parse("[outlets.alertmanager]\nurl = \"http://am:9093\"\n").unwrap();
        assert!(found.is_any());
        assert_eq!(found.alertmanager.unwrap().timeout, timeout());
        let text = "[outlets.webhook.chat]\nurl = \"https://c/x\"\nsecret_file = \"/etc/k\"\n\
                    [outlets.webhook.desk]\nurl = \"https://d\"\nsecret_file = \"/etc/k\"\ntries = 3\n";
        let found = parse(text).unwrap();
        let tries: Vec<u32> = found.webhook.values().map(|one| one.tries).collect();
        assert_eq!(tries, [100, 3]);
    }

    /// The example has them as a block that can be taken over.
    #[test]
    fn the_example_file_shows_every_key() {
        let text = include_str!("../../../deploy/config/steward.toml");
        let lines = text.lines().skip_while(|line| *line != "[outlets]").skip(1);
        let lines = lines.take_while(|line| !line.starts_with('['));
        let block: Vec<&str> = lines.filter_map(|line| line.strip_prefix("#   ")).collect();
        let whole: toml::Table = block.join("\n").parse().unwrap();
        let outlets = whole["outlets"].as_table().unwrap();
        let keys = |table: &toml::Value| {
            table.as_table().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        let shown = keys(&outlets["alertmanager"]);
        assert_eq!(shown, "labels password_file timeout token_file url user");
        let desk = &outlets["webhook"]["desk"];
        assert_eq!(keys(desk), "secret_file timeout tries url");
        let apart: Vec<&str> =
            block.into_iter().filter(|line| !line.starts_with("token_file")).collect();
        let found = parse(&apart.join("\n")).unwrap();
        assert_eq!(found.alertmanager.unwrap().timeout, timeout());
        assert_eq!(found.webhook["desk"].tries, tries());
    }

    #[test]
    fn what_makes_no_sense_is_named_by_its_key() {
        let alertmanager = |more: &str| {
            parse(&format!("[outlets.alertmanager]\nurl = \"http://am:9093\"\n{more}\n"))
        };
        for (more, key) in [
            ("labels = { \"a-b\" = \"x\" }", "outlets.alertmanager.labels"),
            ("labels = { cluster = \"x\" }", "outlets.alertmanager.labels"),
            ("user = \"u\"", "outlets.alertmanager.user"),
            (
                "user = \"u\"\npassword_file = \"/p\"\ntoken_file = \"/t\"",
                "outlets.alertmanager.token_file",
            ),
            ("token_file = \"t\"", "outlets.alertmanager.token_file"),
            ("timeout = \"0s\"", "outlets.alertmanager.timeout"),
            ("[outlets.webhook.a]\nurl = \"x\"\nsecret_file = \"/s\"", "outlets.webhook.a.url"),
            (
                "[outlets.webhook.a]\nurl = \"http://u:p@h\"\nsecret_file = \"/s\"",
                "outlets.webhook.a.url: must not hold a password",
            ),
            (
                "[outlets.webhook.a]\nurl = \"http://h\"\nsecret_file = \"s\"",
                "outlets.webhook.a.secret_file",
            ),
            (
                "[outlets.webhook.a]\nurl = \"http://h\"\nsecret_file = \"/s\"\ntries = 0",
                "outlets.webhook.a.tries",
            ),
            (
                "[outlets.webhook.\"a b\"]\nurl = \"http://h\"\nsecret_file = \"/s\"",
                "outlets.webhook.\"a b\"",
            ),
        ] {
            let error = alertmanager(more).unwrap_err();
            assert!(error.starts_with(key), "{more}: {error}");
        }
        assert!(
            parse("[outlets.webhook.a]\nurl = \"http://h\"\n").unwrap_err().contains("secret_file")
        );
    }
}
