//! Other ways out than mail: an Alertmanager that is told what holds, webhooks that are told what happens.
//!
//! ```text
//! Judged ─ [`Reading`] ─ publish ─> store: which alerts hold, since when; events that wait
//!                                      ├─> Alertmanager: all that holds, each time; what ended, once
//!                                      └─> deliver ─> webhooks: each event until it is taken
//! ```
//!
//! What happens elsewhere (a notice that was sent, a job that was cancelled) comes in by [`tell`].

mod alertmanager;
mod event;
mod reading;
mod settle;
mod webhook;

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use reqwest::Client;
use serde_json::Value;
use steward_common::time::Timestamp;

pub use event::Kind;
pub use reading::Reading;
pub use webhook::signature;

use crate::config::{Config, Outlets};
use crate::store::{Store, StoreError};

/// How long what has ended is remembered.
const MEMORY: Duration = Duration::from_secs(30 * 86_400);

/// What came of telling others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Findings that are new.
    pub raised: usize,
    /// Findings that have ended.
    pub ended: usize,
    /// Events that webhooks took.
    pub delivered: usize,
    /// What failed; what is told again says so.
    pub troubles: Vec<String>,
}

impl Published {
    /// An error, if something failed.
    ///
    /// # Errors
    /// What failed.
    pub fn into_result(self) -> anyhow::Result<()> {
        if self.troubles.is_empty() { Ok(()) } else { anyhow::bail!(self.troubles.join("; ")) }
    }
}

/// Tells the Alertmanager what holds now and what has ended, and webhooks what is new.
///
/// # Errors
/// If the store cannot be used: then nobody is told anything.
pub async fn publish(
    config: &Config,
    store: &Store,
    reading: &Reading,
    now: Timestamp,
) -> Result<Published, StoreError> {
    let outlets = &config.outlets;
    if !outlets.is_any() {
        return Ok(Published::default());
    }
    let settled = settle::settle(config, store, reading, now).await?;
    let mut published =
        Published { raised: settled.raised, ended: settled.ended, ..Published::default() };
    if let Some(settings) = &outlets.alertmanager {
        let alerts = store.alerts().await?;
        let until = lasts_until(config, now);
        match alertmanager::post(settings, &alerts, now, until).await {
            Ok(()) => {
                let ended: Vec<_> =
                    alerts.into_iter().filter(|alert| alert.gone_at.is_some()).collect();
                store.alert_ends_told(&ended).await?;
            }
            Err(why) => published.troubles.push(format!(
                "outlets.alertmanager: {why}; it is told again at the next evaluation"
            )),
        }
    }
    let delivered = deliver(outlets, store, now).await?;
    published.delivered = delivered.delivered;
    published.troubles.extend(delivered.troubles);
    store.forget_alerts(now.before(MEMORY)).await?;
    Ok(published)
}

/// Sends what webhooks have not got yet and is due.
///
/// # Errors
/// If the store cannot be used.
pub async fn deliver(
    outlets: &Outlets,
    store: &Store,
    now: Timestamp,
) -> Result<Published, StoreError> {
    let mut published = Published::default();
    for (name, settings) in &outlets.webhook {
        let (delivered, troubles) = webhook::deliver(name, settings, store, now).await?;
        published.delivered += delivered;
        published.troubles.extend(troubles);
    }
    Ok(published)
}

/// Has webhooks told of something that happened. The id makes it the same event if it is told twice.
///
/// # Errors
/// If the store cannot be used.
pub async fn tell(
    outlets: &Outlets,
    store: &Store,
    kind: Kind,
    id: &str,
    what: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    let events = event::for_all(outlets, kind, id, what, at);
    if events.is_empty() { Ok(()) } else { store.add_events(&events).await }
}

/// Until when an alert holds that is not renewed: two evaluations ahead, and a while for them to end.
fn lasts_until(config: &Config, now: Timestamp) -> Timestamp {
    const WHILE: Duration = Duration::from_secs(300);
    // A schedule that is never due is renewed by hand, if at all.
    const UNKNOWN: Duration = Duration::from_secs(86_400);
    let zone: TimeZone = config.zone();
    let after = |time: jiff::Timestamp| config.evaluate.schedule.next_after(time, &zone);
    let second = jiff::Timestamp::from_second(now.get()).ok().and_then(after).and_then(after);
    second.map_or_else(|| now.after(UNKNOWN), |time| Timestamp::new(time.as_second()).after(WHILE))
}

/// A client that waits no longer than it may and follows nobody elsewhere.
fn client(timeout: Duration) -> Result<Client, String> {
    Client::builder()
        .timeout(timeout)
        // A login page that answers 200 has taken nothing.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(failure)
}

/// What is wrong, without the address: it may be a secret itself.
fn failure(error: reqwest::Error) -> String {
    steward_common::causes::with_causes(&error.without_url())
}

/// A secret from its file, without the end of the line.
fn secret(path: &Path) -> Result<String, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(format!("{}: is empty; it must hold the secret", path.display()));
    }
    Ok(text.to_owned())
}

/// A moment as RFC 3339 has it.
fn moment(time: Timestamp) -> String {
    jiff::Timestamp::from_second(time.get()).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests;
