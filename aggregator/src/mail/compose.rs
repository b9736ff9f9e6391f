//! A mail as bytes: headers that no text from outside can break, text, page and picture.

use lettre::Address;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};

use super::letter::{Letter, MessageId};
use crate::output::plain::{cut, is_hidden};

/// A written mail.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its name.
    pub id: MessageId,
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
    /// Its page.
    pub html: String,
    /// All of it, as a mail server takes it.
    pub raw: Vec<u8>,
    /// Who writes, for the envelope.
    pub from: Address,
}

/// What a mail is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
    /// Its page.
    pub html: String,
    /// Its picture and the name of it.
    pub picture: Option<(String, Vec<u8>)>,
    /// Its language.
    pub language: String,
}

/// From whom mails are.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Who writes.
    pub from: Mailbox,
    /// Where answers go.
    pub reply_to: Option<Mailbox>,
    /// By what mail programs sort these mails.
    pub list_id: String,
}

/// The mail as bytes.
///
/// # Errors
/// With what the parts lack.
pub fn compose(letter: &Letter, parts: Parts, sender: &Sender) -> Result<Message, String> {
    let subject = one_line(&parts.subject);
    let mut builder = lettre::Message::builder()
        .message_id(Some(format!("<{}>", letter.id)))
        .date_now()
        .from(tidy(&sender.from))
        .to(Mailbox::new(None, letter.to.clone()))
        .subject(subject.clone());
    for address in &letter.cc {
        builder = builder.cc(Mailbox::new(None, address.clone()));
    }
    if let Some(reply_to) = &sender.reply_to {
        builder = builder.reply_to(tidy(reply_to));
    }
    for (name, value) in [
        (HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()),
        // Exchange answers to Auto-Submitted unless it is told in its own words.
        (HeaderName::new_from_ascii_str("X-Auto-Response-Suppress"), "All".to_owned()),
        (HeaderName::new_from_ascii_str("List-Id"), format!("<{}>", sender.list_id)),
        (HeaderName::new_from_ascii_str("Content-Language"), parts.language.clone()),
    ] {
        builder = builder.raw_header(HeaderValue::new(name, value));
    }
    if let Some(about) = &letter.about {
        let name = HeaderName::new_from_ascii_str("X-Steward-About");
        builder = builder.raw_header(HeaderValue::new(name, one_line(about)));
    }
    let html = SinglePart::html(parts.html.clone());
    let page = MultiPart::related().singlepart(html);
    let page = match parts.picture {
        None => page,
        Some((cid, png)) => {
            let kind = ContentType::parse("image/png").map_err(|error| error.to_string())?;
            page.singlepart(Attachment::new_inline(cid).body(png, kind))
        }
    };
    let body =
        MultiPart::alternative().singlepart(SinglePart::plain(parts.text.clone())).multipart(page);
    let message = builder.multipart(body).map_err(|error| error.to_string())?;
    Ok(Message {
        id: letter.id.clone(),
        subject,
        text: parts.text,
        html: parts.html,
        raw: message.formatted(),
        from: sender.from.email.clone(),
    })
}

/// A header is a line: what would end it, or hide in it, goes.
fn one_line(text: &str) -> String {
    let shown: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    cut(&shown.split_whitespace().collect::<Vec<_>>().join(" "), 200)
}

fn tidy(mailbox: &Mailbox) -> Mailbox {
    let name = mailbox.name.as_deref().map(one_line).filter(|name| !name.is_empty());
    Mailbox::new(name, mailbox.email.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stays_one_line() {
        assert_eq!(one_line(" a\r\nBcc: x@y\u{2028}\u{202e} b\t"), "a Bcc: x@y b");
        assert_eq!(one_line(&"x".repeat(5000)).chars().count(), 200);
        let odd = Mailbox::new(Some("A\r\nBcc: x@y".to_owned()), "a@b.org".parse().unwrap());
        assert_eq!(tidy(&odd).name.as_deref(), Some("A Bcc: x@y"));
    }
}
