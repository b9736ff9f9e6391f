//! Who is left alone, and until when.

use sqlx::Row;
use sqlx::any::AnyRow;
use steward_common::time::Timestamp;

use super::audit::{self, Entry};
use super::{Store, StoreError, id};

/// A user is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// By which it is named.
    pub id: String,
    /// Who.
    pub user: String,
    /// By which rule, a rule's id or an instance's name; by all if `None`.
    pub rule: Option<String>,
    /// On which cluster; on all if `None`.
    pub cluster: Option<String>,
    /// Why.
    pub reason: String,
    /// When it was added,
    pub added: Timestamp,
    /// and by whom.
    pub by: String,
    /// When it ends.
    pub ends: Timestamp,
    /// When it was removed, and by whom, if it was.
    pub removed: Option<(Timestamp, String)>,
}

impl Exemption {
    /// Whether it holds at a moment.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        now < self.ends && self.removed.is_none()
    }

    /// Whether it is about this user under this instance of a rule, on this cluster.
    #[must_use]
    pub fn covers(&self, user: &str, instance: &str, rule_id: &str, cluster: &str) -> bool {
        self.user == user
            && self.rule.as_deref().is_none_or(|rule| rule == instance || rule == rule_id)
            && self.cluster.as_deref().is_none_or(|name| name == cluster)
    }

    fn told(&self) -> String {
        let rule = self.rule.as_deref().unwrap_or("all rules");
        let cluster = self.cluster.as_deref().unwrap_or("all clusters");
        format!("{}: {rule} on {cluster} until {}: {}", self.id, self.ends, self.reason)
    }
}

/// One that is to be added.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Who.
    pub user: String,
    /// By which rule; by all if `None`.
    pub rule: Option<String>,
    /// On which cluster; on all if `None`.
    pub cluster: Option<String>,
    /// Why.
    pub reason: String,
    /// When it ends.
    pub ends: Timestamp,
}

const COLUMNS: &str =
    "id, user_name, rule, cluster, reason, added_at, added_by, ends_at, removed_at, removed_by";

fn read(row: &AnyRow) -> Result<Exemption, sqlx::Error> {
    let removed: Option<i64> = row.try_get(8)?;
    let by: Option<String> = row.try_get(9)?;
    Ok(Exemption {
        id: row.try_get(0)?,
        user: row.try_get(1)?,
        rule: row.try_get(2)?,
        cluster: row.try_get(3)?,
        reason: row.try_get(4)?,
        added: Timestamp::new(row.try_get(5)?),
        by: row.try_get(6)?,
        ends: Timestamp::new(row.try_get(7)?),
        removed: removed.map(Timestamp::new).zip(by),
    })
}

