//! An Alertmanager is told what holds and what has ended, by its API of version 2.

use std::collections::BTreeMap;

use reqwest::{Url, header};
use serde_json::{Map, Value, json};
use steward_common::time::Timestamp;

use super::{client, failure, moment, secret};
use crate::config::Alertmanager;
use crate::store::alerts::Alert;

/// Alerts in one request.
const MOST: usize = 1000;

/// Tells it of all alerts. What holds is told anew each time, with a later end: it would take an alert
/// for ended that it does not hear of.
pub(super) async fn post(
    settings: &Alertmanager,
    alerts: &[Alert],
    now: Timestamp,
    until: Timestamp,
) -> Result<(), String> {
    let all = body(settings, alerts, now, until);
    if all.is_empty() {
        return Ok(());
    }
    let mut url = Url::parse(&settings.url).map_err(|error| format!("url: {error}"))?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["api", "v2", "alerts"]);
    }
    let client = client(settings.timeout.0)?;
    for part in all.chunks(MOST) {
        let text = Value::from(part).to_string();
        let mut request =
            client.post(url.clone()).header(header::CONTENT_TYPE, "application/json").body(text);
        if let (Some(user), Some(path)) = (&settings.user, &settings.password_file) {
            request = request.basic_auth(user, Some(secret(path)?));
        }
        if let Some(path) = &settings.token_file {
            request = request.bearer_auth(secret(path)?);
        }
        let answer = request.send().await.map_err(failure)?;
        if !answer.status().is_success() {
            return Err(format!("the Alertmanager answered {}", answer.status()));
        }
    }
    Ok(())
}

/// All alerts as the API takes them.
fn body(settings: &Alertmanager, alerts: &[Alert], now: Timestamp, until: Timestamp) -> Vec<Value> {
    // Labels are what makes an alert the same for it: if one has ended and another of the same labels
    // holds, it holds. Those that hold come last.
    let mut by_labels: BTreeMap<String, Value> = BTreeMap::new();
    let order = |alert: &&Alert| alert.gone_at.is_none();
    let (holding, ended): (Vec<&Alert>, Vec<&Alert>) = alerts.iter().partition(order);
    for alert in ended.into_iter().chain(holding) {
        let told: Value = serde_json::from_str(&alert.told).unwrap_or(Value::Null);
        let mut labels =
            told.get("labels").and_then(Value::as_object).cloned().unwrap_or_else(|| {
                // Not written by this version; it must be told of all the same.
                let name = Value::from(alert.key.instance.as_str());
                Map::from_iter([("alertname".to_owned(), name)])
            });
        for (name, value) in &settings.labels {
            labels.insert(name.clone(), json!(value));
        }
        // It refuses an end before the start, as a clock that was set back gives.
        let end = alert.gone_at.map_or(until, |gone| gone.min(now)).max(alert.since);
        let one = json!({
            "labels": labels,
            "annotations": told.get("annotations").cloned().unwrap_or_else(|| json!({})),
            "startsAt": moment(alert.since),
            "endsAt": moment(end),
        });
        by_labels.insert(Value::Object(labels).to_string(), one);
    }
    by_labels.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::alerts::AlertKey;

    fn alert(user: &str, since: i64, gone: Option<i64>) -> Alert {
        Alert {
            key: AlertKey {
                cluster: "c".to_owned(),
                instance: "low-cpu".to_owned(),
                user: user.to_owned(),
                part: String::new(),
            },
            id: "1".to_owned(),
            since: Timestamp::new(since),
            seen_at: Timestamp::new(since),
            gone_at: gone.map(Timestamp::new),
            told: json!({ "labels": { "alertname": "low-cpu", "user": user }, "annotations": {} })
                .to_string(),
        }
    }

    fn settings() -> Alertmanager {
        Alertmanager {
            url: "http://am:9093".to_owned(),
            timeout: "10s".parse().unwrap(),
            labels: BTreeMap::from([("site".to_owned(), "x".to_owned())]),
            user: None,
            password_file: None,
            token_file: None,
        }
    }

    #[test]
    fn what_holds_begins_when_it_began_and_what_ended_ends() {
        let alerts = [alert("ann", 100, None), alert("bob", 50, Some(300))];
        let said = body(&settings(), &alerts, Timestamp::new(300), Timestamp::new(7500));
        assert_eq!(
            json!(said),
            json!([
                { "labels": { "alertname": "low-cpu", "user": "ann", "site": "x" }, "annotations": {},
                  "startsAt": "1970-01-01T00:01:40Z", "endsAt": "1970-01-01T02:05:00Z" },
                { "labels": { "alertname": "low-cpu", "user": "bob", "site": "x" }, "annotations": {},
                  "startsAt": "1970-01-01T00:00:50Z", "endsAt": "1970-01-01T00:05:00Z" },
            ])
        );
    }

    #[test]
    fn of_two_with_the_same_labels_the_one_that_holds_counts() {
        let alerts = [alert("ann", 100, None), alert("ann", 50, Some(300))];
        for alerts in [alerts.to_vec(), alerts.iter().rev().cloned().collect()] {
            let said = body(&settings(), &alerts, Timestamp::new(300), Timestamp::new(7500));
            let [one] = said.as_slice() else { panic!("{said:?}") };
            assert_eq!(one["endsAt"], "1970-01-01T02:05:00Z");
        }
    }

    #[test]
    fn an_alert_never_ends_before_it_began() {
        let said = body(
            &settings(),
            &[alert("ann", 500, Some(300))],
            Timestamp::new(300),
            Timestamp::new(400),
        );
        assert_eq!(said[0]["endsAt"], said[0]["startsAt"]);
    }
}
