//! What the bank has set in Slurm, and means to set: written before Slurm is told, so that whoever comes after a crash
//! knows what was meant.

use std::collections::BTreeMap;

use steward_common::bank::hold::Value;
use steward_common::bank::{Mechanism, Units};
use steward_common::time::Timestamp;

use super::ledger::Author;
use super::{Store, StoreError};

/// How far a hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is to be set; Slurm may have been told.
    Wanted,
    /// Slurm has it.
    Held,
    /// It is to be taken away; Slurm may have been told.
    Leaving,
}

impl Stage {
    const ALL: [(Stage, &'static str); 3] =
        [(Stage::Wanted, "wanted"), (Stage::Held, "held"), (Stage::Leaving, "leaving")];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        Stage::ALL.iter().find(|(stage, _)| *stage == self).map_or("", |(_, word)| word)
    }
}

/// A hold of the bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The account.
    pub account: String,
    /// The cluster.
    pub cluster: String,
    /// What is set.
    pub mechanism: Mechanism,
    /// To which value.
    pub value: u64,
    /// What was there before.
    pub previous: Value,
    /// How far it is.
    pub stage: Stage,
    /// Since when.
    pub since: Timestamp,
}

/// Usage of an account on a cluster that is to be set to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The account.
    pub account: String,
    /// The cluster.
    pub cluster: String,
    /// What it was when that was decided: if it is less now, it was done.
    pub used: Units,
}

/// Something that Slurm was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// When.
    pub at: Timestamp,
    /// The account.
    pub account: String,
    /// The cluster.
    pub cluster: String,
    /// Who did it.
    pub actor: String,
    /// The command.
    pub command: String,
    /// What came of it.
    pub outcome: String,
}

impl Action {
    /// What was set, of the command.
    #[must_use]
    pub fn setting(&self) -> &str {
        self.command.rsplit(" set ").next().unwrap_or(&self.command)
    }
}

impl Store {
    /// Every hold of the bank, by account and cluster.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn holds(&self) -> Result<BTreeMap<(String, String), Hold>, StoreError> {
        type One = (String, String, String, i64, Option<i64>, String, i64);
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, One>(
            "SELECT account, cluster, mechanism, value, previous, state, since FROM bank_hold",
        );
        let rows = self.ask(rows.fetch_all(&*pool)).await?;
        let hold = |(account, cluster, mechanism, value, previous, stage, since): One| {
            let whole = |value: i64| u64::try_from(value).ok();
            let stage = Stage::ALL.iter().find(|(_, word)| *word == stage).map(|(stage, _)| *stage);
            Some(Hold {
                mechanism: mechanism.parse().ok()?,
                value: whole(value)?,
                previous: match previous {
                    Some(value) => Some(whole(value)?),
                    None => None,
                },
                stage: stage?,
                since: Timestamp::new(since),
                account,
                cluster,
            })
        };
        let mut holds = BTreeMap::new();
        for row in rows {
            let hold = hold(row).ok_or_else(|| self.odd(Illegible))?;
            holds.insert((hold.account.clone(), hold.cluster.clone()), hold);
        }
        Ok(holds)
    }

    /// Writes a hold, in place of the one that was there.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn put_hold(&self, hold: &Hold, actor: &str) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let put = sqlx::query(
            "INSERT INTO bank_hold (account, cluster, mechanism, value, previous, state, since, \
             actor) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (account, cluster) DO \
             UPDATE SET mechanism = excluded.mechanism, value = excluded.value, \
             previous = excluded.previous, state = excluded.state, since = excluded.since, \
             actor = excluded.actor",
        )
        .bind(&hold.account)
        .bind(&hold.cluster)
        .bind(hold.mechanism.word())
        .bind(whole(hold.value))
        .bind(hold.previous.map(whole))
        .bind(hold.stage.word())
        .bind(hold.since.get())
        .bind(actor);
        self.ask(put.execute(&*pool)).await.map(drop)
    }

    /// A hold is gone.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn drop_hold(&self, account: &str, cluster: &str) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let gone = sqlx::query("DELETE FROM bank_hold WHERE account = $1 AND cluster = $2");
        self.ask(gone.bind(account).bind(cluster).execute(&*pool)).await.map(drop)
    }

    /// All usage that is to be set to nothing.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn resets(&self) -> Result<Vec<Reset>, StoreError> {
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, (String, String, i64)>(
            "SELECT account, cluster, used FROM bank_reset ORDER BY account, cluster",
        );
        let rows = self.ask(rows.fetch_all(&*pool)).await?;
        let reset = |(account, cluster, used)| Reset { account, cluster, used: Units::new(used) };
        Ok(rows.into_iter().map(reset).collect())
    }

    /// Usage was set to nothing, or is not to be.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn drop_reset(&self, account: &str, cluster: &str) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let gone = sqlx::query("DELETE FROM bank_reset WHERE account = $1 AND cluster = $2");
        self.ask(gone.bind(account).bind(cluster).execute(&*pool)).await.map(drop)
    }

    /// Records what Slurm was told.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn add_action(&self, action: &Action) -> Result<(), StoreError> {
        let pool = self.pool().await?;
        let id = random().map_err(|error| self.odd(error))?;
        let put = sqlx::query(
            "INSERT INTO bank_action (id, made_at, account, cluster, actor, command, outcome) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(action.at.get())
        .bind(&action.account)
        .bind(&action.cluster)
        .bind(&action.actor)
        .bind(&action.command)
        .bind(&action.outcome);
        self.ask(put.execute(&*pool)).await.map(drop)
    }

    /// What Slurm was told of an account, the first first.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn actions(&self, account: &str) -> Result<Vec<Action>, StoreError> {
        type One = (i64, String, String, String, String, String);
        let pool = self.pool().await?;
        let rows = sqlx::query_as::<_, One>(
            "SELECT made_at, account, cluster, actor, command, outcome FROM bank_action \
             WHERE account = $1 ORDER BY made_at",
        );
        let rows = self.ask(rows.bind(account).fetch_all(&*pool)).await?;
        let action = |(at, account, cluster, actor, command, outcome): One| Action {
            at: Timestamp::new(at),
            account,
            cluster,
            actor,
            command,
            outcome,
        };
        Ok(rows.into_iter().map(action).collect())
    }
}

/// Writes usage that is to be set to nothing; the first one knows what it was.
pub(super) fn put_reset<'q>(
    reset: &'q Reset,
    author: &'q Author,
) -> sqlx::query::Query<'q, sqlx::Any, <sqlx::Any as sqlx::Database>::Arguments> {
    sqlx::query(
        "INSERT INTO bank_reset (account, cluster, used, since, actor) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account, cluster) DO NOTHING",
    )
    .bind(&reset.account)
    .bind(&reset.cluster)
    .bind(reset.used.seconds())
    .bind(author.at.get())
    .bind(&author.actor)
}

/// Somebody else wrote it.
#[derive(Debug, thiserror::Error)]
#[error("a hold of the bank cannot be read (table bank_hold)")]
struct Illegible;

/// A name that nothing else has.
fn random() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if got < bytes.len() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
