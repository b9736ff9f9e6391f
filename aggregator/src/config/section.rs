//! The sections of the settings, each with its defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use steward_common::id::ClusterName;
use steward_common::span::Span;

use super::value::{Location, Mode};
use super::{each_from_text, from_text, from_text_option};
use crate::schedule::Schedule;
use crate::store::Address;

/// Where jobs are kept, and for how long.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Archive {
    /// A directory, or an address such as `s3://bucket/prefix`.
    #[serde(deserialize_with = "from_text")]
    pub directory: Location,
    /// How long rows are kept as sacct gave them; for ever if not set.
    #[serde(deserialize_with = "from_text_option")]
    pub retention_raw: Option<Span>,
    /// How long jobs are kept; for ever if not set.
    #[serde(deserialize_with = "from_text_option")]
    pub retention_processed: Option<Span>,
    /// Whether rows are kept as sacct gave them. Without them the archive cannot be rebuilt.
    pub raw: bool,
    /// How object storage is spoken to.
    pub s3: S3,
}

/// How object storage is spoken to; what is not set comes from the usual AWS environment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct S3 {
    /// Address of the service; Amazon's if not set.
    pub endpoint: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Whether it may be spoken to without TLS.
    pub allow_http: bool,
    /// A file with the access key.
    pub access_key_file: Option<PathBuf>,
    /// A file with the secret key.
    pub secret_key_file: Option<PathBuf>,
}

/// How Slurm is asked.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Slurm {
    /// The clusters to ask about; only the local one if empty.
    #[serde(deserialize_with = "each_from_text")]
    pub clusters: Vec<ClusterName>,
    /// The command that stands for sacct, with arguments that come before ours.
    pub sacct: Vec<String>,
    /// The same for sacctmgr.
    pub sacctmgr: Vec<String>,
    /// The same for scontrol.
    pub scontrol: Vec<String>,
    /// The same for squeue.
    pub squeue: Vec<String>,
    /// The same for sinfo.
    pub sinfo: Vec<String>,
    /// The same for sshare.
    pub sshare: Vec<String>,
    /// The same for sdiag.
    pub sdiag: Vec<String>,
    /// The same for scancel.
    pub scancel: Vec<String>,
    /// How long one call may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
    /// Calls at a time.
    pub parallel: usize,
    /// How often a failed call is made again.
    pub retries: u32,
}

/// How jobs are collected.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Collect {
    /// Whether `steward serve` collects.
    pub enabled: bool,
    /// When it does.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
    /// Days before today that are collected.
    pub days: u32,
    /// How far before the end of the last collection the next one begins.
    #[serde(deserialize_with = "from_text")]
    pub overlap: Span,
    /// How long after its end a day may still change.
    #[serde(deserialize_with = "from_text")]
    pub grace: Span,
}

/// The Prometheus that collects from the agents.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Prometheus {
    /// Its address; without one, nothing that agents measured gets into the archive.
    pub url: Option<String>,
    /// How long one question may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
}

/// The Pushgateway that agents push to.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Pushgateway {
    /// Its address; nothing is deleted without one.
    pub url: Option<String>,
    /// How long one request may take.
    #[serde(deserialize_with = "from_text")]
    pub timeout: Span,
    /// The age from which an agent's group is deleted.
    #[serde(deserialize_with = "from_text")]
    pub stale_after: Span,
    /// When to look.
    #[serde(deserialize_with = "from_text")]
    pub schedule: Schedule,
}

/// Which group a user belongs to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Groups {
    /// Where groups come from; see [`Groups::source`].
    pub source: Option<GroupSource>,
    /// Groups and their users.
    pub members: BTreeMap<String, Vec<String>>,
}

/// Where groups of users come from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum GroupSource {
    /// The Slurm account of each job.
    Account,
    /// `groups.members`.
    Config,
    /// All groups that the system has the user in.
    Unix,
}

impl Groups {
    /// Where groups come from: as configured, else from `members` if there are any, else from
    /// Slurm's accounts.
    #[must_use]
    pub fn source(&self) -> GroupSource {
        match self.source {
            Some(source) => source,
            None if self.members.is_empty() => GroupSource::Account,
            None => GroupSource::Config,
        }
    }
}

/// The service.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    /// Address for /metrics, /healthz and /api.
    #[serde(deserialize_with = "listen")]
    pub listen: SocketAddr,
    /// Whether jobs and nodes are told there to whoever can reach it.
    pub api: bool,
    /// The Unix socket at which users of this machine ask.
    pub socket: PathBuf,
    /// Who may connect to it.
    #[serde(deserialize_with = "from_text")]
    pub socket_mode: Mode,
    /// Where the service keeps what it must know; who holds the lock in it leads.
    pub state: PathBuf,
}

/// The service's memory.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// Its file; see [`super::Config::store`].
    pub path: Option<PathBuf>,
    /// A database of PostgreSQL in place of the file.
    #[serde(deserialize_with = "from_text_option")]
    pub url: Option<Address>,
    /// A file with the password for it.
    pub password_file: Option<PathBuf>,
    /// How long states of jobs that were seen are kept.
    #[serde(deserialize_with = "from_text")]
    pub retention_states: Span,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            path: None,
            url: None,
            password_file: None,
            retention_states: Span(Duration::from_secs(90 * 86_400)),
        }
    }
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            directory: Location::Directory("/var/lib/steward/archive".into()),
            retention_raw: None,
            retention_processed: None,
            raw: true,
            s3: S3::default(),
        }
    }
}

impl Default for Slurm {
    fn default() -> Self {
        Self {
            clusters: Vec::new(),
            sacct: vec!["sacct".to_owned()],
            sacctmgr: vec!["sacctmgr".to_owned()],
            scontrol: vec!["scontrol".to_owned()],
            squeue: vec!["squeue".to_owned()],
            sinfo: vec!["sinfo".to_owned()],
            sshare: vec!["sshare".to_owned()],
            sdiag: vec!["sdiag".to_owned()],
            scancel: vec!["scancel".to_owned()],
            timeout: Span(Duration::from_secs(600)),
            parallel: 4,
            retries: 3,
        }
    }
}

impl Default for Collect {
    fn default() -> Self {
        Self {
            enabled: true,
            schedule: Schedule::constant("17 * * * *"),
            days: 1,
            overlap: Span(Duration::from_secs(3600)),
            grace: Span(Duration::from_secs(6 * 3600)),
        }
    }
}

impl Default for Prometheus {
    fn default() -> Self {
        Self { url: None, timeout: Span(Duration::from_secs(10)) }
    }
}

impl Default for Pushgateway {
    fn default() -> Self {
        Self {
            url: None,
            timeout: Span(Duration::from_secs(10)),
            stale_after: Span(Duration::from_secs(300)),
            schedule: Schedule::constant("* * * * *"),
        }
    }
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9867)),
            api: true,
            socket: "/run/steward/steward.sock".into(),
            socket_mode: Mode(0o666),
            state: "/var/lib/steward".into(),
        }
    }
}

fn listen<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        serde::de::Error::custom(format!(
            "serve.listen: {text:?} is no IP address with a port, such as 127.0.0.1:9867"
        ))
    })
}
