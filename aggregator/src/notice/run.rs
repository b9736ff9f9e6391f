//! A run: from what was found to mails that are on their way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steward_common::time::Timestamp;

use super::deliver::{Carrier, Delivered};
use super::plan::{HeldBack, Plan, Planned};
use super::restraint::Held;
use super::trouble;
use crate::config::Config;
use crate::mail::{Address, Content, Letter, Message, MessageId, Post, Template};
use crate::outlet::{self, Kind};
use crate::shutdown::Shutdown;
use crate::source::slurm::coordinators::{self, Coordinators};
use crate::source::slurm::settings;
use crate::store::Store;
use crate::store::post::{Delivery, Mail};

/// Mails that do not wait for a workday: about jobs that are to be cancelled, and of the bank.
pub const ANY_DAY: [&str; 2] = ["cancel", "bank"];

/// Whose mails are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipients {
    /// The users that findings are about.
    pub users: bool,
    /// The administrators.
    pub administrators: bool,
}

/// All that a run needs.
#[derive(Debug)]
pub struct Run<'a> {
    /// The settings.
    pub config: &'a Config,
    /// What was told before.
    pub store: &'a Store,
    /// Who writes and sends.
    pub post: &'a Post,
    /// Who is written to.
    pub recipients: Recipients,
    /// The present.
    pub now: Timestamp,
    /// Whether it is a day for mail.
    pub workday: bool,
    /// When to stop.
    pub shutdown: &'a Shutdown,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Done {
    /// The users who are told, with what they are told of.
    pub told: Vec<Planned>,
    /// The findings that nobody is told of.
    pub held: Vec<HeldBack>,
    /// What became of the mails, also of earlier ones.
    pub delivered: Delivered,
    /// What went wrong beside.
    pub warnings: Vec<String>,
}

