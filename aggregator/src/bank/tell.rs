//! Who is told about an account, and when: its coordinators, or the administrators if it has none; once for each level and
//! period. A mail is recorded in the same transaction as the level that it tells of.

use steward_common::bank::{Day, Entry, Level};

use super::letter::{self, Fate};
use super::slurm::Place;
use super::view::View;
use super::{Bank, now, settings};
use crate::mail::{Content, Letter, MessageId, Post, Template};
use crate::notice::run::{ANY_DAY, Recipients, Run, mail};
use crate::output::bank::{Month, month_of};
use crate::source::slurm::coordinators::Coordinators;
use crate::store::StoreError;
use crate::store::post::Mail;

/// Whether and how somebody is told.
#[derive(Debug)]
pub enum Voice {
    /// Nobody is: levels are only recorded.
    Off,
    /// By mail.
    On(Box<Teller>),
    /// Mail is on and cannot be used now: levels are recorded when it can.
    Mute,
}

/// Who writes, and to whom.
#[derive(Debug)]
pub struct Teller {
    post: Post,
    coordinators: Coordinators,
}

/// Somebody who is written to.
struct Reader {
    user: Option<String>,
    person: Option<crate::mail::Person>,
    to: Vec<crate::mail::Address>,
}

/// Statements that are to be sent.
#[derive(Clone, Debug)]
pub struct Due {
    /// The first day of the month.
    pub from: Day,
    /// The first day of the next.
    pub to: Day,
    /// Of which accounts.
    pub accounts: Vec<String>,
}

impl Bank {
    /// How somebody is told now; what is wrong with it goes to `troubles`.
    pub async fn voice(&self, troubles: &mut Vec<String>) -> Voice {
        if !self.config.bank.mail || self.dry {
            return Voice::Off;
        }
        match self.teller().await {
            Ok(teller) => Voice::On(Box::new(teller)),
            Err(error) => {
                troubles.push(format!("nobody is told by mail: {error:#}"));
                Voice::Mute
            }
        }
    }

    async fn teller(&self) -> anyhow::Result<Teller> {
        let post = Post::open(&self.config)?;
        let coordinators = self
            .slurm
            .coordinators()
            .await
            .map_err(|why| anyhow::anyhow!("coordinators: {why}"))?;
        Ok(Teller { post, coordinators })
    }