impl Store {
    /// Leaves a user alone from now on.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn exempt(
        &self,
        wanted: Wanted,
        actor: &str,
        now: Timestamp,
    ) -> Result<Exemption, StoreError> {
        let Wanted { user, rule, cluster, reason, ends } = wanted;
        let (added, by) = (now, actor.to_owned());
        let made =
            Exemption { id: id(), user, rule, cluster, reason, added, by, ends, removed: None };
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            sqlx::query(
                "INSERT INTO exemption (id, user_name, rule, cluster, reason, added_at, added_by, \
                 ends_at) VALUES ($1, $2, NULLIF($3, ''), NULLIF($4, ''), $5, $6, $7, $8)",
            )
            .bind(&made.id)
            .bind(&made.user)
            .bind(made.rule.as_deref().unwrap_or_default())
            .bind(made.cluster.as_deref().unwrap_or_default())
            .bind(&made.reason)
            .bind(made.added.get())
            .bind(&made.by)
            .bind(made.ends.get())
            .execute(&mut *change)
            .await?;
            let (action, subject) = ("exempt add".to_owned(), made.user.clone());
            let entry = Entry { actor: actor.to_owned(), action, subject, detail: made.told() };
            audit::add(&mut change, &entry).await?;
            change.commit().await
        })
        .await?;
        Ok(made)
    }

    /// Ends an exemption now. Gives whether there was one of that name that had not been removed.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn remove_exemption(
        &self,
        id: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let pool = self.pool().await?;
        let mut change = self.begin(&pool).await?;
        self.ask(async {
            let update = "UPDATE exemption SET removed_at = $1, removed_by = $2 \
                          WHERE id = $3 AND removed_at IS NULL RETURNING user_name";
            let found = sqlx::query_scalar::<_, String>(update)
                .bind(now.get())
                .bind(actor)
                .bind(id)
                .fetch_optional(&mut *change)
                .await?;
            let Some(subject) = found else { return Ok(false) };
            let (actor, action) = (actor.to_owned(), "exempt remove".to_owned());
            let entry = Entry { actor, action, subject, detail: id.to_owned() };
            audit::add(&mut change, &entry).await?;
            change.commit().await.map(|()| true)
        })
        .await
    }

    /// Every exemption that ever was, the oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn exemptions(&self) -> Result<Vec<Exemption>, StoreError> {
        let pool = self.pool().await?;
        let text = format!("SELECT {COLUMNS} FROM exemption ORDER BY added_at, user_name, id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(text));
        self.ask(async {
            let rows = rows.fetch_all(&*pool).await?;
            rows.iter().map(read).collect()
        })
        .await
    }

    /// Those that hold at a moment.
    ///
    /// # Errors
    /// If they cannot be read; nobody may then be taken for not exempt.
    pub async fn exemptions_at(&self, now: Timestamp) -> Result<Vec<Exemption>, StoreError> {
        let mut all = self.exemptions().await?;
        all.retain(|one| one.holds(now));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(user: &str, rule: Option<&str>, cluster: Option<&str>, ends: i64) -> Wanted {
        Wanted {
            user: user.to_owned(),
            rule: rule.map(str::to_owned),
            cluster: cluster.map(str::to_owned),
            reason: "paper; <b>\"'\u{1b}".to_owned(),
            ends: Timestamp::new(ends),
        }
    }

    #[tokio::test]
    async fn an_exemption_holds_until_its_end_or_removal_and_every_change_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("a.db")).await.unwrap();
        let now = Timestamp::new(1000);
        let one = store.exempt(wanted("alice", None, None, 2000), "root", now).await.unwrap();
        let two = wanted("bob", Some("low-cpu"), Some("c1"), 3000);
        let two = store.exempt(two, "carol", now).await.unwrap();
        let at = async |moment| store.exemptions_at(Timestamp::new(moment)).await.unwrap();
        assert_eq!(at(1999).await, [one.clone(), two.clone()]);
        assert_eq!(at(2000).await, std::slice::from_ref(&two), "the end is not in it");
        assert!(store.remove_exemption(&two.id, "dave", Timestamp::new(1500)).await.unwrap());
        assert!(!store.remove_exemption(&two.id, "dave", Timestamp::new(1600)).await.unwrap());
        assert!(!store.remove_exemption("none", "dave", now).await.unwrap());
        assert_eq!(at(1600).await, [one]);
        let all = store.exemptions().await.unwrap();
        assert_eq!(all.len(), 2, "what ended stays");
        assert_eq!(all[1].removed, Some((Timestamp::new(1500), "dave".to_owned())));
        let log = store.audited(Timestamp::new(0)).await.unwrap();
        let told: Vec<_> = log
            .iter()
            .map(|made| (&*made.entry.actor, &*made.entry.action, &*made.entry.subject))
            .collect();
        let expected = [
            ("root", "exempt add", "alice"),
            ("carol", "exempt add", "bob"),
            ("dave", "exempt remove", "bob"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn one_without_a_rule_or_cluster_covers_all_of_them_and_no_other_user() {
        let of = |rule: Option<&str>, cluster: Option<&str>| {
            let Wanted { user, rule, cluster, reason, ends } = wanted("alice", rule, cluster, 9);
            let (added, by) = (Timestamp::new(0), String::new());
            Exemption { id: id(), user, rule, cluster, reason, added, by, ends, removed: None }
        };
        let low = ("night", "low-cpu", "c1");
        for (rule, cluster, covers) in [
            (None, None, true),
            (Some("night"), None, true),
            (Some("low-cpu"), Some("c1"), true),
            (Some("low-gpu"), None, false),
            (None, Some("c2"), false),
        ] {
            let one = of(rule, cluster);
            assert_eq!(one.covers("alice", low.0, low.1, low.2), covers, "{rule:?} {cluster:?}");
            assert!(!one.covers("bob", low.0, low.1, low.2));
        }
    }
}
