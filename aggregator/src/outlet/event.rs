//! What webhooks are told: one JSON object for each event.

use std::io;

use serde_json::{Value, json};
use steward_common::time::Timestamp;

use super::moment;
use crate::config::Outlets;
use crate::store::events::NewEvent;

/// The version of what is sent; it changes if a receiver would have to.
const SCHEMA: u32 = 1;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rule found something that it had not found before.
    FindingNew,
    /// A finding holds no longer.
    FindingGone,
    /// Somebody was written to.
    NoticeSent,
    /// The owner of an idle job was warned.
    JobWarned,
    /// A job was cancelled.
    JobCancelled,
}

impl Kind {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::FindingNew => "finding.new",
            Kind::FindingGone => "finding.gone",
            Kind::NoticeSent => "notice.sent",
            Kind::JobWarned => "job.warned",
            Kind::JobCancelled => "job.cancelled",
        }
    }
}

/// An event, once for each webhook.
pub(super) fn for_all(
    outlets: &Outlets,
    kind: Kind,
    id: &str,
    what: &Value,
    at: Timestamp,
) -> Vec<NewEvent> {
    if outlets.webhook.is_empty() {
        return Vec::new();
    }
    let body = json!({
        "schema": SCHEMA,
        "id": id,
        "kind": kind.as_str(),
        "time": moment(at),
        "what": what,
    })
    .to_string();
    let one = |webhook: &String| NewEvent {
        id: id.to_owned(),
        webhook: webhook.clone(),
        at,
        body: body.clone(),
    };
    outlets.webhook.keys().map(one).collect()
}

/// An id that nobody else has.
pub(super) fn new_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if got < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
