//! Handing mails over, each once.

use std::time::Duration;

use steward_common::time::Timestamp;

use crate::config::{AfterCrash, Notices};
use crate::mail::{Post, SendError};
use crate::shutdown::Shutdown;
use crate::store::post::{Delivery, Fate};
use crate::store::{Store, StoreError};

/// News that nobody could be told for so long is no news.
const STALE: Duration = Duration::from_secs(3 * 86_400);

/// So many mails in vain, and the server is taken for down.
const STALLS: usize = 2;

/// What a program that died said last.
const DIED: &str = "the program ended while the mail was handed over";

/// What became of deliveries.
#[derive(Debug, Default)]
pub struct Delivered {
    /// The server has them.
    pub sent: Vec<Delivery>,
    /// They were refused and are tried again.
    pub waiting: Vec<Delivery>,
    /// They are not tried again.
    pub given_up: Vec<Delivery>,
    /// Nobody knows whether the server has them.
    pub unknown: Vec<Delivery>,
    /// Why the server could not be used, if so: all others are still to be sent.
    pub down: Option<String>,
}

impl Delivered {
    /// Whether all that was due is with the server.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.down.is_none()
            && self.waiting.is_empty()
            && self.given_up.is_empty()
            && self.unknown.is_empty()
    }

    /// Takes what another pass did.
    pub fn add(&mut self, other: Delivered) {
        self.sent.extend(other.sent);
        self.waiting.extend(other.waiting);
        self.given_up.extend(other.given_up);
        self.unknown.extend(other.unknown);
        self.down = other.down.or(self.down.take());
    }
}

/// Who delivers.
#[derive(Debug)]
pub struct Carrier<'a> {
    /// Where mails wait.
    pub store: &'a Store,
    /// Who takes them.
    pub post: &'a Post,
    /// The settings.
    pub config: &'a Notices,
    /// For how long a mail may be handed over: what was begun before then was left.
    pub patience: Duration,
    /// When to stop.
    pub shutdown: &'a Shutdown,
}

fn now() -> Timestamp {
    Timestamp::new(jiff::Timestamp::now().as_second())
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp::new(at.get().saturating_add(i64::try_from(by.as_secs()).unwrap_or(i64::MAX)))
}

fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp::new(at.get().saturating_sub(i64::try_from(by.as_secs()).unwrap_or(i64::MAX)))
}

impl Carrier<'_> {
    /// Hands over what is due and may be sent today, and what programs that died left behind.
    ///
    /// # Errors
    /// If the store cannot be used: nothing more is sent then.
    pub async fn deliver(&self, may: impl Fn(&Delivery) -> bool) -> Result<Delivered, StoreError> {
        let mut done = Delivered::default();
        for left in self.store.left_behind(earlier(now(), self.patience)).await? {
            self.take_up(left, &mut done).await?;
        }
        for delivery in self.store.due(now()).await? {
            if done.down.is_some() || self.shutdown.is_due() {
                break;
            }
            if may(&delivery) && self.store.begin_delivery(&delivery, now()).await? {
                self.hand_over(delivery, &mut done).await?;
                // Who takes mails and does not answer for them would use up everybody's.
                let unsure = done.unknown.iter().filter(|one| one.said != DIED).count();
                if unsure >= STALLS && done.sent.is_empty() {
                    done.down = Some("it does not say whether it takes mails".to_owned());
                }
            }
        }
        Ok(done)
    }

    async fn take_up(&self, left: Delivery, done: &mut Delivered) -> Result<(), StoreError> {
        match self.config.after_crash {
            AfterCrash::CountsAsSent => {
                let at = now();
                self.store.end_delivery(&left, Fate::Unknown, DIED, at, at).await?;
                done.unknown.push(Delivery { said: DIED.to_owned(), ..left });
            }
            AfterCrash::SendAgain => {
                if done.down.is_none() && self.store.begin_delivery(&left, now()).await? {
                    self.hand_over(left, done).await?;
                }
            }
        }
        Ok(())
    }

    /// Of a delivery that this program has begun.
    async fn hand_over(&self, delivery: Delivery, done: &mut Delivered) -> Result<(), StoreError> {
        let tries = delivery.tries.saturating_add(1);
        let result = match (&delivery.text, delivery.planned) {
            (_, planned) if later(planned, STALE) < now() => {
                Err(Ended::Over(delivery.said.clone() + " (too old to be sent)"))
            }
            (None, _) => Err(Ended::Over("its text is lost".to_owned())),
            (Some(text), _) => match delivery.address.parse() {
                Ok(address) => self.post.send(text.as_bytes(), &address).await.map_err(Ended::from),
                Err(error) => Err(Ended::Over(format!("{}: {error}", delivery.address))),
            },
        };
        let at = now();
        let (fate, said, next) = match result {
            Ok(()) => (Fate::Sent, String::new(), at),
            Err(Ended::Over(said)) => (Fate::GivenUp, said, at),
            Err(Ended::Refused(said)) if tries >= self.config.tries => (Fate::GivenUp, said, at),
            // Addresses that do not exist today may tomorrow: directories lag behind.
            Err(Ended::Refused(said)) => {
                let doubled = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
                (Fate::Waiting, said, later(at, self.config.retry.0.saturating_mul(doubled)))
            }
            // Nothing was handed over: it is as if nobody had tried.
            Err(Ended::Down(why)) => (Fate::Planned, why, at),
            Err(Ended::Unsure(why)) if self.config.after_crash == AfterCrash::SendAgain => {
                (Fate::Waiting, why, later(at, self.config.retry.0))
            }
            Err(Ended::Unsure(why)) => (Fate::Unknown, why, at),
        };
        self.store.end_delivery(&delivery, fate, &said, at, next).await?;
        let ended = Delivery { fate, said: said.clone(), tries, since: at, ..delivery };
        match fate {
            Fate::Sent => done.sent.push(ended),
            Fate::Waiting => done.waiting.push(ended),
            Fate::GivenUp => done.given_up.push(ended),
            Fate::Unknown => done.unknown.push(ended),
            Fate::Planned | Fate::Begun => done.down = Some(said),
        }
        Ok(())
    }
}

/// How an attempt ended that was no success.
enum Ended {
    /// Nobody tries again.
    Over(String),
    Refused(String),
    Down(String),
    Unsure(String),
}

impl From<SendError> for Ended {
    fn from(error: SendError) -> Ended {
        match error {
            SendError::Refused { said, .. } => Ended::Refused(said),
            SendError::Down { why } => Ended::Down(why),
            SendError::Unsure { why } => Ended::Unsure(why),
        }
    }
}
