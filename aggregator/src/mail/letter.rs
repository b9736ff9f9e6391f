//! What is to be said to whom.

use std::collections::BTreeMap;
use std::fmt;

use lettre::Address;
use sha2::{Digest as _, Sha256};

use crate::notice::digest::Digest;
use crate::output::sheet::{Cell, Sheet};

/// What is to be said to one recipient, and who reads along.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// What kind of mail it is.
    pub template: Template,
    /// Whose language and name it has; the administrators' if none.
    pub user: Option<String>,
    /// To whom.
    pub to: Address,
    /// Who gets the same mail and is named in it.
    pub cc: Vec<Address>,
    /// Whom it is about, if not the one who reads it.
    pub about: Option<String>,
    /// Its name, made before it is written: a mail that is sent again has the same.
    pub id: MessageId,
    /// What it says.
    pub content: Content,
}

/// The kinds of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Template {
    /// All that was found of a user's jobs.
    Digest,
    /// The administrators' copy of it.
    Copy,
    /// A GPU job idles and will be cancelled.
    Warning,
    /// A GPU job was cancelled.
    Cancelled,
    /// To the administrators: somebody did not react.
    Proposal,
    /// A report for the administrators.
    Report,
    /// To the administrators: something went wrong with mails.
    Trouble,
    /// An account of the bank has used much of what it may.
    Level,
    /// An account of the bank has used more than it may.
    Held,
    /// The proposal of an account of the bank ends soon.
    Ending,
    /// What an account of the bank got and used in a month.
    Statement,
}

impl Template {
    /// All of them.
    pub const ALL: [Template; 11] = [
        Template::Digest,
        Template::Copy,
        Template::Warning,
        Template::Cancelled,
        Template::Proposal,
        Template::Report,
        Template::Trouble,
        Template::Level,
        Template::Held,
        Template::Ending,
        Template::Statement,
    ];

    /// What its files are called: `NAME.subject.j2`, `NAME.text.j2` and `NAME.html.j2`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Template::Digest => "digest",
            Template::Copy => "copy",
            Template::Warning => "warning",
            Template::Cancelled => "cancelled",
            Template::Proposal => "proposal",
            Template::Report => "report",
            Template::Trouble => "trouble",
            Template::Level => "level",
            Template::Held => "held",
            Template::Ending => "ending",
            Template::Statement => "statement",
        }
    }
}

/// What a mail says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// What was found.
    Digest(Digest),
    /// How an account of the bank stands.
    Account(Account),
    /// Anything else.
    Sections(Vec<Section>),
}

/// An account of the bank, in a mail about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What sentences speak of, by name; what is not known or not so is missing.
    pub figures: BTreeMap<&'static str, Cell>,
    /// The same as a table.
    pub sheet: Sheet,
}

/// A part of a mail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its title; may be empty.
    pub title: String,
    /// Paragraphs.
    pub lines: Vec<String>,
    /// A table, whose heads are in the reader's language if its words have them.
    pub sheet: Option<Sheet>,
    /// Text that is shown as it is, in a typewriter's font.
    pub text: Option<String>,
}

/// The name of a mail, without the angle brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(String);

impl MessageId {
    /// A new one.
    ///
    /// # Errors
    /// If the kernel gives no random numbers.
    pub fn random(from: &Address) -> std::io::Result<MessageId> {
        let mut bytes = [0_u8; 16];
        let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        if got != bytes.len() {
            return Err(std::io::Error::other("the kernel gave too few random numbers"));
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(MessageId(format!("{hex}@{}", from.domain())))
    }

    /// The one that this text always has: what is told twice by mistake is one mail.
    #[must_use]
    pub fn same(text: &str, from: &Address) -> MessageId {
        let hash = Sha256::digest(text.as_bytes());
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        MessageId(format!("{hex}@{}", from.domain()))
    }

    /// One for trials.
    pub(super) fn sample() -> MessageId {
        MessageId("00112233445566778899aabbccddeeff@example.org".to_owned())
    }

    /// One that was written down before; `None` if it is not of that form.
    #[must_use]
    pub fn known(text: &str) -> Option<MessageId> {
        let (left, domain) = text.split_once('@')?;
        let hex = !left.is_empty() && left.chars().all(|c| c.is_ascii_hexdigit());
        (hex && Address::new("x", domain).is_ok()).then(|| MessageId(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_random_and_can_be_read_back() {
        let from: Address = "steward@example.org".parse().unwrap();
        let (a, b) = (MessageId::random(&from).unwrap(), MessageId::random(&from).unwrap());
        assert_ne!(a, b);
        assert_eq!((a.as_str().len(), MessageId::known(a.as_str())), (44, Some(a.clone())));
        assert!(a.as_str().ends_with("@example.org"));
        let same = MessageId::same("note 1", &from);
        assert_eq!((&same, same.as_str().len()), (&MessageId::same("note 1", &from), 44));
        assert_ne!(same, MessageId::same("note 2", &from));
        for text in ["", "12", "12@", "xy@a.org", "12@a.org>\r\nBcc: x", "12@a b"] {
            assert_eq!(MessageId::known(text), None, "{text:?}");
        }
    }
}
