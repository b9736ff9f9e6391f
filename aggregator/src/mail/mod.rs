//! Mail: from what is to be said to what a mail server has taken.
//!
//! ```text
//! Letter ─ [`Post::write`]: templates, words of the language, charts ─> Message ─ [`Post::send`] ─> SMTP, sendmail, maildir
//! ```
//!
//! Nothing here decides whether something is sent: that is the part of `notice` and `cancel`.

mod chart;
mod compose;
mod ldap;
mod letter;
mod person;
mod sample;
mod sentence;
mod table;
mod template;
mod transport;
mod view;
mod words;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Once;

use lettre::message::Mailbox;
use minijinja::Value;
use minijinja::value::Serde;
use tokio::sync::Mutex;

pub use compose::Message;
pub use letter::{Account, Content, Letter, MessageId, Section, Template};
pub use lettre::Address;
pub use person::{AddressError, Person};
pub use sample::{HOSTILE, letter as sample};
pub use template::TemplateError;
pub use transport::SendError;

use crate::config::{Config, ConfigError, Mail};
use compose::{Parts, Sender};
use ldap::Directory;
use template::{Language, Languages, Part};
use transport::Transport;
use view::ChartView;

/// Why mail cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting is missing.
    #[error(transparent)]
    NotReady(#[from] ConfigError),
    /// A template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A file cannot be read: a password, a certificate, a directory.
    #[error("{0}")]
    File(String),
}

/// All that is needed to write and send mails. Made anew for each run: users are looked up once in its
/// life.
#[derive(Debug)]
pub struct Post {
    mail: Mail,
    sender: Sender,
    languages: Languages,
    directory: Option<Directory>,
    transport: Transport,
    known: Mutex<HashMap<String, Result<Person, AddressError>>>,
}

impl Post {
    /// Reads templates and secrets; connects to nothing yet.
    ///
    /// # Errors
    /// If a setting is missing or a file cannot be used.
    pub fn open(config: &Config) -> Result<Post, OpenError> {
        let mail = &config.mail;
        mail.ready()?;
        let directory = if mail.asks_ldap() {
            Some(Directory::open(&mail.ldap).map_err(OpenError::File)?)
        } else {
            None
        };
        let transport = Transport::open(mail).map_err(OpenError::File)?;
        Ok(Post { directory, transport, ..Post::preview(config)? })
    }

    /// The same where mails are only shown: needs no settings, looks up no user elsewhere, sends nothing.
    ///
    /// # Errors
    /// If a template cannot be used.
    pub fn preview(config: &Config) -> Result<Post, OpenError> {
        let mail = config.mail.clone();
        let languages = Languages::read(mail.templates.as_deref())?;
        for language in std::iter::once(&mail.language).chain(mail.languages.values()) {
            languages.get(language)?;
        }
        Ok(Post {
            sender: sender(&mail),
            languages,
            directory: None,
            transport: Transport::None,
            known: Mutex::new(HashMap::new()),
            mail,
        })
    }

    /// Who writes; for [`MessageId::random`].
    #[must_use]
    pub fn from(&self) -> &Address {
        &self.sender.from.email
    }

    /// Address and name of a user, looked up once.
    ///
    /// # Errors
    /// If there is no address.
    pub async fn person(&self, user: &str) -> Result<Person, AddressError> {
        if let Some(known) = self.known.lock().await.get(user) {
            return known.clone();
        }
        let found = person::look_up(user, &self.mail, self.directory.as_ref()).await;
        self.known.lock().await.insert(user.to_owned(), found.clone());
        found
    }

    /// Writes a mail; `person` is the user whose language and name it has.
    ///
    /// # Errors
    /// If a template wants what there is not.
    pub fn write(
        &self,
        letter: &Letter,
        person: Option<&Person>,
    ) -> Result<Message, TemplateError> {
        let name = self.mail.language_of(letter.user.as_deref());
        let picture = self.picture(letter, self.languages.get(name)?);
        self.write_in(name, letter, person, picture)
    }

