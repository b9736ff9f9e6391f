//! `steward doctor`: whether everything that Steward needs is there, and what to do if not.
//!
//! To add a check: a file with `async fn check(patient: Arc<Patient>) -> Vec<Finding>`, its `mod`
//! line and its line in [`CHECKS`].

mod accounting;
mod agents;
mod archive;
mod bank;
mod clock;
mod prometheus;
mod purge;
mod pushgateway;
mod rights;
mod sacct;
mod service;
mod settings;
mod zone;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::config::{Config, Location};
use crate::source::slurm::sacct::Stop;
use crate::source::slurm::settings::{Settings, text};

/// How long one call of a command or a server may take.
const CALL: Duration = Duration::from_secs(10);

/// How long one check may take. They are made side by side, so this is also how long all take.
const CHECK: Duration = Duration::from_secs(40);

/// How well something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Good,
    /// Works, but somebody should know.
    Note,
    /// Does not work.
    Trouble,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// How it stands.
    pub mark: Mark,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub advice: Option<String>,
}

fn good(text: impl Into<String>) -> Finding {
    Finding { subject: "", mark: Mark::Good, text: text.into(), advice: None }
}

fn note(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { mark: Mark::Note, advice: Some(advice.into()), ..good(text) }
}

fn trouble(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { mark: Mark::Trouble, advice: Some(advice.into()), ..good(text) }
}

/// A check.
type Check = fn(Arc<Patient>) -> Pin<Box<dyn Future<Output = Vec<Finding>> + Send>>;

/// Every check, in the order in which they build on one another.
pub const CHECKS: &[(&str, Check)] = &[
    ("settings", |patient| Box::pin(settings::check(patient))),
    ("time zone", |patient| Box::pin(zone::check(patient))),
    ("sacct", |patient| Box::pin(sacct::check(patient))),
    ("rights", |patient| Box::pin(rights::check(patient))),
    ("accounting", |patient| Box::pin(accounting::check(patient))),
    ("bank", |patient| Box::pin(bank::check(patient))),
    ("purge", |patient| Box::pin(purge::check(patient))),
    ("clock", |patient| Box::pin(clock::check(patient))),
    ("archive", |patient| Box::pin(archive::check(patient))),
    ("service", |patient| Box::pin(service::check(patient))),
    ("prometheus", |patient| Box::pin(prometheus::check(patient))),
    ("agents", |patient| Box::pin(agents::check(patient))),
    ("pushgateway", |patient| Box::pin(pushgateway::check(patient))),
];

/// What is looked at, and what several checks want to know.
pub struct Patient {
    /// The settings that hold.
    pub config: Config,
    /// Why those of the file do not.
    pub settings: Option<String>,
    /// The archive.
    pub place: Location,
    /// Says whether to stop.
    pub stop: Stop,
    controller: OnceCell<Result<Told, String>>,
    database: OnceCell<Result<Settings, String>>,
}

/// What slurmctld said, and when.
#[derive(Clone, Debug)]
struct Told {
    settings: Settings,
    asked: Timestamp,
    answered: Timestamp,
}

impl Patient {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(config: Config, settings: Option<String>, place: Location, stop: Stop) -> Self {
        let (controller, database) = (OnceCell::new(), OnceCell::new());
        Self { config, settings, place, stop, controller, database }
    }

    /// What a command of Slurm prints.
    async fn slurm(&self, argv: &[String], arguments: &[&str]) -> Result<String, String> {
        let (argv, stop) = (argv.to_vec(), Arc::clone(&self.stop));
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            text(&argv, &arguments, CALL, &stop)
        });
        match asked.await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(in_short(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// `scontrol show config`, asked once.
    async fn controller(&self) -> &Result<Told, String> {
        let ask = || async {
            let asked = Timestamp::now();
            let text = self.slurm(&self.config.slurm.scontrol, &["show", "config"]).await?;
            let (settings, answered) = (Settings::parse(&text), Timestamp::now());
            if settings.is_empty() {
                return Err("scontrol show config says nothing".to_owned());
            }
            Ok(Told { settings, asked, answered })
        };
        self.controller.get_or_init(ask).await
    }

    /// `sacctmgr show configuration`, asked once.
    async fn database(&self) -> &Result<Settings, String> {
        let ask = || async {
            let arguments = ["-n", "-P", "show", "configuration"];
            let text = self.slurm(&self.config.slurm.sacctmgr, &arguments).await?;
            let settings = Settings::parse(&text);
            match settings.get("SLURMDBD_VERSION") {
                Some(_) => Ok(settings),
                None => Err("sacctmgr show configuration says nothing about slurmdbd".to_owned()),
            }
        };
        self.database.get_or_init(ask).await
    }
}

/// The error of a command without the advice that is meant for collections.
fn in_short(error: &crate::source::slurm::command::CommandError) -> String {
    use crate::source::slurm::command::CommandError;

    match error {
        CommandError::NotStarted { command, source } => format!("{command}: {source}"),
        CommandError::TooSlow { command, limit } => {
            format!("{command}: no answer within {} s", limit.as_secs())
        }
        other => other.to_string(),
    }
}

/// Makes all checks, side by side. One that fails, panics or hangs does not touch the others.
pub async fn examine(patient: Patient) -> Vec<Finding> {
    let patient = Arc::new(patient);
    let begun: Vec<_> = CHECKS
        .iter()
        .map(|(name, check)| {
            let found = tokio::time::timeout(CHECK, check(Arc::clone(&patient)));
            (*name, tokio::spawn(found))
        })
        .collect();
    let mut all = Vec::new();
    for (name, found) in begun {
        let found = match found.await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => vec![trouble(
                format!("no answer within {} s", CHECK.as_secs()),
                "something that it asks hangs: a file system, a server or the directory of users",
            )],
            Err(error) => {
                vec![trouble(error.to_string(), "this is a defect of steward: report it")]
            }
        };
        all.extend(found.into_iter().map(|one| Finding { subject: name, ..one }));
    }
    all
}

/// Whether anything does not work.
#[must_use]
pub fn has_trouble(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.mark == Mark::Trouble)
}
