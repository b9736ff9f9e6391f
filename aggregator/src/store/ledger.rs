//! The ledger of the bank: accounts, and entries that are added and never changed.
//!
//! Every change of an account begins with a change of its row, which both engines lock: whoever comes second waits,
//! and then reads what the first one wrote.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlx::{Any, AnyPool, Transaction};
use steward_common::bank::{Account, Change, Day, Entry, Kind, Line, Refused, Told, Units};
use steward_common::slurm::ParseError;
use steward_common::time::Timestamp;

use super::holds::{Reset, put_reset};
use super::{Store, StoreError, Trouble};

/// How long a change waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who does something, why and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// His name.
    pub actor: String,
    /// What he said.
    pub reason: String,
    /// Now.
    pub at: Timestamp,
}

/// Why a change was not made. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not allowed, or makes no sense.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A row of an account.
type Row = (String, i64, String, String, i64, i64, i64, i64, i64);

const COLUMNS: &str =
    "account, unlimited, start_day, end_day, lower_told, upper_told, over_told, end_told, made_at";

/// A row of a sum.
type Sum = (String, String, String, i64);

/// A row of an entry.
type One = (i64, String, String, i64, i64, String, String, String);

/// Asks for all entries of an account.
fn entries_of(
    account: &str,
) -> sqlx::query::QueryAs<'_, Any, One, <Any as sqlx::Database>::Arguments> {
    sqlx::query_as(
        "SELECT number, cluster, kind, amount, made_at, actor, reason, about FROM bank_entry \
         WHERE account = $1 ORDER BY number",
    )
    .bind(account)
}

/// Several accounts by name.
pub type Accounts = BTreeMap<String, Account>;

impl Store {
    /// Puts a new account into the bank.
    ///
    /// # Errors
    /// If it is there, or that cannot be written.
    pub async fn open_account(
        &self,
        name: &str,
        period: (Day, Day),
        change: &Change,
        author: &Author,
    ) -> Result<(), LedgerError> {
        let pool = self.pool().await?;
        let mut work = self.turn(&pool).await?;
        let made = sqlx::query(
            "INSERT INTO bank_account (account, entries, unlimited, start_day, end_day, lower_told, \
             upper_told, over_told, end_told, statement_told, made_at) \
             VALUES ($1, 0, 0, $2, $3, 0, 0, 0, 0, '', $4) ON CONFLICT (account) DO NOTHING",
        )
        .bind(name)
        .bind(period.0.to_string())
        .bind(period.1.to_string())
        .bind(author.at.get());
        if self.ask(made.execute(&mut *work)).await?.rows_affected() == 0 {
            return Err(Refused::Exists(name.to_owned()).into());
        }
        self.apply(&mut work, name, change, author).await?;
        Ok(self.ask(work.commit()).await?)
    }

    /// Changes accounts: `plan` sees them as they are and says what to change; nobody else changes them meanwhile.
    /// Usage that is to be set to nothing with it is written down at the same time. Gives the accounts as they are then.
    ///
    /// # Errors
    /// If one is not in the bank, `plan` refuses, or it cannot be written.
    pub async fn change_accounts(
        &self,
        names: &[&str],
        author: &Author,
        resets: &[Reset],
        plan: impl FnOnce(&Accounts) -> Result<Vec<(String, Change)>, Refused>,
    ) -> Result<Accounts, LedgerError> {
        let pool = self.pool().await?;
        let mut work = self.turn(&pool).await?;
        let mut accounts = Accounts::new();
        // Always in the same order: two who lock the same accounts do not wait for one another.
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for name in &sorted {
            let lock = sqlx::query("UPDATE bank_account SET entries = entries WHERE account = $1");
            if self.ask(lock.bind(*name).execute(&mut *work)).await?.rows_affected() == 0 {
                return Err(Refused::Unknown((*name).to_owned()).into());
            }
            let account = self.read(&mut work, name).await?;
            accounts.insert((*name).to_owned(), account);
        }
        for (name, change) in plan(&accounts)? {
            self.apply(&mut work, &name, &change, author).await?;
            let after = self.read(&mut work, &name).await?;
            accounts.insert(name, after);
        }
        for reset in resets {
            self.ask(put_reset(reset, author).execute(&mut *work)).await?;
        }
        self.ask(work.commit()).await?;
        Ok(accounts)
    }

