//! What was done about jobs whose GPUs do nothing: warnings, decisions, signals, ends.

use std::time::Duration;

use sqlx::Row;
use sqlx::any::AnyRow;
use steward_common::time::Timestamp;

use super::audit::{self, Entry};
use super::{Store, StoreError, id};

/// For how long one process has a job to itself: longer than any of its steps takes.
const LEASE: Duration = Duration::from_secs(300);

/// Which run of a job, under which instance of the rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The instance's name.
    pub instance: String,
    /// The cluster's name.
    pub cluster: String,
    /// Slurm's number of the job.
    pub job: u32,
    /// When it was submitted; a requeued job was submitted again.
    pub submitted: Timestamp,
}

/// What an administrator decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be cancelled.
    Approved,
    /// It may not, and why.
    Rejected(String),
}

/// What a job had used when it was warned: counters, and for how long they were watched, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Base {
    /// When.
    pub at: Option<Timestamp>,
    /// CPU time in seconds, and for how long it was watched.
    pub cpu: Option<(f64, f64)>,
    /// Bytes read and written, and for how long that was watched.
    pub io: Option<(f64, f64)>,
}

/// What is remembered of a run of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// By which people name it.
    pub id: String,
    /// Which run it is.
    pub key: Key,
    /// Whose.
    pub user: String,
    /// When the first warning was handed over,
    pub first: Option<Timestamp>,
    /// the second,
    pub second: Option<Timestamp>,
    /// and the one about the last hours.
    pub sliding: Option<Timestamp>,
    /// What it had used then.
    pub base: Base,
    /// When the administrators were first asked.
    pub proposed: Option<Timestamp>,
    /// What they said, and who.
    pub decision: Option<(Decision, String)>,
    /// When it was to get the signal,
    pub signalled: Option<Timestamp>,
    /// and when it had got it.
    pub sent: Option<Timestamp>,
    /// When it was to be ended.
    pub killed: Option<Timestamp>,
    /// When Slurm said that it is over.
    pub cancelled: Option<Timestamp>,
    /// When its owner was told so.
    pub told: Option<Timestamp>,
}

impl Kept {
    /// Of which nothing has been done yet.
    #[must_use]
    pub fn new(key: Key, user: String) -> Kept {
        Kept {
            id: id(),
            key,
            user,
            first: None,
            second: None,
            sliding: None,
            base: Base::default(),
            proposed: None,
            decision: None,
            signalled: None,
            sent: None,
            killed: None,
            cancelled: None,
            told: None,
        }
    }

    /// Whether its owner was warned.
    #[must_use]
    pub fn is_warned(&self) -> bool {
        self.first.is_some() || self.second.is_some() || self.sliding.is_some()
    }

    /// Whether something was done to it that cannot be taken back.
    #[must_use]
    pub fn is_acted_on(&self) -> bool {
        self.signalled.is_some() || self.killed.is_some()
    }
}

/// Something that happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The first warning was handed over.
    First,
    /// The second was.
    Second,
    /// The one about the last hours was.
    Sliding,
    /// The administrators were asked.
    Proposed,
    /// It has got the signal.
    Sent,
    /// It is to be ended.
    Killed,
    /// Slurm says that it is over.
    Cancelled,
    /// Its owner was told so.
    Told,
}

impl Mark {
    /// What is remembered is when it happened first.
    fn statement(self) -> &'static str {
        macro_rules! first {
            ($column:literal) => {
                concat!(
                    "UPDATE cancellation SET ",
                    $column,
                    " = COALESCE(",
                    $column,
                    ", $1), changed_at = $1 WHERE id = $2"
                )
            };
        }
        match self {
            Mark::First => first!("first_at"),
            Mark::Second => first!("second_at"),
            Mark::Sliding => first!("sliding_at"),
            Mark::Proposed => first!("proposed_at"),
            Mark::Sent => first!("sent_at"),
            Mark::Killed => first!("kill_at"),
            Mark::Cancelled => first!("cancelled_at"),
            Mark::Told => first!("told_at"),
        }
    }
}

/// The first thing that is done to a job and cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The signal.
    Signal,
    /// Its end.
    Kill,
}

const SELECT: &str = "SELECT id, instance, cluster, job, submitted_at, user_name, first_at, \
     second_at, sliding_at, base_at, base_cpu_seconds, base_cpu_covered, base_io_bytes, \
     base_io_covered, proposed_at, decision, decided_by, decided_why, signalled_at, kill_at, \
     cancelled_at, told_at, sent_at FROM cancellation";

