//! What users were told. The mails that told them are in [`super::post`].

use std::time::Duration;

use steward_common::time::Timestamp;

use super::post::{Mail, insert};
use super::{Store, StoreError};

/// A finding that a user is or was told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The rule's instance.
    pub instance: String,
    /// The rule.
    pub rule: String,
    /// Who.
    pub user: String,
    /// Where.
    pub cluster: String,
    /// When.
    pub at: Timestamp,
    /// The how manieth in a row, from 1 on.
    pub step: u32,
    /// How many jobs it is about.
    pub jobs: u64,
    /// Billing hours of no use, where that is known.
    pub wasted: Option<f64>,
    /// The mail that tells it; empty if it came from elsewhere.
    pub message: String,
}

type Row = (String, String, String, String, i64, i64, i64, Option<f64>, String);

const COLUMNS: &str =
    "instance, rule, user_name, cluster, told_at, step, jobs, wasted, message";

impl Notice {
    fn of(row: Row) -> Notice {
        let (instance, rule, user, cluster, at, step, jobs, wasted, message) = row;
        Notice {
            instance,
            rule,
            user,
            cluster,
            at: Timestamp::new(at),
            step: u32::try_from(step).unwrap_or(1),
            jobs: u64::try_from(jobs).unwrap_or(0),
            wasted,
            message,
        }
    }
}

impl Store {
    /// Records that a user is to be told of all these, by these mails. Gives whether it is so: if
    /// another has told of one of them within its quiet time, nothing is recorded.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is recorded.
    pub async fn plan(
        &self,
        notices: &[(Notice, Duration)],
        mails: &[Mail],
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            for (notice, quiet) in notices {
                let quiet = i64::try_from(quiet.as_secs()).unwrap_or(i64::MAX);
                let moved = sqlx::query(
                    "INSERT INTO notice_gate (instance, user_name, cluster, told_at) \
                     VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (instance, user_name, cluster) \
                     DO UPDATE SET told_at = excluded.told_at WHERE notice_gate.told_at <= $5",
                )
                .bind(&notice.instance)
                .bind(&notice.user)
                .bind(&notice.cluster)
                .bind(at.get())
                .bind(at.get().saturating_sub(quiet))
                .execute(&mut *change)
                .await?;
                if moved.rows_affected() == 0 {
                    change.rollback().await?;
                    return Ok(false);
                }
                sqlx::query(
                    "INSERT INTO notice (instance, rule, user_name, cluster, told_at, step, jobs, \
                     wasted, message) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                )
                .bind(&notice.instance)
                .bind(&notice.rule)
                .bind(&notice.user)
                .bind(&notice.cluster)
                .bind(at.get())
                .bind(i64::from(notice.step))
                .bind(i64::try_from(notice.jobs).unwrap_or(i64::MAX))
                .bind(notice.wasted)
                .bind(&notice.message)
                .execute(&mut *change)
                .await?;
            }
            for mail in mails {
                insert(&mut change, mail, at).await?;
            }
            change.commit().await?;
            Ok(true)
        };
        self.ask(work).await
    }

    /// Adds notices that somebody else gave, each once; gives how many are new.
    ///
    /// # Errors
    /// If they cannot be written; then none is.
    pub async fn take_over(&self, notices: &[Notice]) -> Result<u64, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        let work = async {
            let mut new = 0;
            for notice in notices {
                let added = sqlx::query(
                    "INSERT INTO notice (instance, rule, user_name, cluster, told_at, step, jobs, \
                     wasted, message) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                     ON CONFLICT (instance, user_name, cluster, told_at) DO NOTHING",
                )
                .bind(&notice.instance)
                .bind(&notice.rule)
                .bind(&notice.user)
                .bind(&notice.cluster)
                .bind(notice.at.get())
                .bind(i64::from(notice.step))
                .bind(i64::try_from(notice.jobs).unwrap_or(i64::MAX))
                .bind(notice.wasted)
                .bind(&notice.message)
                .execute(&mut *change)
                .await?;
                new += added.rows_affected();
                sqlx::query(
                    "INSERT INTO notice_gate (instance, user_name, cluster, told_at) \
                     VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (instance, user_name, cluster) \
                     DO UPDATE SET told_at = excluded.told_at \
                     WHERE notice_gate.told_at < excluded.told_at",
                )
                .bind(&notice.instance)
                .bind(&notice.user)
                .bind(&notice.cluster)
                .bind(notice.at.get())
                .execute(&mut *change)
                .await?;
            }
            change.commit().await?;
            Ok(new)
        };
        self.ask(work).await
    }

    /// The notices since `from`, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn notices(&self, from: Timestamp) -> Result<Vec<Notice>, StoreError> {
        let pool = self.pool().await?;
        let question = format!(
            "SELECT {COLUMNS} FROM notice WHERE told_at >= $1 \
             ORDER BY told_at, user_name, instance, cluster"
        );
        let asked = sqlx::query_as(sqlx::AssertSqlSafe(question)).bind(from.get());
        let rows: Vec<Row> = self.ask(asked.fetch_all(&*pool)).await?;
        Ok(rows.into_iter().map(Notice::of).collect())
    }
}