    /// Begins a change when it is its turn. SQLite gives turns by luck, and one of many writers may have none for longer
    /// than it waits; nothing was done yet, so it may be tried again.
    pub(super) async fn turn(
        &self,
        pool: &AnyPool,
    ) -> Result<Transaction<'static, Any>, StoreError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.begin(pool).await {
                Err(error) if error.is_locked() && Instant::now() < until => {}
                done => return done,
            }
        }
    }

    async fn read(
        &self,
        work: &mut Transaction<'static, Any>,
        name: &str,
    ) -> Result<Account, StoreError> {
        let text = format!("SELECT {COLUMNS} FROM bank_account WHERE account = $1");
        let row = sqlx::query_as::<_, Row>(sqlx::AssertSqlSafe(text)).bind(name);
        let row = self.ask(row.fetch_one(&mut **work)).await?;
        let sums = sqlx::query_as::<_, Sum>(
            "SELECT account, cluster, kind, CAST(SUM(amount) AS BIGINT) FROM bank_entry \
             WHERE account = $1 GROUP BY account, cluster, kind",
        );
        let sums = self.ask(sums.bind(name).fetch_all(&mut **work)).await?;
        let mut account = account(row).map_err(|error| self.odd(error))?;
        for sum in sums {
            add(&mut account, &sum).map_err(|error| self.odd(error))?;
        }
        Ok(account)
    }

    async fn apply(
        &self,
        work: &mut Transaction<'static, Any>,
        name: &str,
        change: &Change,
        author: &Author,
    ) -> Result<(), StoreError> {
        for line in &change.lines {
            self.append(work, name, line, author).await?;
        }
        if let Some(unlimited) = change.unlimited {
            let set = sqlx::query("UPDATE bank_account SET unlimited = $1 WHERE account = $2");
            self.ask(set.bind(i64::from(unlimited)).bind(name).execute(&mut **work)).await?;
        }
        if let Some((start, end)) = change.period {
            let set = sqlx::query(
                "UPDATE bank_account SET start_day = $1, end_day = $2 WHERE account = $3",
            );
            let set = set.bind(start.to_string()).bind(end.to_string()).bind(name);
            self.ask(set.execute(&mut **work)).await?;
        }
        if let Some(told) = change.told {
            let set = sqlx::query(
                "UPDATE bank_account SET lower_told = $1, upper_told = $2, over_told = $3, \
                 end_told = $4 WHERE account = $5",
            );
            let set = [told.lower, told.upper, told.over, told.end]
                .into_iter()
                .fold(set, |set, flag| set.bind(i64::from(flag)));
            self.ask(set.bind(name).execute(&mut **work)).await?;
        }
        Ok(())
    }

    async fn append(
        &self,
        work: &mut Transaction<'static, Any>,
        name: &str,
        line: &Line,
        author: &Author,
    ) -> Result<(), StoreError> {
        let next = sqlx::query("UPDATE bank_account SET entries = entries + 1 WHERE account = $1");
        self.ask(next.bind(name).execute(&mut **work)).await?;
        let entry = sqlx::query(
            "INSERT INTO bank_entry (account, number, cluster, kind, amount, made_at, actor, \
             reason, about) SELECT account, entries, $2, $3, $4, $5, $6, $7, $8 FROM bank_account \
             WHERE account = $1",
        )
        .bind(name)
        .bind(line.cluster.as_deref().unwrap_or_default())
        .bind(line.kind.word())
        .bind(line.amount.seconds())
        .bind(author.at.get())
        .bind(&author.actor)
        .bind(&author.reason)
        .bind(line.about.as_deref().unwrap_or_default());
        self.ask(entry.execute(&mut **work)).await.map(drop)
    }

    /// Adds entries of an account: `plan` sees all that there are, and nobody else adds one meanwhile. Gives how many.
    ///
    /// # Errors
    /// If it is not in the bank, or that cannot be written.
    pub async fn add_entries(
        &self,
        name: &str,
        author: &Author,
        plan: impl FnOnce(&[Entry]) -> Vec<Line>,
    ) -> Result<usize, LedgerError> {
        let pool = self.pool().await?;
        let mut work = self.turn(&pool).await?;
        let lock = sqlx::query("UPDATE bank_account SET entries = entries WHERE account = $1");
        if self.ask(lock.bind(name).execute(&mut *work)).await?.rows_affected() == 0 {
            return Err(Refused::Unknown(name.to_owned()).into());
        }
        let rows = self.ask(entries_of(name).fetch_all(&mut *work)).await?;
        let lines = plan(&listed(name, rows).map_err(|error| self.odd(error))?);
        for line in &lines {
            self.append(&mut work, name, line, author).await?;
        }
        self.ask(work.commit()).await?;
        Ok(lines.len())
    }

    /// All accounts of the bank.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn accounts(&self) -> Result<Accounts, StoreError> {
        let pool = self.pool().await?;
        let mut work = self.ask(pool.begin()).await?;
        let text = format!("SELECT {COLUMNS} FROM bank_account ORDER BY account");
        let rows = sqlx::query_as::<_, Row>(sqlx::AssertSqlSafe(text));
        let rows = self.ask(rows.fetch_all(&mut *work)).await?;
        let sums = sqlx::query_as::<_, Sum>(
            "SELECT account, cluster, kind, CAST(SUM(amount) AS BIGINT) FROM bank_entry \
             GROUP BY account, cluster, kind",
        );
        let sums = self.ask(sums.fetch_all(&mut *work)).await?;
        let mut accounts = Accounts::new();
        for row in rows {
            let account = account(row).map_err(|error| self.odd(error))?;
            accounts.insert(account.name.clone(), account);
        }
        for sum in sums {
            if let Some(account) = accounts.get_mut(&sum.0) {
                add(account, &sum).map_err(|error| self.odd(error))?;
            }
        }
        Ok(accounts)
    }

    /// One account of the bank.
    ///
    /// # Errors
    /// If it is not there, or cannot be read.
    pub async fn account_named(&self, name: &str) -> Result<Account, LedgerError> {
        let found = self.accounts().await?.remove(name);
        Ok(found.ok_or_else(|| Refused::Unknown(name.to_owned()))?)
    }

    /// The entries of an account, the first one first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn entries(&self, account: &str) -> Result<Vec<Entry>, StoreError> {
        let pool = self.pool().await?;
        let rows = self.ask(entries_of(account).fetch_all(&*pool)).await?;
        listed(account, rows).map_err(|error| self.odd(error))
    }

    /// What somebody else wrote into a table may be anything.
    pub(super) fn odd(&self, error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        StoreError { place: self.place.clone(), trouble: Trouble::Other(error.into()) }
    }
}