fn read(row: &AnyRow) -> Result<Kept, sqlx::Error> {
    let time = |at: usize| -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(row.try_get::<Option<i64>, _>(at)?.map(Timestamp::new))
    };
    let pair = |first: usize| -> Result<Option<(f64, f64)>, sqlx::Error> {
        let pair: (Option<f64>, Option<f64>) = (row.try_get(first)?, row.try_get(first + 1)?);
        Ok(pair.0.zip(pair.1))
    };
    let decided: Option<String> = row.try_get(15)?;
    let (by, why): (Option<String>, Option<String>) = (row.try_get(16)?, row.try_get(17)?);
    let decision = decided.map(|word| match word.as_str() {
        "approved" => Decision::Approved,
        // What is not an approval is none.
        _ => Decision::Rejected(why.unwrap_or_default()),
    });
    let job: i64 = row.try_get(3)?;
    let wrong = |error: std::num::TryFromIntError| sqlx::Error::Decode(error.into());
    Ok(Kept {
        id: row.try_get(0)?,
        key: Key {
            instance: row.try_get(1)?,
            cluster: row.try_get(2)?,
            job: u32::try_from(job).map_err(wrong)?,
            submitted: Timestamp::new(row.try_get(4)?),
        },
        user: row.try_get(5)?,
        first: time(6)?,
        second: time(7)?,
        sliding: time(8)?,
        base: Base { at: time(9)?, cpu: pair(10)?, io: pair(12)? },
        proposed: time(14)?,
        decision: decision.map(|decision| (decision, by.unwrap_or_default())),
        signalled: time(18)?,
        killed: time(19)?,
        cancelled: time(20)?,
        told: time(21)?,
        sent: time(22)?,
    })
}

