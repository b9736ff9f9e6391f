//! How mails are written and sent.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use lettre::Address;
use lettre::message::Mailbox;
use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::span::Span;

use super::{each_from_text, from_text, from_text_option};

/// Languages that come with the program.
pub const LANGUAGES: [&str; 2] = ["en", "fr"];

/// How mails are written and sent.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Mail {
    /// Who writes.
    #[serde(deserialize_with = "from_text_option")]
    pub from: Option<Mailbox>,
    /// Where answers go; to the writer if not set.
    #[serde(deserialize_with = "from_text_option")]
    pub reply_to: Option<Mailbox>,
    /// By what mail programs sort these mails; `steward.` and the writer's domain if not set.
    pub list_id: Option<String>,
    /// The way out.
    pub transport: Transport,
    /// The mail server.
    pub smtp: Smtp,
    /// The command that stands for sendmail, with arguments that come before ours.
    pub sendmail: Vec<String>,
    /// The directory that gets the mails if that is the way out.
    pub maildir: Option<PathBuf>,
    /// The language of those who are not in `languages`, and of the administrators.
    pub language: String,
    /// Languages by user.
    pub languages: BTreeMap<String, String>,
    /// A directory with templates that stand in for those of the program.
    pub templates: Option<PathBuf>,
    /// The font of charts.
    pub font: PathBuf,
    /// A link to a page of help; `{rule}`, `{instance}` and `{user}` are filled in.
    pub help: Option<String>,
    /// The same for single instances of rules, by name.
    pub help_of: BTreeMap<String, String>,
    /// Whom to ask: an address, a link or a few words.
    pub ask: Option<String>,
    /// Who gets a copy of what users get, and mails about trouble.
    #[serde(deserialize_with = "each_from_text")]
    pub admins: Vec<Address>,
    /// Who gets reports.
    #[serde(deserialize_with = "each_from_text")]
    pub report: Vec<Address>,
    /// Where the addresses of users come from.
    pub address: Addresses,
    /// Where their names come from.
    pub greeting: Greeting,
    /// The directory service.
    pub ldap: Ldap,
}

/// The way out.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A mail server.
    #[default]
    Smtp,
    /// A program of this machine.
    Sendmail,
    /// A directory: nothing leaves this machine.
    Maildir,
}

/// How a mail server is spoken to.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Smtp {
    /// Its name.
    pub host: String,
    /// Its port; the usual one for `tls` if not set.
    pub port: Option<u16>,
    /// How the connection is kept secret.
    pub tls: Tls,
    /// A file with certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Who we are to it; nobody in particular if not set.
    pub user: Option<String>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// How long any step may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
}

/// How the connection to a mail server is kept secret.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    /// Not at all.
    #[default]
    None,
    /// It begins in the clear and must change to TLS.
    Starttls,
    /// TLS from the first byte.
    Tls,
}

/// Where the addresses of users come from.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Addresses {
    /// By what means.
    pub method: AddressMethod,
    /// A domain, or a pattern with `{user}` such as `{user}.hpc@example.org`.
    pub domain: Option<String>,
    /// Addresses of single users, which come before all else.
    #[serde(deserialize_with = "address_of_each")]
    pub map: BTreeMap<String, Address>,
}

/// By what means an address is found.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum AddressMethod {
    /// The user's name and a domain.
    #[default]
    Domain,
    /// The field of the passwd entry that is an address, else the domain.
    Passwd,
    /// An attribute of the directory service.
    Ldap,
}

/// Where the names of users come from.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Greeting {
    /// By what means.
    pub method: GreetingMethod,
}

/// By what means a name is found.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum GreetingMethod {
    /// The user's login is all that is used.
    #[default]
    User,
    /// The full name of the passwd entry (GECOS).
    Passwd,
    /// An attribute of the directory service.
    Ldap,
}

/// How a directory service is asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Ldap {
    /// Its address, `ldaps://…` or `ldap://…`.
    pub url: Option<String>,
    /// Whether a connection to `ldap://` must change to TLS.
    pub starttls: bool,
    /// A file with certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Who we are to it; nobody in particular if not set.
    pub bind_dn: Option<String>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// Below what entry users are.
    pub base: Option<String>,
    /// The attribute with the login.
    pub uid: String,
    /// The attribute with the address.
    pub mail: String,
    /// The attribute with the name.
    pub name: String,
    /// How long any step may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
}