impl Run<'_> {
    /// Writes, records and sends.
    ///
    /// # Errors
    /// If the store or a template cannot be used.
    pub async fn carry_out(&self, plan: Plan) -> anyhow::Result<Done> {
        let mut done = Done { held: plan.held, ..Done::default() };
        let coordinators = self.coordinators(&plan.planned, &mut done.warnings).await;
        for planned in plan.planned {
            if self.shutdown.is_due() {
                break;
            }
            match self.record(&planned, &coordinators, &mut done.warnings).await? {
                None => done.told.push(planned),
                Some(why) => done.held.extend(planned.held(why)),
            }
        }
        done.delivered = self.deliver().await?;
        self.publish(&done.delivered).await?;
        if let Some(content) = trouble::content(&done)
            && self.recipients.administrators
            && !self.config.mail.admins.is_empty()
        {
            let mail = self.to_administrators(Template::Trouble, None, content)?;
            self.store.plan_mails(&[mail], self.now).await?;
            done.delivered.add(self.deliver().await?);
        }
        Ok(done)
    }

    /// Tells webhooks who was written to.
    async fn publish(&self, delivered: &Delivered) -> anyhow::Result<()> {
        for one in delivered.sent.iter().filter(|one| one.kind == "digest") {
            let what = json!({ "user": one.about, "subject": one.subject, "message": one.message });
            let outlets = &self.config.outlets;
            // Copies to coordinators are the same event.
            outlet::tell(outlets, self.store, Kind::NoticeSent, &one.message, &what, self.now)
                .await?;
        }
        Ok(())
    }

    /// Hands over all that is due.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub async fn deliver(&self) -> anyhow::Result<Delivered> {
        let carrier = Carrier {
            store: self.store,
            post: self.post,
            config: &self.config.notices,
            // A dialogue has several steps, and each may take its time.
            patience: self.config.mail.smtp.timeout.0 * 6 + Duration::from_secs(10),
            shutdown: self.shutdown,
        };
        let exempt = self.store.exemptions_at(self.now).await?;
        // Somebody may have been exempted since the mail was written; by all rules, or it would be another mail.
        let spared = |user: &str| {
            exempt.iter().any(|one| one.user == user && one.rule.is_none() && one.cluster.is_none())
        };
        let may = |delivery: &Delivery| {
            ANY_DAY.contains(&&*delivery.kind) || (self.workday && !spared(&delivery.about))
        };
        Ok(carrier.deliver(may).await?)
    }

    /// Writes the mails of one user and records them; gives why not, if not.
    async fn record(
        &self,
        planned: &Planned,
        coordinators: &Coordinators,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Option<Held>> {
        let user = &planned.digest.user;
        let person = match self.post.person(user).await {
            Ok(person) => person,
            Err(error) => return Ok(Some(Held::Address(error.to_string()))),
        };
        let id = MessageId::random(self.post.from())?;
        let mut mails = Vec::new();
        if self.recipients.users {
            let cc = self.copied(planned, coordinators, warnings).await;
            let letter = Letter {
                template: Template::Digest,
                user: Some(user.clone()),
                to: person.address.clone(),
                cc: cc.clone(),
                about: None,
                id: id.clone(),
                content: Content::Digest(planned.digest.clone()),
            };
            let message = self.post.write(&letter, Some(&person))?;
            let to = std::iter::once(person.address.clone()).chain(cc);
            mails.push(mail("digest", user, message, to));
        }
        if self.recipients.administrators && !self.config.mail.admins.is_empty() {
            let content = Content::Digest(planned.digest.clone());
            mails.push(self.to_administrators(Template::Copy, Some(user), content)?);
            if let Some(content) = self.proposal(planned) {
                mails.push(self.to_administrators(Template::Proposal, Some(user), content)?);
            }
        }
        if !self.recipients.users {
            self.store.plan_mails(&mails, self.now).await?;
            return Ok(None);
        }
        let notices = planned.notices(&id.to_string(), self.now);
        let recorded = self.store.plan(&notices, &mails, self.now).await?;
        Ok((!recorded).then_some(Held::Raced))
    }

    fn to_administrators(
        &self,
        template: Template,
        about: Option<&str>,
        content: Content,
    ) -> anyhow::Result<Mail> {
        let admins = &self.config.mail.admins;
        let (first, others) = admins
            .split_first()
            .ok_or_else(|| anyhow::anyhow!("mail.admins is empty: there is nobody to write to"))?;
        let letter = Letter {
            template,
            user: None,
            to: first.clone(),
            cc: others.to_vec(),
            about: about.map(str::to_owned),
            id: MessageId::random(self.post.from())?,
            content,
        };
        let message = self.post.write(&letter, None)?;
        let kind = match template {
            Template::Copy => "copy",
            Template::Proposal => "proposal",
            _ => "trouble",
        };
        Ok(mail(kind, about.unwrap_or_default(), message, admins.iter().cloned()))
    }

    /// The coordinators of the accounts whose jobs a user is told of for the second time.
    async fn copied(
        &self,
        planned: &Planned,
        coordinators: &Coordinators,
        warnings: &mut Vec<String>,
    ) -> Vec<Address> {
        let mut people = BTreeSet::new();
        for (step, accounts) in planned.steps.iter().zip(&planned.accounts) {
            if self.config.notices.ladder.enabled && *step >= 2 {
                let of = accounts.iter().filter_map(|account| coordinators.get(account));
                people.extend(of.flatten().filter(|name| **name != planned.digest.user));
            }
        }
        let mut addresses = Vec::new();
        for name in people {
            match self.post.person(name).await {
                Ok(person) => addresses.push(person.address),
                Err(error) => {
                    warnings.push(format!("coordinator {name} gets no copy: {error}"));
                }
            }
        }
        addresses
    }

    /// What the administrators might do about a user who has heard of something twice.
    fn proposal(&self, planned: &Planned) -> Option<Content> {
        let steps = planned.digest.items.iter().zip(&planned.steps);
        let again: Vec<_> = steps
            .filter(|(_, step)| self.config.notices.ladder.enabled && **step >= 3)
            .map(|(item, _)| item.clone())
            .collect();
        (!again.is_empty()).then(|| {
            Content::Digest(super::digest::Digest { items: again, ..planned.digest.clone() })
        })
    }

    /// Who looks after accounts, if anybody is to know.
    async fn coordinators(&self, planned: &[Planned], warnings: &mut Vec<String>) -> Coordinators {
        let wanted = self.config.notices.ladder.enabled
            && planned.iter().any(|one| one.steps.iter().any(|step| *step >= 2));
        if !wanted {
            return Coordinators::new();
        }
        let argv = self.config.slurm.sacctmgr.clone();
        let (limit, shutdown) = (self.config.slurm.timeout.0, self.shutdown.clone());
        let asked = tokio::task::spawn_blocking(move || {
            let stop: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(move || shutdown.is_due());
            settings::text(&argv, &coordinators::QUESTION, limit, &stop)
        });
        match asked.await.map_err(anyhow::Error::from).and_then(|text| Ok(text?)) {
            Ok(text) => coordinators::parse(&text),
            Err(error) => {
                warnings.push(format!("no coordinator gets a copy: {error:#}"));
                Coordinators::new()
            }
        }
    }
}

/// A written mail, as the store keeps it.
pub fn mail(
    kind: &str,
    about: &str,
    message: Message,
    to: impl IntoIterator<Item = Address>,
) -> Mail {
    Mail {
        id: message.id.to_string(),
        kind: kind.to_owned(),
        about: about.to_owned(),
        subject: message.subject,
        text: String::from_utf8_lossy(&message.raw).into_owned(),
        to: to.into_iter().map(|address| address.to_string()).collect(),
    }
}
