//! Which alerts begin, hold and end, by what an evaluation says and what is remembered.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use steward_common::time::Timestamp;

use super::event::{self, Kind};
use super::moment;
use super::reading::Reading;
use crate::config::Config;
use crate::store::alerts::{Alert, AlertKey, Ended, Raised, Settled};
use crate::store::{Store, StoreError, Trouble};

/// For how long an alert holds of which nothing can be said: a cluster may be gone for ever.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// Writes down what a run found, with what webhooks are told of it.
pub(super) async fn settle(
    config: &Config,
    store: &Store,
    reading: &Reading,
    now: Timestamp,
) -> Result<Settled, StoreError> {
    let outlets = &config.outlets;
    let mut raised = Vec::new();
    for found in &reading.found {
        let id = event::new_id().map_err(|error| StoreError {
            place: store.place().clone(),
            trouble: Trouble::Other(error.into()),
        })?;
        let what = with_times(&found.told, &id, now, None);
        let events = event::for_all(outlets, Kind::FindingNew, &format!("{id}-new"), &what, now);
        let told = found.told.to_string();
        raised.push(Raised { key: found.key.clone(), id, told, events });
    }
    let known: BTreeSet<&AlertKey> = reading.found.iter().map(|found| &found.key).collect();
    let names = instance_names(config);
    let is_over = |alert: &Alert| {
        let forgotten = now.since(alert.seen_at).is_some_and(|time| time > LONGEST);
        let off = names.as_ref().is_some_and(|names| !names.contains(&alert.key.instance));
        off || forgotten || reading.is_gone(&alert.key)
    };
    let mut ended = Vec::new();
    for alert in store.alerts().await? {
        if alert.gone_at.is_none() && !known.contains(&alert.key) && is_over(&alert) {
            let told = serde_json::from_str(&alert.told).unwrap_or(Value::Null);
            let what = with_times(&told, &alert.id, alert.since, Some(now));
            let id = format!("{}-gone", alert.id);
            let events = event::for_all(outlets, Kind::FindingGone, &id, &what, now);
            ended.push(Ended { alert, events });
        }
    }
    store.settle_alerts(now, &raised, &ended).await
}

/// What webhooks are told of a finding: its figures, which alert it is, and when.
fn with_times(told: &Value, id: &str, since: Timestamp, gone: Option<Timestamp>) -> Value {
    let mut what = told.get("what").cloned().unwrap_or(Value::Null);
    if let Value::Object(what) = &mut what {
        what.insert("alert".to_owned(), json!(id));
        what.insert("since".to_owned(), json!(moment(since)));
        what.insert("until".to_owned(), json!(gone.map(moment)));
    }
    what
}

/// The rules that are on; `None` if that cannot be told, which is said elsewhere.
fn instance_names(config: &Config) -> Option<BTreeSet<String>> {
    let instances = config.rules.instances().ok()?;
    Some(instances.into_iter().map(|instance| instance.name).collect())
}