    fn write_in(
        &self,
        name: &str,
        letter: &Letter,
        person: Option<&Person>,
        picture: Option<(ChartView, Vec<u8>)>,
    ) -> Result<Message, TemplateError> {
        let language = self.languages.get(name)?;
        let mut view = view::view(letter, person, (name, &language.words), &self.mail);
        let picture = picture.map(|(chart, png)| {
            let cid = chart.cid.clone();
            view.chart = Some(chart);
            (cid, png)
        });
        let view = Value::from(Serde(&view));
        let render = |part| language.render(letter.template, part, &view);
        let parts = Parts {
            subject: render(Part::Subject)?,
            text: tidy(&render(Part::Text)?),
            html: render(Part::Html)?,
            picture,
            language: name.to_owned(),
        };
        compose::compose(letter, parts, &self.sender).map_err(|message| TemplateError {
            file: letter.template.name().to_owned(),
            line: None,
            message,
        })
    }

    /// The chart, where it helps and can be drawn. A mail without one is better than none.
    fn picture(&self, letter: &Letter, language: &Language) -> Option<(ChartView, Vec<u8>)> {
        static TOLD: Once = Once::new();
        let bars = view::bars(&letter.content, &language.words)?;
        let said: Vec<String> =
            bars.bars.iter().take(8).map(|bar| format!("{}: {}", bar.label, bar.text)).collect();
        let drawn = chart::font(&self.mail.font).and_then(|()| chart::draw(bars.bars));
        let picture = drawn.unwrap_or_else(|error| {
            TOLD.call_once(|| tracing::warn!("mails have no charts: {error}"));
            None
        })?;
        let view = ChartView {
            cid: format!("chart.{}", letter.id),
            alt: format!("{} ({})", bars.title, said.join("; ")),
            title: bars.title,
            width: chart::WIDTH,
            height: picture.height,
        };
        Some((view, picture.png))
    }

    /// Hands a mail over for one recipient: one call for each of those in To and Cc.
    ///
    /// # Errors
    /// If it was not taken, or nobody knows.
    pub async fn send(&self, raw: &[u8], to: &Address) -> Result<(), SendError> {
        self.transport.send(raw, &self.sender.from.email, to).await
    }

    /// Renders every template of every language.
    ///
    /// # Errors
    /// If one cannot be: names file and line.
    pub fn try_all(&self) -> Result<(), TemplateError> {
        for language in self.languages.names() {
            for template in Template::ALL {
                for letter in sample::letters(template) {
                    let person =
                        Person { address: letter.to.clone(), name: Some("Ada".to_owned()) };
                    let person = letter.user.is_some().then_some(&person);
                    // With the frame of a picture; the picture itself is no template.
                    let chart = (ChartView::sample(), Vec::new());
                    self.write_in(language, &letter, person, Some(chart))?;
                }
            }
        }
        Ok(())
    }
}

/// What holds for mail, in a line; every template of every language is rendered for it.
///
/// # Errors
/// If a template cannot be used: names file and line.
pub fn check(config: &Config) -> Result<String, ConfigError> {
    let tried = Post::preview(config).and_then(|post| Ok((post.try_all()?, post).1));
    let post =
        tried.map_err(|error| ConfigError::senseless("mail.templates", error.to_string()))?;
    let languages: Vec<&str> = post.languages.names().collect();
    let mail = &config.mail;
    let way = match mail.transport {
        crate::config::Transport::Smtp => format!("{}:{}", mail.smtp.host, mail.smtp.port()),
        crate::config::Transport::Sendmail => mail.sendmail.join(" "),
        crate::config::Transport::Maildir => {
            mail.maildir.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        }
    };
    Ok(match mail.ready() {
        Ok(()) => format!("by {way}, in {} (known: {})", mail.language, languages.join(", ")),
        Err(missing) => format!("cannot be sent yet: {missing}"),
    })
}

fn sender(mail: &Mail) -> Sender {
    // Only where nothing is sent: `ready` asks for one.
    let stand_in = || Mailbox::new(None, Address::new_dangerous("steward", "localhost.invalid"));
    let from = mail.from.clone().unwrap_or_else(stand_in);
    let list_id =
        mail.list_id.clone().unwrap_or_else(|| format!("steward.{}", from.email.domain()));
    Sender { reply_to: mail.reply_to.clone(), list_id, from }
}

/// Text without spaces at the ends of lines and without gaps.
fn tidy(text: &str) -> String {
    let mut out = String::new();
    let mut empty = 0;
    for line in text.trim().lines() {
        // The line above a signature ends with a space.
        let line = if line == "-- " { line } else { line.trim_end() };
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out += line;
            out.push('\n');
        }
    }
    out
}

/// What stands in a file of its own because nobody else shall know it.
fn secret(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(format!("{}: holds no password", file.display()));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