impl Store {
    /// What is remembered of all jobs, in the order in which it began.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn cancels(&self) -> Result<Vec<Kept>, StoreError> {
        let pool = self.pool().await?;
        let text = format!("{SELECT} ORDER BY cluster, job, submitted_at, instance");
        self.ask(async {
            let rows = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(&*pool).await?;
            rows.iter().map(read).collect()
        })
        .await
    }

    /// Takes a job for this process alone, and says what is remembered of it now; `None` while another has it.
    /// [`Store::release_cancel`] gives it back; a process that dies keeps it for five minutes.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn claim_cancel(
        &self,
        key: &Key,
        user: &str,
        now: Timestamp,
    ) -> Result<Option<Kept>, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            sqlx::query(
                "INSERT INTO cancellation (id, instance, cluster, job, submitted_at, user_name, \
                 leased_until, changed_at) VALUES ($1, $2, $3, $4, $5, $6, 0, $7) \
                 ON CONFLICT (instance, cluster, job, submitted_at) DO NOTHING",
            )
            .bind(id())
            .bind(&key.instance)
            .bind(&key.cluster)
            .bind(i64::from(key.job))
            .bind(key.submitted.get())
            .bind(user)
            .bind(now.get())
            .execute(&mut *change)
            .await?;
            let taken = sqlx::query(
                "UPDATE cancellation SET leased_until = $1 WHERE instance = $2 AND cluster = $3 \
                 AND job = $4 AND submitted_at = $5 AND leased_until <= $6",
            )
            .bind(now.after(LEASE).get())
            .bind(&key.instance)
            .bind(&key.cluster)
            .bind(i64::from(key.job))
            .bind(key.submitted.get())
            .bind(now.get())
            .execute(&mut *change)
            .await?;
            if taken.rows_affected() == 0 {
                return change.commit().await.map(|()| None);
            }
            let text = format!(
                "{SELECT} WHERE instance = $1 AND cluster = $2 AND job = $3 AND submitted_at = $4"
            );
            let row = sqlx::query(sqlx::AssertSqlSafe(text))
                .bind(&key.instance)
                .bind(&key.cluster)
                .bind(i64::from(key.job))
                .bind(key.submitted.get())
                .fetch_one(&mut *change)
                .await?;
            let kept = read(&row)?;
            change.commit().await.map(|()| Some(kept))
        })
        .await
    }

    /// Gives a job back.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn release_cancel(&self, id: &str) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let done = sqlx::query("UPDATE cancellation SET leased_until = 0 WHERE id = $1").bind(id);
        self.ask(done.execute(&*pool)).await.map(drop)
    }

    /// Remembers that something happened, and tells the audit log.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn mark_cancel(
        &self,
        id: &str,
        mark: Mark,
        now: Timestamp,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            sqlx::query(mark.statement()).bind(now.get()).bind(id).execute(&mut *change).await?;
            audit::add(&mut change, entry).await?;
            change.commit().await
        })
        .await
    }

    /// Remembers what a job had used when it was first warned.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn base_cancel(&self, id: &str, base: Base) -> Result<(), StoreError> {
        let Some(at) = base.at else { return Ok(()) };
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            sqlx::query("UPDATE cancellation SET base_at = $1 WHERE id = $2")
                .bind(at.get())
                .bind(id)
                .execute(&mut *change)
                .await?;
            let cpu = "UPDATE cancellation SET base_cpu_seconds = $1, base_cpu_covered = $2 \
                       WHERE id = $3";
            let io = "UPDATE cancellation SET base_io_bytes = $1, base_io_covered = $2 \
                      WHERE id = $3";
            for (text, pair) in [(cpu, base.cpu), (io, base.io)] {
                let Some((used, covered)) = pair else { continue };
                let update = sqlx::query(text).bind(used).bind(covered).bind(id);
                update.execute(&mut *change).await?;
            }
            change.commit().await
        })
        .await
    }

    /// Remembers that a job is about to get the signal or its end, unless so many others began with that within the
    /// last hour. One that was begun goes on.
    ///
    /// # Errors
    /// If that cannot be written; nothing may then be done.
    pub async fn act_cancel(
        &self,
        id: &str,
        act: Act,
        most: u32,
        now: Timestamp,
        entry: &Entry,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            let turn = "UPDATE cancel_gate SET turns = turns + 1 WHERE id = 1";
            sqlx::query(turn).execute(&mut *change).await?;
            let begun = "SELECT COUNT(*) FROM cancellation WHERE id = $1 \
                         AND (signalled_at IS NOT NULL OR kill_at IS NOT NULL)";
            let begun: i64 = sqlx::query_scalar(begun).bind(id).fetch_one(&mut *change).await?;
            if begun == 0 {
                let since = now.before(Duration::from_secs(3600)).get();
                let count = "SELECT COUNT(*) FROM cancel_act WHERE at > $1";
                let acts: i64 =
                    sqlx::query_scalar(count).bind(since).fetch_one(&mut *change).await?;
                if acts >= i64::from(most) {
                    return change.rollback().await.map(|()| false);
                }
                sqlx::query("INSERT INTO cancel_act (id, at, cancellation) VALUES ($1, $2, $3)")
                    .bind(super::id())
                    .bind(now.get())
                    .bind(id)
                    .execute(&mut *change)
                    .await?;
            }
            let text = match act {
                Act::Signal => {
                    "UPDATE cancellation SET signalled_at = COALESCE(signalled_at, $1), \
                     changed_at = $1 WHERE id = $2"
                }
                Act::Kill => Mark::Killed.statement(),
            };
            sqlx::query(text).bind(now.get()).bind(id).execute(&mut *change).await?;
            audit::add(&mut change, entry).await?;
            change.commit().await.map(|()| true)
        })
        .await
    }

    /// Forgets the warnings and decisions about a job that works again: it begins anew, under a new id, and belongs
    /// to nobody.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn reset_cancel(
        &self,
        id: &str,
        now: Timestamp,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            sqlx::query(
                "UPDATE cancellation SET first_at = NULL, second_at = NULL, sliding_at = NULL, \
                 base_at = NULL, base_cpu_seconds = NULL, base_cpu_covered = NULL, \
                 base_io_bytes = NULL, base_io_covered = NULL, proposed_at = NULL, \
                 decision = NULL, decided_at = NULL, decided_by = NULL, decided_why = NULL, \
                 signalled_at = NULL, sent_at = NULL, kill_at = NULL, \
                 leased_until = 0, changed_at = $1, id = $3 \
                 WHERE id = $2 AND cancelled_at IS NULL",
            )
            .bind(now.get())
            .bind(id)
            .bind(super::id())
            .execute(&mut *change)
            .await?;
            audit::add(&mut change, entry).await?;
            change.commit().await
        })
        .await
    }

    /// What an administrator decides about a job that was proposed. Gives whether there is one of that id on which
    /// nobody has acted or decided yet.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn decide_cancel(
        &self,
        id: &str,
        decision: &Decision,
        actor: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (word, why) = match decision {
            Decision::Approved => ("approved", ""),
            Decision::Rejected(why) => ("rejected", why.as_str()),
        };
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            let found = sqlx::query_as::<_, (String, String, i64)>(
                "UPDATE cancellation SET decision = $1, decided_at = $2, decided_by = $3, \
                 decided_why = $4, changed_at = $2 WHERE id = $5 AND proposed_at IS NOT NULL \
                 AND decision IS NULL AND signalled_at IS NULL AND kill_at IS NULL \
                 RETURNING user_name, cluster, job",
            )
            .bind(word)
            .bind(now.get())
            .bind(actor)
            .bind(why)
            .bind(id)
            .fetch_optional(&mut *change)
            .await?;
            let Some((user, cluster, job)) = found else { return Ok(false) };
            let action = format!("cancel {word}");
            let subject = format!("job {job} of {user} on {cluster}");
            let entry =
                Entry { actor: actor.to_owned(), action, subject, detail: format!("{id} {why}") };
            audit::add(&mut change, &entry).await?;
            change.commit().await.map(|()| true)
        })
        .await
    }

    /// Forgets jobs of which nothing was heard since a moment.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn forget_cancels(&self, before: Timestamp) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        self.ask(async {
            for text in [
                "DELETE FROM cancellation WHERE changed_at < $1",
                "DELETE FROM cancel_act WHERE at < $1",
            ] {
                sqlx::query(text).bind(before.get()).execute(&*pool).await?;
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests;
