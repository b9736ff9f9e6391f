//! The part of `steward evaluate` that writes to people.

use std::time::Duration;

use serde_json::{Value, json as value};
use steward_common::rule::Instance;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::BadInput;
use crate::config::Config;
use crate::evaluate::Judged;
use crate::mail::{Content, Letter, MessageId, Post, Section, Template};
use crate::notice::run::{Done, Recipients, Run};
use crate::notice::{
    self,
    plan::{Plan, Planned},
};
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::output::sheet::{Document, Sheet};
use crate::output::{json, notices};
use crate::shutdown::Shutdown;
use crate::store::Store;

/// What is sent to whom.
#[derive(Clone, Debug, clap::Args)]
pub struct Email {
    /// Send what is found: a mail to each user, and copies to mail.admins. Without it the text says what would be sent.
    #[arg(long)]
    email: bool,
    /// With --email: nothing to users, and nothing is recorded as told; only the copies.
    #[arg(long, requires = "email")]
    no_emails_to_users: bool,
    /// With --email: no copies to administrators.
    #[arg(long, requires = "email")]
    no_emails_to_admins: bool,
    /// Mail this report to mail.report, on any day.
    #[arg(long)]
    report: bool,
    /// A user is not told of a rule again for so many days, instead of notices.quiet.
    #[arg(long, value_name = "N")]
    quiet_days: Option<u16>,
}

/// What came of it.
#[derive(Debug)]
pub struct Told {
    /// For people.
    pub sheets: Vec<Sheet>,
    /// For programs.
    pub json: Value,
    /// What went wrong.
    pub warnings: Vec<String>,
}

impl Email {
    /// Whether anything may be sent.
    pub fn sends(&self) -> bool {
        self.email || self.report
    }

    /// What must be true before anything is asked of Slurm.
    ///
    /// # Errors
    /// If mail cannot work, or the window is not the present.
    pub fn check(&self, config: &Config, explicit_window: bool) -> anyhow::Result<()> {
        if self.email && explicit_window {
            let message =
                "--email tells of the last days: leave out --starttime and --endtime, use --days";
            return Err(BadInput(message.to_owned()).into());
        }
        if self.sends() {
            config.mail.ready()?;
        }
        if self.report && config.mail.report.is_empty() {
            let message = "--report: mail.report names nobody; add an address to steward.toml";
            return Err(BadInput(message.to_owned()).into());
        }
        Ok(())
    }

    /// Decides who is told, and tells them if that is wanted.
    ///
    /// # Errors
    /// If the store, a template or the mail settings cannot be used.
    pub async fn act(
        &self,
        config: &Config,
        found: (&[Judged], &[Instance]),
        window: Window,
        now: Timestamp,
        shutdown: &Shutdown,
    ) -> anyhow::Result<Told> {
        let quiet = self.quiet_days.map(|days| Duration::from_secs(86_400) * days.into());
        let store = if self.email {
            Some(Store::at(config.store()).await?)
        } else {
            Store::existing(config.store()).await?
        };
        let plan = notice::prepare(config, store.as_ref(), found, window, quiet, now).await?;
        let told = match &store {
            Some(store) if self.email => {
                let post = Post::open(config)?;
                let run = Run {
                    config,
                    store,
                    post: &post,
                    recipients: Recipients {
                        users: !self.no_emails_to_users,
                        administrators: !self.no_emails_to_admins,
                    },
                    now,
                    workday: notice::no_day(config, now)?.is_none(),
                    shutdown,
                };
                done(run.carry_out(plan).await?, config)
            }
            _ => would(&plan),
        };
        if let Some(store) = store {
            store.close().await;
        }
        Ok(told)
    }

    /// Mails the report, if that is wanted.
    ///
    /// # Errors
    /// If it could not be handed over.
    pub async fn report(&self, config: &Config, document: &Document) -> anyhow::Result<()> {
        if !self.report {
            return Ok(());
        }
        let post = Post::open(config)?;
        let text = format::write(document, Format::Table, Screen::file(), None);
        for address in &config.mail.report {
            let section = Section { text: Some(text.clone()), ..Section::default() };
            let letter = Letter {
                template: Template::Report,
                user: None,
                to: address.clone(),
                cc: Vec::new(),
                about: None,
                id: MessageId::random(post.from())?,
                content: Content::Sections(vec![section]),
            };
            let message = post.write(&letter, None)?;
            post.send(&message.raw, address).await?;
        }
        Ok(())
    }
}

fn would(plan: &Plan) -> Told {
    let told = notices::told("Would be told", &plan.planned);
    let held = notices::held(&plan.held);
    let json = value!({
        "sent": false,
        "told": json::rows(&told, None),
        "held": json::rows(&held, None),
    });
    Told { sheets: vec![told, held], json, warnings: Vec::new() }
}

fn done(done: Done, config: &Config) -> Told {
    let delivered = &done.delivered;
    let open: Vec<_> = [&delivered.waiting, &delivered.given_up, &delivered.unknown]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let sent = |one: &Planned| {
        delivered.sent.iter().any(|sent| sent.kind == "digest" && sent.about == one.digest.user)
    };
    let (told, later): (Vec<Planned>, Vec<Planned>) = done.told.into_iter().partition(sent);
    let (told, held) = (notices::told("Told", &told), notices::held(&done.held));
    let later = notices::told("Recorded, and not with the mail server yet", &later);
    let left = notices::open(&open, &config.zone());
    let json = value!({
        "sent": true,
        "told": json::rows(&told, None),
        "recorded": json::rows(&later, None),
        "held": json::rows(&held, None),
        "open": json::rows(&left, None),
        "mails_sent": delivered.sent.len(),
    });
    let mut warnings = done.warnings;
    if let Some(why) = &delivered.down {
        warnings.push(format!(
            "the mail server cannot be used, the mails wait for the next run: {why}"
        ));
    }
    for one in &open {
        warnings.push(format!("mail to {}: {}: {}", one.address, one.fate.name(), one.said));
    }
    Told { sheets: vec![told, later, held, left], json, warnings }
}
