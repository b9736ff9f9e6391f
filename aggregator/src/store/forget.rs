//! A user is forgotten: what the store says of him goes, but for what is bookkeeping or still at work.
//!
//! Ledger and audit log are only ever added to, and an exemption is what somebody decided: they stay. So does what a
//! program has in its hands just now, which would write it again or tell a user half of it.

use steward_common::time::Timestamp;

use super::{Store, StoreError};

/// How many entries of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgot {
    /// Those that went: what they are, and how many. None of a kind is not listed.
    pub gone: Vec<(&'static str, u64)>,
    /// Those that name the user and stay.
    pub left: Vec<Left>,
}

/// Entries that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// What they are.
    pub kind: &'static str,
    /// How many.
    pub entries: u64,
    /// Why, and what to do.
    pub why: &'static str,
}

/// What goes: kind, table, condition. Deliveries come before their mails, and mails before the notices by which it is known
/// of which clusters they tell.
const GONE: [(&str, &str, &str); 7] = [
    (
        "deliveries",
        "delivery",
        "message IN (SELECT m.id FROM message m WHERE m.about = :user AND m.kind <> 'bank' AND (:cluster = '' \
         OR EXISTS (SELECT 1 FROM notice n WHERE n.message = m.id AND n.user_name = :user AND n.cluster = :cluster) \
         AND NOT EXISTS (SELECT 1 FROM notice n WHERE n.message = m.id AND n.cluster <> :cluster)) \
         AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.id AND d.state = 'begun'))",
    ),
    (
        "mails",
        "message",
        "about = :user AND kind <> 'bank' \
         AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = message.id)",
    ),
    ("notices", "notice", "user_name = :user AND (:cluster = '' OR cluster = :cluster)"),
    ("quiet times", "notice_gate", "user_name = :user AND (:cluster = '' OR cluster = :cluster)"),
    (
        "cancellations",
        "cancellation",
        "user_name = :user AND (:cluster = '' OR cluster = :cluster) AND leased_until <= :now",
    ),
    (
        "alerts",
        "alert",
        "user_name = :user AND (:cluster = '' OR cluster = :cluster) AND gone_at IS NOT NULL AND end_told = 1",
    ),
    // Which cluster an event is about is written in its text alone.
    (
        "events",
        "event",
        ":cluster = '' AND ended_at IS NOT NULL AND replace(body, :quoted, '') <> body",
    ),
];

/// What is counted then: kind, table, condition, why it stays.
const LEFT: [(&str, &str, &str, &str); 13] = [
    (
        "mails",
        "message",
        "about = :user AND kind <> 'bank'",
        "a server is being given them, or other clusters are in them too; do this again later, without --cluster",
    ),
    ("notices", "notice", "user_name = :user", "of other clusters; leave out --cluster"),
    ("quiet times", "notice_gate", "user_name = :user", "of other clusters; leave out --cluster"),
    (
        "cancellations",
        "cancellation",
        "user_name = :user",
        "they are being worked on, or of other clusters; do this again later, without --cluster",
    ),
    (
        "decisions",
        "cancellation",
        "decided_by = :user AND user_name <> :user",
        "by him, about jobs of others; they go as those jobs grow old",
    ),
    (
        "alerts",
        "alert",
        "user_name = :user",
        "an Alertmanager is still to hear of their end; do this again after the next evaluation",
    ),
    (
        "events",
        "event",
        "replace(body, :quoted, '') <> body",
        "webhooks are still to hear of them, or of one cluster alone it cannot be told; do this again later, \
         without --cluster",
    ),
    (
        "exemptions",
        "exemption",
        "user_name = :user OR added_by = :user OR removed_by = :user",
        "somebody decided them; `steward exempt remove` ends them, and they stay listed",
    ),
    (
        "audit log",
        "audit_log",
        "actor = :user OR replace(' ' || subject || ' ', :word, '') <> ' ' || subject || ' ' \
         OR replace(' ' || detail || ' ', :word, '') <> ' ' || detail || ' '",
        "bookkeeping: who did what to whom is never taken out",
    ),
    ("ledger", "bank_entry", "actor = :user", "bookkeeping: who changed a balance stays known"),
    (
        "bank actions",
        "bank_action",
        "actor = :user",
        "bookkeeping: at whose word Slurm was told what",
    ),
    ("holds", "bank_hold", "actor = :user", "at his word; they go when they are released"),
    ("resets", "bank_reset", "actor = :user", "at his word; they go when Slurm has done them"),
];

/// Something that a condition names.
#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Whole(i64),
}

/// A statement with numbers in the place of names, and their values. Those that it does not name are left out:
/// PostgreSQL takes no value that is not used.
fn bound(statement: String, named: &[(&str, Value)]) -> (String, Vec<Value>) {
    let (mut sql, mut values) = (statement, Vec::new());
    for (name, value) in named {
        if sql.contains(name) {
            values.push(value.clone());
            sql = sql.replace(name, &format!("${}", values.len()));
        }
    }
    (sql, values)
}

impl Store {
    /// Takes out what names a user, of one cluster alone if one is given, and counts what stays.
    ///
    /// # Errors
    /// If it cannot be written; then all stays.
    pub async fn forget_user(
        &self,
        user: &str,
        cluster: Option<&str>,
        now: Timestamp,
    ) -> Result<Forgot, StoreError> {
        let named = [
            (":user", Value::Text(user.to_owned())),
            (":cluster", Value::Text(cluster.unwrap_or_default().to_owned())),
            (":quoted", Value::Text(serde_json::Value::from(user).to_string())),
            (":word", Value::Text(format!(" {user} "))),
            (":now", Value::Whole(now.get())),
        ];
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            let mut forgot = Forgot::default();
            for (kind, table, condition) in GONE {
                let (sql, values) = bound(format!("DELETE FROM {table} WHERE {condition}"), &named);
                let mut delete = sqlx::query(sqlx::AssertSqlSafe(sql));
                for value in values {
                    delete = match value {
                        Value::Text(text) => delete.bind(text),
                        Value::Whole(number) => delete.bind(number),
                    };
                }
                let entries = delete.execute(&mut *change).await?.rows_affected();
                // A delivery is a part of its mail.
                if entries > 0 && table != "delivery" {
                    forgot.gone.push((kind, entries));
                }
            }
            for (kind, table, condition, why) in LEFT {
                let text = format!("SELECT COUNT(*) FROM {table} WHERE {condition}");
                let (sql, values) = bound(text, &named);
                let mut count = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql));
                for value in values {
                    count = match value {
                        Value::Text(text) => count.bind(text),
                        Value::Whole(number) => count.bind(number),
                    };
                }
                let entries = count.fetch_one(&mut *change).await?.unsigned_abs();
                if entries > 0 {
                    forgot.left.push(Left { kind, entries, why });
                }
            }
            change.commit().await?;
            Ok(forgot)
        };
        self.ask(work).await
    }
}

#[cfg(test)]
mod tests;
