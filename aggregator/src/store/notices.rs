//! What users were told. The mails that told them are in [`super::post`].

use std::time::Duration;

use sqlx::AnyConnection;
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
    /// How many jobs it is about, where that is known.
    pub jobs: Option<u64>,
    /// Billing hours of no use, where that is known.
    pub wasted: Option<f64>,
    /// The mail that tells it; empty if it came from elsewhere.
    pub message: String,
}

type Row = (String, String, String, String, i64, i64, Option<i64>, Option<f64>, String);

const COLUMNS: &str = "instance, rule, user_name, cluster, told_at, step, jobs, wasted, message";

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
            jobs: jobs.and_then(|jobs| u64::try_from(jobs).ok()),
            wasted,
            message,
        }
    }
}

/// Adds a notice to a change that is under way, unless it is there; gives how many are new.
async fn add(change: &mut AnyConnection, notice: &Notice) -> Result<u64, sqlx::Error> {
    let added = sqlx::query(
        "INSERT INTO notice (instance, rule, user_name, cluster, told_at, step, jobs, wasted, message) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (instance, user_name, cluster, told_at) DO NOTHING",
    )
    .bind(&notice.instance)
    .bind(&notice.rule)
    .bind(&notice.user)
    .bind(&notice.cluster)
    .bind(notice.at.get())
    .bind(i64::from(notice.step))
    .bind(notice.jobs.and_then(|jobs| i64::try_from(jobs).ok()))
    .bind(notice.wasted)
    .bind(&notice.message)
    .execute(change)
    .await?;
    Ok(added.rows_affected())
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
                     DO UPDATE SET told_at = excluded.told_at \
                     WHERE notice_gate.told_at <= $5 AND notice_gate.told_at < excluded.told_at",
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
                add(&mut change, &Notice { at, ..notice.clone() }).await?;
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
                new += add(&mut change, notice).await?;
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

    /// The notices since `from`, the oldest first, without those whose mails were refused by all and are
    /// not tried again: nobody was told by them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn notices(&self, from: Timestamp) -> Result<Vec<Notice>, StoreError> {
        let pool = self.pool().await?;
        let question = format!(
            "SELECT {COLUMNS} FROM notice n WHERE told_at >= $1 AND NOT (\
             EXISTS (SELECT 1 FROM delivery d WHERE d.message = n.message) \
             AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = n.message \
             AND d.state <> 'given-up')) \
             ORDER BY told_at, user_name, instance, cluster"
        );
        let asked = sqlx::query_as(sqlx::AssertSqlSafe(question)).bind(from.get());
        let rows: Vec<Row> = self.ask(asked.fetch_all(&*pool)).await?;
        Ok(rows.into_iter().map(Notice::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::post::Fate;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(day: i64) -> Timestamp {
        Timestamp::new(1_800_000_000 + day * 86_400)
    }

    fn notice(instance: &str, message: &str) -> (Notice, Duration) {
        let notice = Notice {
            instance: instance.to_owned(),
            rule: "low-cpu".to_owned(),
            user: "alice".to_owned(),
            cluster: "c1".to_owned(),
            at: at(0),
            step: 1,
            jobs: Some(3),
            wasted: Some(1.5),
            message: message.to_owned(),
        };
        (notice, DAY * 7)
    }

    fn mail(id: &str, to: &[&str]) -> Mail {
        Mail {
            id: id.to_owned(),
            kind: "digest".to_owned(),
            about: "alice".to_owned(),
            subject: "Your jobs".to_owned(),
            text: "Subject: Your jobs\r\n\r\nHello".to_owned(),
            to: to.iter().map(ToString::to_string).collect(),
        }
    }

    async fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("steward.db")).await.unwrap();
        (dir, store)
    }

    #[tokio::test]
    async fn of_two_who_would_tell_one_does_and_the_other_records_nothing() {
        let (_dir, store) = store().await;
        let mails = |id| [mail(id, &["alice@a.org"])];
        assert!(store.plan(&[notice("a", "m1")], &mails("m1"), at(0)).await.unwrap());
        // Of b nobody was told, but the mail would be about a too.
        let both = [notice("b", "m2"), notice("a", "m2")];
        assert!(!store.plan(&both, &mails("m2"), at(1)).await.unwrap());
        let told = store.notices(at(-1)).await.unwrap();
        assert_eq!(told, [notice("a", "m1").0]);
        assert_eq!(store.due(at(1)).await.unwrap().len(), 1);
        // At the end of the quiet time, and not a second before.
        let late = Timestamp::new(at(7).get() - 1);
        assert!(!store.plan(&[notice("a", "m3")], &mails("m3"), late).await.unwrap());
        assert!(store.plan(&[notice("a", "m3")], &mails("m3"), at(7)).await.unwrap());
    }

    #[tokio::test]
    async fn many_at_once_are_one() {
        let (dir, _) = store().await;
        let path = dir.path().join("steward.db");
        let mut runs = tokio::task::JoinSet::new();
        for run in 0..8 {
            let path = path.clone();
            runs.spawn(async move {
                let store = Store::open(&path).await.unwrap();
                let id = format!("m{run}");
                let mails = [mail(&id, &["alice@a.org"])];
                store.plan(&[notice("a", &id)], &mails, at(0)).await.unwrap()
            });
        }
        let told = runs.join_all().await.into_iter().filter(|told| *told).count();
        assert_eq!(told, 1);
    }

    #[tokio::test]
    async fn who_begins_a_delivery_hands_it_over_and_the_text_goes_with_the_last() {
        let (_dir, store) = store().await;
        let mails = [mail("m1", &["alice@a.org", "bob@a.org"])];
        store.plan_mails(&mails, at(0)).await.unwrap();
        let due = store.due(at(0)).await.unwrap();
        let (alice, bob) = (&due[0], &due[1]);
        assert!(store.begin_delivery(alice, at(0)).await.unwrap());
        assert!(!store.begin_delivery(alice, at(0)).await.unwrap(), "another was quicker");
        store.end_delivery(alice, Fate::Sent, "", at(0), at(0)).await.unwrap();
        // The server is down: it is as if nobody had tried.
        assert!(store.begin_delivery(bob, at(0)).await.unwrap());
        store.end_delivery(bob, Fate::Planned, "down", at(0), at(0)).await.unwrap();
        let due = store.due(at(0)).await.unwrap();
        assert_eq!(due.len(), 1);
        assert_eq!((due[0].tries, due[0].said.as_str()), (0, "down"));
        assert!(due[0].text.is_some());
        // Refused: not before its time.
        assert!(store.begin_delivery(&due[0], at(0)).await.unwrap());
        store.end_delivery(&due[0], Fate::Waiting, "550", at(0), at(1)).await.unwrap();
        assert!(store.due(at(0)).await.unwrap().is_empty());
        let again = store.due(at(1)).await.unwrap();
        assert_eq!((again.len(), again[0].tries), (1, 1));
        assert!(store.begin_delivery(&again[0], at(1)).await.unwrap());
        assert!(store.left_behind(at(1)).await.unwrap().is_empty(), "not yet");
        let left = store.left_behind(at(2)).await.unwrap();
        assert_eq!((left.len(), left[0].tries), (1, 2));
        store.end_delivery(&left[0], Fate::Unknown, "died", at(2), at(2)).await.unwrap();
        let open = store.open_deliveries(at(0)).await.unwrap();
        assert_eq!((open.len(), open[0].fate), (1, Fate::Unknown));
        assert!(open[0].text.is_none(), "nobody needs it any more");
    }

    #[tokio::test]
    async fn notices_of_another_program_keep_users_quiet_and_come_once() {
        let (_dir, store) = store().await;
        let theirs = [notice("a", "").0];
        assert_eq!(store.take_over(&theirs).await.unwrap(), 1);
        assert_eq!(store.take_over(&theirs).await.unwrap(), 0);
        let mails = [mail("m1", &["alice@a.org"])];
        assert!(!store.plan(&[notice("a", "m1")], &mails, at(6)).await.unwrap());
        assert!(store.plan(&[notice("a", "m1")], &mails, at(7)).await.unwrap());
    }

    #[tokio::test]
    async fn a_mail_that_everybody_refused_told_nobody() {
        let (_dir, store) = store().await;
        let mails = [mail("m1", &["alice@a.org"])];
        assert!(store.plan(&[notice("a", "m1")], &mails, at(0)).await.unwrap());
        assert_eq!(store.notices(at(-1)).await.unwrap().len(), 1);
        let due = store.due(at(0)).await.unwrap();
        assert!(store.begin_delivery(&due[0], at(0)).await.unwrap());
        store.end_delivery(&due[0], Fate::GivenUp, "550", at(0), at(0)).await.unwrap();
        assert!(store.notices(at(-1)).await.unwrap().is_empty());
        // But it is not tried anew before the quiet time is over.
        let again = [mail("m2", &["alice@a.org"])];
        assert!(!store.plan(&[notice("a", "m2")], &again, at(1)).await.unwrap());
    }
}
