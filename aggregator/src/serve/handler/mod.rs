//! What users of this machine may ask, one a file.
//!
//! To add one: a file with `async fn answer(call: Call) -> anyhow::Result<Value>`, its `mod` line
//! and its line in [`HANDLERS`]. Who asks stands in [`Call::peer`], as the kernel says; a handler
//! must tell everyone but the administrator only what is his own.

mod analyze;
mod current;
pub mod jobs;
pub mod status;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::record::State;
use crate::command::BadInput;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user id of the process at the other end.
    pub uid: u32,
    /// The user's name; `None` if the system knows none, or does not say in time.
    pub user: Option<String>,
    /// Whether it is root or the user of this service: they can read the archive anyway.
    pub is_admin: bool,
}

/// One request.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub peer: Peer,
    /// What the handler is to know.
    pub args: Value,
    /// The service.
    pub state: Arc<State>,
}

impl Call {
    /// The arguments as a type.
    ///
    /// # Errors
    /// [`BadInput`] if they are not.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, BadInput> {
        serde_json::from_value(self.args.clone()).map_err(|error| BadInput(error.to_string()))
    }
}

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = anyhow::Result<Value>> + Send>>;

/// What answers a command.
pub type Handler = fn(Call) -> Answer;

/// Every command that the service answers, in alphabetical order.
pub const HANDLERS: &[(&str, Handler)] = &[
    ("analyze", |call| Box::pin(analyze::answer(call))),
    ("current", |call| Box::pin(current::jobs(call))),
    ("jobs", |call| Box::pin(jobs::answer(call))),
    ("nodes", |call| Box::pin(current::nodes(call))),
    ("status", |call| Box::pin(status::answer(call))),
];

/// The one of that name, with the name from the list.
#[must_use]
pub fn find(name: &str) -> Option<(&'static str, Handler)> {
    HANDLERS.iter().copied().find(|(own, _)| *own == name)
}