    /// Notes that a level is reached, with the mails about it; whether that is news.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub async fn tell_level(
        &self,
        voice: &Voice,
        level: Level,
        view: &View,
        places: &[Place],
        troubles: &mut Vec<String>,
    ) -> Result<bool, StoreError> {
        let template = if level == Level::Over { Template::Held } else { Template::Level };
        let content = match voice {
            Voice::Mute => return Ok(false),
            Voice::Off => None,
            Voice::On(_) if level == Level::Over => {
                Some(letter::held(view, self.fate(view, places).await))
            }
            Voice::On(_) => Some(letter::level(view)),
        };
        let name = &view.account.name;
        let Some(mails) = self.mails(voice, template, name, content, troubles).await else {
            return Ok(false);
        };
        self.store.note_level(name, level, &mails, now()).await
    }

    /// The same for the end of its proposal.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub async fn tell_end(
        &self,
        voice: &Voice,
        view: &View,
        troubles: &mut Vec<String>,
    ) -> Result<bool, StoreError> {
        let content = match voice {
            Voice::Mute => return Ok(false),
            Voice::Off => None,
            Voice::On(_) => Some(letter::ending(view, self.config.bank.enforce_end_date)),
        };
        let name = &view.account.name;
        let mails = self.mails(voice, Template::Ending, name, content, troubles).await;
        let Some(mails) = mails else { return Ok(false) };
        self.store.note_end(name, &mails, now()).await
    }

    /// Statements of the last month that are to be sent now, if there are any: from the second day of a month on, when the
    /// last day of the one before is charged.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn due_statements(
        &self,
        voice: &Voice,
        today: Day,
    ) -> Result<Option<Due>, StoreError> {
        let (Voice::On(_), true) = (voice, self.config.bank.statements) else { return Ok(None) };
        let Some((from, to)) = last_month(today) else { return Ok(None) };
        let mut accounts = Vec::new();
        for name in self.store.without_statement(&month_of(from)).await? {
            // Of an account that was not there yet there is nothing to tell.
            let was_there = |first: &Entry| self.day_at(first.at.get()) < to;
            if self.looks_at(&name)
                && self.store.entries(&name).await?.first().is_some_and(was_there)
            {
                accounts.push(name);
            }
        }
        Ok((!accounts.is_empty()).then_some(Due { from, to, accounts }))
    }

    /// Tells what accounts got and used in a month, once. How many were told.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read.
    pub async fn tell_statements(
        &self,
        voice: &Voice,
        due: &Due,
        troubles: &mut Vec<String>,
    ) -> anyhow::Result<usize> {
        let Due { from, to, accounts } = due;
        let asked = self.ask().await?;
        let mut views = self.views(None, Some(&asked)).await?;
        views.retain(|view| accounts.contains(&view.account.name));
        let mut told = 0;
        for view in &views {
            let name = &view.account.name;
            let entries = self.store.entries(name).await?;
            let month = Month::new(name, &entries, *from, *to, |at| self.day_at(at));
            let content = letter::statement(view, month.unlimited(view.account.unlimited), *from);
            let mails = self.mails(voice, Template::Statement, name, Some(content), troubles).await;
            let Some(mails) = mails else { continue };
            let is_news = self.store.note_statement(name, &month_of(*from), &mails, now()).await?;
            told += usize::from(is_news && !mails.is_empty());
        }
        Ok(told)
    }

    /// Hands over what is due.
    pub async fn deliver(&self, voice: &Voice, troubles: &mut Vec<String>) {
        let Voice::On(teller) = voice else { return };
        let run = Run {
            config: &self.config,
            store: &self.store,
            post: &teller.post,
            recipients: Recipients { users: true, administrators: true },
            now: now(),
            workday: false,
            shutdown: &self.shutdown,
        };
        let delivered = match run.deliver().await {
            Ok(delivered) => delivered,
            Err(error) => {
                troubles.push(format!("no mail is sent: {error:#}"));
                return;
            }
        };
        if let Some(why) = &delivered.down {
            troubles.push(format!("mails wait until the mail server can be used: {why}"));
        }
        for (what, all) in [
            ("was refused and is tried again", &delivered.waiting),
            ("was refused too often and is given up", &delivered.given_up),
            ("is lost or not, nobody knows", &delivered.unknown),
        ] {
            for one in all {
                troubles.push(format!("the mail to {} {what}: {}", one.address, one.said));
            }
        }
    }

    /// What becomes of jobs where the account is held.
    async fn fate(&self, view: &View, places: &[Place]) -> Fate {
        let mechanism = self.config.bank.hold;
        let mut safe = Some(true);
        for place in places.iter().filter(|place| view.held().any(|held| held == place.name)) {
            let told = self.slurm.settings(place).await;
            match told.map(|told| settings::is_safe(&told)) {
                Ok(true) => {}
                Ok(false) => return Fate::new(mechanism, Some(false)),
                Err(_) => safe = None,
            }
        }
        Fate::new(mechanism, safe)
    }

    /// The mails about an account, one for each reader; `None` if they cannot be written now.
    async fn mails(
        &self,
        voice: &Voice,
        template: Template,
        account: &str,
        content: Option<Content>,
        troubles: &mut Vec<String>,
    ) -> Option<Vec<Mail>> {
        let (Voice::On(teller), Some(content)) = (voice, content) else { return Some(Vec::new()) };
        let readers = self.readers(teller, account, troubles).await;
        if readers.is_empty() {
            troubles.push(format!(
                "there is nobody to tell about account {account}: it has no coordinator with an \
                 address (sacctmgr add coordinator account={account} names=USER), and mail.admins \
                 is empty"
            ));
            // Nobody would come by trying again; the level is recorded.
            return Some(Vec::new());
        }
        let write = |reader: Reader| -> anyhow::Result<Mail> {
            let (first, others) =
                reader.to.split_first().ok_or_else(|| anyhow::anyhow!("there is no address"))?;
            let letter = Letter {
                template,
                user: reader.user.clone(),
                to: first.clone(),
                cc: others.to_vec(),
                about: Some(account.to_owned()),
                id: MessageId::random(teller.post.from())?,
                content: content.clone(),
            };
            let message = teller.post.write(&letter, reader.person.as_ref())?;
            Ok(mail(BANK, account, message, reader.to.iter().cloned()))
        };
        match readers.into_iter().map(write).collect::<anyhow::Result<Vec<_>>>() {
            Ok(mails) => Some(mails),
            Err(error) => {
                troubles.push(format!("account {account}: no mail was written: {error:#}"));
                None
            }
        }
    }

    /// The coordinators, else the administrators together.
    async fn readers(
        &self,
        teller: &Teller,
        account: &str,
        troubles: &mut Vec<String>,
    ) -> Vec<Reader> {
        let mut readers = Vec::new();
        for user in teller.coordinators.get(account).into_iter().flatten() {
            match teller.post.person(user).await {
                Ok(person) => readers.push(Reader {
                    user: Some(user.clone()),
                    to: vec![person.address.clone()],
                    person: Some(person),
                }),
                Err(error) => troubles.push(format!("coordinator {user} is not told: {error}")),
            }
        }
        let admins = &self.config.mail.admins;
        if readers.is_empty() && !admins.is_empty() {
            readers.push(Reader { user: None, person: None, to: admins.clone() });
        }
        readers
    }
}

/// What bank mails are called in the store.
const BANK: &str = ANY_DAY[1];

/// The first day of the last month and of this one; `None` on the first day of a month.
fn last_month(today: Day) -> Option<(Day, Day)> {
    let first = |day: Day| format!("{}-01", month_of(day)).parse::<Day>().ok();
    let this = first(today).filter(|first| *first < today)?;
    Some((first(this.plus(-1)?)?, this))
}

#[cfg(test)]
mod tests;
