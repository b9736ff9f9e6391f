//! The audit log: who did what to whom. Nothing in it is changed or deleted.

use sqlx::{Any, Transaction};
use steward_common::time::Timestamp;

use super::{Store, StoreError, id};

/// Something that was done, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who does it: a person's user name, or `service`.
    pub actor: String,
    /// What, in a few words that are the same each time: `exempt add`.
    pub action: String,
    /// To whom or what: a user, a job.
    pub subject: String,
    /// All else that one would want to know later.
    pub detail: String,
}

/// An entry, and when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    /// What it says.
    pub entry: Entry,
}

/// Adds an entry to a change, so that neither is there without the other.
pub(super) async fn add(
    change: &mut Transaction<'static, Any>,
    entry: &Entry,
) -> Result<(), sqlx::Error> {
    let insert = "INSERT INTO audit_log (id, at_ms, actor, action, subject, detail) \
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let now = jiff::Timestamp::now();
    sqlx::query(insert)
        // Entries of one millisecond stay in their order.
        .bind(format!("{:020}-{}", now.as_nanosecond(), id()))
        .bind(now.as_millisecond())
        .bind(&entry.actor)
        .bind(&entry.action)
        .bind(&entry.subject)
        .bind(&entry.detail)
        .execute(&mut **change)
        .await
        .map(drop)
}

impl Store {
    /// Adds an entry.
    ///
    /// # Errors
    /// If it cannot be written; what it was to say must then not be done.
    pub async fn audit(&self, entry: Entry) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            add(&mut change, &entry).await?;
            change.commit().await
        })
        .await
    }

    /// The entries since a moment, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn audited(&self, since: Timestamp) -> Result<Vec<Made>, StoreError> {
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, (i64, String, String, String, String)>(
            "SELECT at_ms, actor, action, subject, detail FROM audit_log WHERE at_ms >= $1 \
             ORDER BY at_ms, id",
        )
        .bind(since.get().saturating_mul(1000));
        let rows = self.ask(rows.fetch_all(&*pool)).await?;
        let made = |(at_ms, actor, action, subject, detail)| Made {
            at_ms,
            entry: Entry { actor, action, subject, detail },
        };
        Ok(rows.into_iter().map(made).collect())
    }
}