impl Default for Mail {
    fn default() -> Self {
        Self {
            from: None,
            reply_to: None,
            list_id: None,
            transport: Transport::default(),
            smtp: Smtp::default(),
            sendmail: vec!["/usr/sbin/sendmail".to_owned()],
            maildir: None,
            language: "en".to_owned(),
            languages: BTreeMap::new(),
            templates: None,
            font: PathBuf::from("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
            help: None,
            help_of: BTreeMap::new(),
            ask: None,
            admins: Vec::new(),
            report: Vec::new(),
            address: Addresses::default(),
            greeting: Greeting::default(),
            ldap: Ldap::default(),
        }
    }
}

impl Default for Smtp {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: None,
            tls: Tls::default(),
            ca_file: None,
            user: None,
            password_file: None,
            timeout: Span(Duration::from_secs(30)),
        }
    }
}

impl Default for Ldap {
    fn default() -> Self {
        Self {
            url: None,
            starttls: false,
            ca_file: None,
            bind_dn: None,
            password_file: None,
            base: None,
            uid: "uid".to_owned(),
            mail: "mail".to_owned(),
            name: "displayName".to_owned(),
            timeout: Span(Duration::from_secs(5)),
        }
    }
}

impl Smtp {
    /// As configured, else the usual one.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            Tls::None => 25,
            Tls::Starttls => 587,
            Tls::Tls => 465,
        })
    }
}

fn address_of_each<'de, D>(from: D) -> Result<BTreeMap<String, Address>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let texts = BTreeMap::<String, String>::deserialize(from)?;
    let parse = |(user, text): (String, String)| {
        let address = text.parse().map_err(|error| {
            serde::de::Error::custom(format!("{text:?} for {user:?} is no address: {error}"))
        })?;
        Ok((user, address))
    };
    texts.into_iter().map(parse).collect()
}

impl Mail {
    /// Whether the directory service is asked at all.
    #[must_use]
    pub fn asks_ldap(&self) -> bool {
        self.address.method == AddressMethod::Ldap || self.greeting.method == GreetingMethod::Ldap
    }

    /// The language of a user's mails.
    #[must_use]
    pub fn language_of(&self, user: Option<&str>) -> &str {
        user.and_then(|user| self.languages.get(user)).unwrap_or(&self.language)
    }

