//! Findings of which an Alertmanager and webhooks are told: which hold, and since when.

use steward_common::time::Timestamp;

use super::events::{self, NewEvent};
use super::{Store, StoreError};

/// What makes a finding the same in the next run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// The cluster.
    pub cluster: String,
    /// The name of the rule's instance.
    pub instance: String,
    /// Whose jobs.
    pub user: String,
    /// Which of them; empty if all.
    pub part: String,
}

/// A finding that holds, or that has ended and not everybody knows yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// What makes it the same.
    pub key: AlertKey,
    /// Another each time that it begins.
    pub id: String,
    /// Since when it holds.
    pub since: Timestamp,
    /// When it was last found.
    pub seen_at: Timestamp,
    /// When it was first not found any more.
    pub gone_at: Option<Timestamp>,
    /// What is told of it, as JSON.
    pub told: String,
}

/// A finding of this run.
#[derive(Clone, Debug)]
pub struct Raised {
    /// What makes it the same.
    pub key: AlertKey,
    /// The id that it gets if it is new.
    pub id: String,
    /// What is told of it, as JSON.
    pub told: String,
    /// What webhooks are told if it is new.
    pub events: Vec<NewEvent>,
}

/// A finding that is none any more.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which.
    pub alert: Alert,
    /// What webhooks are told.
    pub events: Vec<NewEvent>,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Findings that are new.
    pub raised: usize,
    /// Findings that have ended.
    pub ended: usize,
}

/// A row: key, id, since, seen, gone, told.
type Row = (String, String, String, String, String, i64, i64, Option<i64>, String);

const OF_KEY: &str = "cluster = $1 AND instance = $2 AND user_name = $3 AND part = $4";

impl Store {
    /// Alerts that hold, and those that have ended and of whose end the Alertmanager does not know.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn alerts(&self) -> Result<Vec<Alert>, StoreError> {
        let pool = self.pool().await?;
        let rows: Vec<Row> = self
            .ask(
                sqlx::query_as(
                    "SELECT cluster, instance, user_name, part, id, since, seen_at, gone_at, told \
             FROM alert WHERE gone_at IS NULL OR end_told = 0 \
             ORDER BY cluster, instance, user_name, part",
                )
                .fetch_all(&*pool),
            )
            .await?;
        let alert = |(cluster, instance, user, part, id, since, seen, gone, told): Row| Alert {
            key: AlertKey { cluster, instance, user, part },
            id,
            since: Timestamp::new(since),
            seen_at: Timestamp::new(seen),
            gone_at: gone.map(Timestamp::new),
            told,
        };
        Ok(rows.into_iter().map(alert).collect())
    }

    /// Writes down what a run found: all of it with its events, or nothing. Whichever process is first
    /// to write that a finding is new or has ended tells of it, and no other.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn settle_alerts(
        &self,
        now: Timestamp,
        raised: &[Raised],
        ended: &[Ended],
    ) -> Result<Settled, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            let mut settled = Settled::default();
            for one in raised {
                let AlertKey { cluster, instance, user, part } = &one.key;
                let new = sqlx::query(
                    "INSERT INTO alert (cluster, instance, user_name, part, id, since, seen_at, \
                     gone_at, end_told, told) VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, 0, $8) \
                     ON CONFLICT (cluster, instance, user_name, part) DO UPDATE SET \
                     id = excluded.id, since = excluded.since, seen_at = excluded.seen_at, \
                     gone_at = NULL, end_told = 0, told = excluded.told \
                     WHERE alert.gone_at IS NOT NULL",
                )
                .bind(cluster)
                .bind(instance)
                .bind(user)
                .bind(part)
                .bind(&one.id)
                .bind(now.get())
                .bind(now.get())
                .bind(&one.told)
                .execute(&mut *change)
                .await?
                .rows_affected();
                if new > 0 {
                    settled.raised += 1;
                    events::insert(&mut change, &one.events).await?;
                    continue;
                }
                sqlx::query(sqlx::AssertSqlSafe(format!(
                    "UPDATE alert SET seen_at = $5, told = $6 WHERE {OF_KEY} AND gone_at IS NULL"
                )))
                .bind(cluster)
                .bind(instance)
                .bind(user)
                .bind(part)
                .bind(now.get())
                .bind(&one.told)
                .execute(&mut *change)
                .await?;
            }
            for one in ended {
                let AlertKey { cluster, instance, user, part } = &one.alert.key;
                // Another process may have seen it meanwhile.
                let gone = sqlx::query(sqlx::AssertSqlSafe(format!(
                    "UPDATE alert SET gone_at = $5, end_told = 0 \
                     WHERE {OF_KEY} AND id = $6 AND seen_at = $7 AND gone_at IS NULL"
                )))
                .bind(cluster)
                .bind(instance)
                .bind(user)
                .bind(part)
                .bind(now.get())
                .bind(&one.alert.id)
                .bind(one.alert.seen_at.get())
                .execute(&mut *change)
                .await?
                .rows_affected();
                if gone > 0 {
                    settled.ended += 1;
                    events::insert(&mut change, &one.events).await?;
                }
            }
            change.commit().await?;
            Ok(settled)
        };
        self.ask(work).await
    }

    /// The Alertmanager knows that these have ended.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn alert_ends_told(&self, alerts: &[Alert]) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            for alert in alerts {
                // One that has begun again has another id.
                sqlx::query("UPDATE alert SET end_told = 1 WHERE id = $1 AND gone_at IS NOT NULL")
                    .bind(&alert.id)
                    .execute(&mut *change)
                    .await?;
            }
            change.commit().await
        };
        self.ask(work).await
    }

    /// Forgets what ended before `before`: alerts and events.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn forget_alerts(&self, before: Timestamp) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let work = async {
            for text in
                ["DELETE FROM alert WHERE gone_at < $1", "DELETE FROM event WHERE ended_at < $1"]
            {
                sqlx::query(text).bind(before.get()).execute(&*pool).await?;
            }
            Ok(())
        };
        self.ask(work).await
    }
}
