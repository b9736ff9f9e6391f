//! Webhooks: each event is sent with a signature until it is taken.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, StatusCode, header};
use sha2::Sha256;
use steward_common::time::Timestamp;

use super::{client, failure, secret};
use crate::config::Webhook;
use crate::store::events::{Event, Tried};
use crate::store::{Store, StoreError};

/// Events in one round.
const MOST: u32 = 500;

/// How long after the first failure; then twice as long each time,
const FIRST: Duration = Duration::from_secs(60);

/// but no longer than this.
const LONGEST: Duration = Duration::from_secs(3600);

/// What an event is held for beyond the time that it may take.
const SLACK: Duration = Duration::from_secs(60);

/// Why an event was not taken.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// Nobody answers: the others need not be tried either.
    Silent(String),
    /// It may be taken later.
    Later(String),
    /// It will never be taken.
    Never(String),
}

/// Sends what is due: how many were taken, and what failed.
pub(super) async fn deliver(
    name: &str,
    settings: &Webhook,
    store: &Store,
    now: Timestamp,
) -> Result<(usize, Vec<String>), StoreError> {
    let due = store.due_events(name, now, MOST).await?;
    if due.is_empty() {
        return Ok((0, Vec::new()));
    }
    let place = |why: &str| format!("outlets.webhook.{name}: {why}");
    let ready =
        secret(&settings.secret_file).and_then(|secret| Ok((client(settings.timeout.0)?, secret)));
    let (client, secret) = match ready {
        Ok(ready) => ready,
        // Nothing is tried, so nothing is used up.
        Err(why) => return Ok((0, vec![place(&format!("{why}; nothing is sent until then"))])),
    };
    let (mut delivered, mut troubles, mut later) = (0, Vec::new(), 0u32);
    for event in due {
        let until = now.after(settings.timeout.0).after(SLACK);
        if !store.hold_event(name, &event, now, until).await? {
            continue;
        }
        let result = send(&client, settings, &secret, &event).await;
        let silent = matches!(result, Err(Failure::Silent(_)));
        let tried = decide(result, event.tries + 1, settings.tries, now);
        store.event_tried(name, &event, now, &tried).await?;
        match tried {
            Tried::Delivered => delivered += 1,
            Tried::Again { why, .. } => {
                if later == 0 {
                    troubles.push(place(&format!("{why}; it is tried again")));
                }
                later += 1;
            }
            Tried::GivenUp { why } => {
                troubles.push(place(&format!("event {} is given up: {why}", event.id)));
            }
        }
        if silent {
            break;
        }
    }
    Ok((delivered, troubles))
}

/// What comes of a try, given how many there were and may be.
fn decide(result: Result<(), Failure>, tries: u32, most: u32, now: Timestamp) -> Tried {
    match result {
        Ok(()) => Tried::Delivered,
        Err(Failure::Never(why)) => Tried::GivenUp { why },
        Err(Failure::Silent(why) | Failure::Later(why)) if tries >= most => {
            Tried::GivenUp { why: format!("{why}, the last of {tries} times") }
        }
        Err(Failure::Silent(why) | Failure::Later(why)) => {
            let doubled = FIRST.saturating_mul(1 << (tries - 1).min(16));
            Tried::Again { at: now.after(doubled.min(LONGEST)), why }
        }
    }
}

async fn send(
    client: &Client,
    settings: &Webhook,
    secret: &str,
    event: &Event,
) -> Result<(), Failure> {
    // Not the time of the run: a receiver refuses what is too old, and a round may take long.
    let timestamp = jiff::Timestamp::now().as_second();
    let answer = client
        .post(&settings.url)
        .header(header::CONTENT_TYPE, "application/json")
        .header("X-Steward-Event", &event.id)
        .header("X-Steward-Timestamp", timestamp)
        .header("X-Steward-Signature", signature(secret.as_bytes(), timestamp, &event.body))
        .body(event.body.clone())
        .send()
        .await
        .map_err(|error| Failure::Silent(failure(error)))?;
    judge(answer.status())
}

fn judge(status: StatusCode) -> Result<(), Failure> {
    let why = || format!("the receiver answered {status}");
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
            Err(Failure::Later(why()))
        }
        status if status.is_server_error() => Err(Failure::Later(why())),
        _ => Err(Failure::Never(why())),
    }
}

/// The signature of a body: `sha256=` and the HMAC-SHA256 of `timestamp.body` in hex. The time is in
/// it so that nobody can send an old event again.
#[must_use]
pub fn signature(secret: &[u8], timestamp: i64, body: &str) -> String {
    // HMAC takes keys of every length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(timestamp.to_string().as_bytes());
    mac.update(b".");
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_openssl_says() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        assert_eq!(
            signature(b"key", 1_700_000_000, "{\"a\":1}"),
            "sha256=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
        assert_ne!(signature(b"key", 1, "a"), signature(b"kez", 1, "a"));
        assert_ne!(signature(b"key", 1, "a"), signature(b"key", 2, "a"));
        assert_ne!(signature(b"key", 1, "a"), signature(b"key", 1, "b"));
    }

    #[test]
    fn who_cannot_take_it_now_is_asked_again_and_who_does_not_want_it_is_not() {
        let later = |code: u16| judge(StatusCode::from_u16(code).unwrap());
        assert_eq!(later(204), Ok(()));
        for code in [500, 503, 599, 408, 425, 429] {
            assert!(matches!(later(code), Err(Failure::Later(_))), "{code}");
        }
        for code in [301, 400, 401, 404, 410, 422] {
            assert!(matches!(later(code), Err(Failure::Never(_))), "{code}");
        }
    }

    #[test]
    fn pauses_double_up_to_an_hour_and_tries_end() {
        let now = Timestamp::new(1000);
        let pause = |tries| match decide(Err(Failure::Later("no".to_owned())), tries, 20, now) {
            Tried::Again { at, .. } => Some(at.get() - now.get()),
            _ => None,
        };
        let pauses: Vec<_> = [1, 2, 3, 6, 7, 19, 20].into_iter().map(pause).collect();
        let minutes = |minutes: i64| Some(minutes * 60);
        assert_eq!(
            pauses,
            [minutes(1), minutes(2), minutes(4), minutes(32), minutes(60), minutes(60), None]
        );
    }
}