/// Entries of rows.
fn listed(account: &str, rows: Vec<One>) -> Result<Vec<Entry>, ParseError> {
    let some = |text: String| (!text.is_empty()).then_some(text);
    let entry = |(number, cluster, kind, amount, at, actor, reason, about): One| {
        Ok(Entry {
            number,
            account: account.to_owned(),
            cluster: some(cluster),
            kind: kind.parse()?,
            amount: Units::new(amount),
            at: Timestamp::new(at),
            actor,
            reason,
            about: some(about),
        })
    };
    rows.into_iter().map(entry).collect()
}

/// The account of a row, without its sums.
fn account(row: Row) -> Result<Account, ParseError> {
    let (name, unlimited, start, end, lower, upper, over, end_told, made) = row;
    let told = Told { lower: lower != 0, upper: upper != 0, over: over != 0, end: end_told != 0 };
    Ok(Account {
        name,
        unlimited: unlimited != 0,
        start: start.parse()?,
        end: end.parse()?,
        told,
        made: Timestamp::new(made),
        parts: BTreeMap::new(),
    })
}

fn add(account: &mut Account, sum: &Sum) -> Result<(), ParseError> {
    let (_, cluster, kind, amount) = sum;
    let kind: Kind = kind.parse()?;
    let cluster = (!cluster.is_empty()).then(|| cluster.clone());
    account.parts.entry(cluster).or_default().add(kind, Units::new(*amount));
    Ok(())
}

#[cfg(test)]
mod tests;
