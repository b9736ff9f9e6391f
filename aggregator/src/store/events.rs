//! Events for webhooks: kept until they are delivered or given up.

use sqlx::{Any, Transaction};
use steward_common::time::Timestamp;

use super::{Store, StoreError};

/// An event for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id; the same event has the same for all webhooks.
    pub id: String,
    /// The webhook.
    pub webhook: String,
    /// When it happened.
    pub at: Timestamp,
    /// What is sent, as JSON.
    pub body: String,
}

/// An event that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: String,
    /// What is sent, as JSON.
    pub body: String,
    /// How often it was tried.
    pub tries: u32,
}

/// What came of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It has arrived.
    Delivered,
    /// It will be tried again.
    Again {
        /// When.
        at: Timestamp,
        /// Why it failed.
        why: String,
    },
    /// It will not be tried again.
    GivenUp {
        /// Why.
        why: String,
    },
}

pub(super) async fn insert(
    change: &mut Transaction<'_, Any>,
    events: &[NewEvent],
) -> Result<(), sqlx::Error> {
    for event in events {
        // Whoever tells of something twice means one event.
        sqlx::query(
            "INSERT INTO event (id, webhook, at, body, tries, due_at, held_until) \
             VALUES ($1, $2, $3, $4, 0, $3, 0) ON CONFLICT (id, webhook) DO NOTHING",
        )
        .bind(&event.id)
        .bind(&event.webhook)
        .bind(event.at.get())
        .bind(&event.body)
        .execute(&mut **change)
        .await?;
    }
    Ok(())
}

impl Store {
    /// Adds events: all of them, or none. One that is there already stays as it is.
    ///
    /// # Errors
    /// If they cannot be written.
    pub async fn add_events(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            insert(&mut change, events).await?;
            change.commit().await
        };
        self.ask(work).await
    }

    /// The events of a webhook that are due and that nobody tries at the moment, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn due_events(
        &self,
        webhook: &str,
        now: Timestamp,
        most: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let pool = self.pool().await?;
        let rows: Vec<(String, String, i64)> = self
            .ask(
                sqlx::query_as(
                    "SELECT id, body, tries FROM event WHERE webhook = $1 AND ended_at IS NULL \
             AND due_at <= $2 AND held_until <= $2 ORDER BY at, id LIMIT $3",
                )
                .bind(webhook)
                .bind(now.get())
                .bind(i64::from(most))
                .fetch_all(&*pool),
            )
            .await?;
        let event =
            |(id, body, tries)| Event { id, body, tries: u32::try_from(tries).unwrap_or(u32::MAX) };
        Ok(rows.into_iter().map(event).collect())
    }

    /// Takes an event, so that no other process tries it until `until`; whether it was there to be
    /// taken. If this process dies it is tried again after that: twice is better than never, and the
    /// receiver knows it by its id.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn hold_event(
        &self,
        webhook: &str,
        event: &Event,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let held = self.ask(sqlx::query(
            "UPDATE event SET held_until = $3, tries = tries + 1 WHERE id = $1 AND webhook = $2 \
             AND ended_at IS NULL AND due_at <= $4 AND held_until <= $4 AND tries = $5",
        )
        .bind(&event.id)
        .bind(webhook)
        .bind(until.get())
        .bind(now.get())
        .bind(i64::from(event.tries))
        .execute(&*pool))
        .await?;
        Ok(held.rows_affected() > 0)
    }

    /// Writes down what came of a try.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn event_tried(
        &self,
        webhook: &str,
        event: &Event,
        now: Timestamp,
        tried: &Tried,
    ) -> Result<(), StoreError> {
        let (due, ended, failure) = match tried {
            Tried::Delivered => (now, Some(now.get()), None),
            Tried::Again { at, why } => (*at, None, Some(why)),
            Tried::GivenUp { why } => (now, Some(now.get()), Some(why)),
        };
        let pool = self.pool().await?;
        self.ask(
            sqlx::query(
                "UPDATE event SET due_at = $3, ended_at = $4, failure = $5, held_until = 0 \
             WHERE id = $1 AND webhook = $2",
            )
            .bind(&event.id)
            .bind(webhook)
            .bind(due.get())
            .bind(ended)
            .bind(failure)
            .execute(&*pool),
        )
        .await?;
        Ok(())
    }

    /// How many events of a webhook wait.
    ///
    /// # Errors
    /// If they cannot be counted.
    pub async fn waiting_events(&self, webhook: &str) -> Result<u64, StoreError> {
        let pool = self.pool().await?;
        let count: i64 = self
            .ask(
                sqlx::query_scalar(
                    "SELECT COUNT(*) FROM event WHERE webhook = $1 AND ended_at IS NULL",
                )
                .bind(webhook)
                .fetch_one(&*pool),
            )
            .await?;
        Ok(u64::try_from(count).unwrap_or_default())
    }
}