    /// Says what is missing before anything can be sent.
    ///
    /// # Errors
    /// Names the key and says what to do.
    pub fn ready(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, message: &str| Err(ConfigError::senseless(key, message));
        if self.from.is_none() {
            return refuse("mail.from", "must be set before mail can be sent");
        }
        if self.address.method == AddressMethod::Domain && self.address.domain.is_none() {
            return refuse("mail.address.domain", "must be set, or another mail.address.method");
        }
        if self.asks_ldap() && self.ldap.url.is_none() {
            return refuse("mail.ldap.url", "must be set: addresses or names come from there");
        }
        if self.asks_ldap() && self.ldap.base.is_none() {
            return refuse("mail.ldap.base", "must be set: users are looked for below it");
        }
        if self.transport == Transport::Maildir && self.maildir.is_none() {
            return refuse("mail.maildir", "must name a directory, or choose another transport");
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, message: &str| Err(ConfigError::senseless(format!("mail.{key}"), message));
        for (key, path) in [
            ("maildir", self.maildir.as_ref()),
            ("templates", self.templates.as_ref()),
            ("font", Some(&self.font)),
            ("smtp.ca_file", self.smtp.ca_file.as_ref()),
            ("smtp.password_file", self.smtp.password_file.as_ref()),
            ("ldap.ca_file", self.ldap.ca_file.as_ref()),
            ("ldap.password_file", self.ldap.password_file.as_ref()),
        ] {
            if path.is_some_and(|path| !path.is_absolute()) {
                return refuse(key, "must be an absolute path");
            }
        }
        if self.list_id.as_ref().is_some_and(|id| !is_list_id(id)) {
            return refuse("list_id", "must be a name such as steward.example.org");
        }
        if self.sendmail.first().is_none_or(String::is_empty) {
            return refuse("sendmail", "must name a program");
        }
        for (key, span) in
            [("smtp.timeout", self.smtp.timeout), ("ldap.timeout", self.ldap.timeout)]
        {
            if !(Duration::from_secs(1)..=Duration::from_secs(600)).contains(&span.0) {
                return refuse(key, "must be from 1s to 10m");
            }
        }
        for (key, language) in std::iter::once(("language", &self.language))
            .chain(self.languages.values().map(|language| ("languages", language)))
        {
            let word = language.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let known = LANGUAGES.contains(&language.as_str());
            if language.is_empty() || !word || (!known && self.templates.is_none()) {
                let list = LANGUAGES.join(", ");
                let message = format!("{language:?} is none of {list}; others need mail.templates");
                return refuse(key, &message);
            }
        }
        for (key, pattern) in std::iter::once(("help", self.help.as_ref()))
            .chain(self.help_of.values().map(|pattern| ("help_of", Some(pattern))))
        {
            if let Some(fault) = pattern.and_then(|pattern| fault_of_link(pattern)) {
                return refuse(key, &fault);
            }
        }
        if self.address.domain.as_deref().is_some_and(|domain| address("user", domain).is_none()) {
            return refuse(
                "address.domain",
                "must be a domain such as example.org, or a pattern such as {user}.hpc@example.org",
            );
        }
        self.check_secrets()
    }

    fn check_secrets(&self) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, message: &str| Err(ConfigError::senseless(format!("mail.{key}"), message));
        let (smtp, ldap) = (&self.smtp, &self.ldap);
        if smtp.host.is_empty() || smtp.host.contains(['/', ':', ' ', '@']) && !is_ip(&smtp.host) {
            return refuse("smtp.host", "must be the name of a host; its port is mail.smtp.port");
        }
        if smtp.user.is_some() != smtp.password_file.is_some() {
            return refuse("smtp", "set both user and password_file, or neither");
        }
        if smtp.user.is_some() && smtp.tls == Tls::None && !is_here(&smtp.host) {
            return refuse("smtp.tls", "must be \"starttls\" or \"tls\" to send a password");
        }
        if ldap.bind_dn.is_some() != ldap.password_file.is_some() {
            return refuse("ldap", "set both bind_dn and password_file, or neither");
        }
        for (key, name) in [("uid", &ldap.uid), ("mail", &ldap.mail), ("name", &ldap.name)] {
            if name.is_empty()
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-;.".contains(c))
            {
                return refuse(&format!("ldap.{key}"), "must be the name of an attribute");
            }
        }
        let Some(url) = &ldap.url else { return Ok(()) };
        let parsed = reqwest::Url::parse(url).ok();
        let Some((scheme, host)) = parsed
            .as_ref()
            .and_then(|url| Some((url.scheme(), url.host_str()?)))
            .filter(|(scheme, _)| ["ldap", "ldaps"].contains(scheme))
        else {
            return refuse("ldap.url", "must be an address such as ldaps://ldap.example.org");
        };
        if scheme == "ldaps" && ldap.starttls {
            return refuse("ldap.starttls", "is for ldap://; ldaps:// is TLS from the first byte");
        }
        if ldap.bind_dn.is_some() && scheme == "ldap" && !ldap.starttls && !is_here(host) {
            return refuse("ldap.url", "must be ldaps://, or starttls = true, to send a password");
        }
        Ok(())
    }
}

/// The address that a domain or a pattern gives.
#[must_use]
pub fn address(user: &str, pattern: &str) -> Option<Address> {
    if pattern.contains("{user}") {
        return pattern.replace("{user}", user).parse().ok();
    }
    Address::new(user, pattern.strip_prefix('@').unwrap_or(pattern)).ok()
}

fn is_list_id(id: &str) -> bool {
    id.contains('.') && id.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

fn is_ip(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

fn fault_of_link(pattern: &str) -> Option<String> {
    let filled = ["{rule}", "{instance}", "{user}"]
        .iter()
        .fold(pattern.to_owned(), |text, name| text.replace(name, "x"));
    if filled.contains(['{', '}']) {
        return Some("knows {rule}, {instance} and {user} only".to_owned());
    }
    (!super::is_http(&filled))
        .then(|| "must be a link such as https://hpc.example.org/help/{rule}".to_owned())
}

#[cfg(test)]
mod tests;
