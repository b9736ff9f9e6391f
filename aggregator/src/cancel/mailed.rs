//! Notes as mails.

use std::sync::Arc;

use steward_common::time::Timestamp;

use super::note::{Kind, Messenger, Note, Program, Told};
use crate::config::Config;
use crate::mail::{Content, Letter, MessageId, Post, Section, Template};
use crate::notice::run::{ANY_DAY, Recipients, Run, mail};
use crate::outlet;
use crate::output::sheet::{Cell, Sheet, always, drop, hide};
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::post::Fate;

/// Writes to the owners of jobs, on any day.
#[derive(Debug)]
pub struct Mailer {
    /// The settings.
    pub config: Arc<Config>,
    /// What was told before.
    pub store: Store,
    /// Who writes and sends.
    pub post: Post,
    /// When to stop.
    pub shutdown: Shutdown,
}

/// Who tells the owners of jobs.
#[derive(Debug)]
pub enum Way {
    /// A program of the site.
    Program(Program),
    /// Mail.
    Mail(Box<Mailer>),
}

/// Tells the owners of jobs, and webhooks what they were told.
#[derive(Debug)]
pub struct Voice {
    /// By whom owners are told.
    pub way: Way,
    /// The settings.
    pub config: Arc<Config>,
    /// Where webhooks' events wait.
    pub store: Store,
}

impl Messenger for Voice {
    async fn tell(&self, note: &Note) -> Result<Told, String> {
        let told = match &self.way {
            Way::Program(program) => program.tell(note).await,
            Way::Mail(mailer) => mailer.tell(note).await,
        }?;
        if told == Told::HandedOver {
            let kind = match note.kind {
                Kind::Cancelled => outlet::Kind::JobCancelled,
                _ => outlet::Kind::JobWarned,
            };
            let now = Timestamp::new(jiff::Timestamp::now().as_second());
            let (outlets, what) = (&self.config.outlets, note.value());
            let event = outlet::tell(outlets, &self.store, kind, &note.id, &what, now).await;
            // The owner knows: that is what counts.
            if let Err(error) = event {
                tracing::warn!("no webhook hears of job {}: {error}", note.job);
            }
        }
        Ok(told)
    }
}

impl Messenger for Mailer {
    async fn tell(&self, note: &Note) -> Result<Told, String> {
        self.mail(note).await.map_err(|error| format!("{error:#}"))
    }
}

impl Mailer {
    async fn mail(&self, note: &Note) -> anyhow::Result<Told> {
        let person = self.post.person(&note.user).await?;
        // The same note has the same name, however often it is told: the store takes it once.
        let id = MessageId::same(&note.id, self.post.from());
        let name = id.to_string();
        let template = match note.kind {
            Kind::Cancelled => Template::Cancelled,
            Kind::Warning1 | Kind::Warning2 | Kind::SlidingWarning => Template::Warning,
        };
        let section = Section { sheet: Some(self.table(note)), ..Section::default() };
        let letter = Letter {
            template,
            user: Some(note.user.clone()),
            to: person.address.clone(),
            cc: Vec::new(),
            about: None,
            id,
            content: Content::Sections(vec![section]),
        };
        let message = self.post.write(&letter, Some(&person))?;
        let mail = mail(ANY_DAY[0], &note.user, message, [person.address.clone()]);
        let now = Timestamp::new(jiff::Timestamp::now().as_second());
        self.store.plan_once(&mail, now).await?;
        let run = Run {
            config: &self.config,
            store: &self.store,
            post: &self.post,
            recipients: Recipients { users: true, administrators: false },
            now,
            workday: false,
            shutdown: &self.shutdown,
        };
        run.deliver().await?;
        let fates = self.store.fates(&name).await?;
        let (fate, said) = fates.into_iter().next().unwrap_or((Fate::Unknown, String::new()));
        match fate {
            // Nobody knows whether he has it: to warn twice is better than to cancel unwarned.
            Fate::Unknown if note.kind != Kind::Cancelled => {
                anyhow::bail!("nobody knows whether {} was warned: {said}", note.user)
            }
            Fate::Sent | Fate::Unknown => Ok(Told::HandedOver),
            Fate::GivenUp => anyhow::bail!("{} cannot be written to: {said}", note.user),
            Fate::Planned | Fate::Begun | Fate::Waiting => Ok(Told::NotNow(said)),
        }
    }

    fn table(&self, note: &Note) -> Sheet {
        let zone = self.config.zone();
        let none: [&(); 0] = [];
        let mut sheet = Sheet::new("jobs", "", &[], none);
        sheet.columns = vec![
            always("job", "Job"),
            always("cluster", "Cluster"),
            drop(1, "partition", "Partition"),
            always("gpus", "GPUs"),
            always("gpus_idle", "GPUs idle"),
            always("hours", "Hours"),
            hide(0, "cancel_at", "Cancelled from"),
        ];
        let count =
            |number: Option<u32>| number.map_or(Cell::Missing, |number| Cell::Count(number.into()));
        let cancel = note.cancel_at.and_then(|at| jiff::Timestamp::from_second(at.get()).ok());
        let cancel = cancel.map(|at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M %Z").to_string());
        sheet.rows = vec![vec![
            Cell::text(&note.job),
            Cell::text(&note.cluster),
            note.partition.as_ref().map_or(Cell::Missing, Cell::text),
            count(note.gpus),
            count(note.gpus_idle),
            Cell::number(note.hours),
            cancel.map_or(Cell::Missing, Cell::text),
        ]];
        sheet
    }
}
