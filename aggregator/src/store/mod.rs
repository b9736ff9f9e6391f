//! The service's memory: what it must not forget and nobody else keeps. SQLite, in one file.
//!
//! A subject is a file with its questions and, in `sqlite/`, a numbered migration. To change a table
//! add a migration: those that are there stay as they are, since files out there have them. Keep to SQL
//! that PostgreSQL takes too.

mod error;
pub mod states;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};

pub use error::StoreError;
use error::{Trouble, trouble};

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a question waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Questions at a time. SQLite has one writer, and readers are few.
const MOST: u32 = 4;

/// Every migration: its number, what it brings, its text.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "job states", include_str!("sqlite/0001_job_states.sql"))];

/// An open store.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    pool: SqlitePool,
}

impl Store {
    /// Opens the file, makes it if there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// If it cannot be used; it is then left as it is.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        create(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            // Readers do not wait for the writer, and a power cut loses at most the last change.
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(PATIENCE);
        let pool = SqlitePoolOptions::new()
            .max_connections(MOST)
            .acquire_timeout(TURN)
            .connect_with(options)
            .await
            .map_err(|error| StoreError::new(path, error))?;
        let store = Store { path: path.to_owned(), pool };
        match store.prepare().await {
            Ok(()) => Ok(store),
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }

    /// Waits until nothing is asked any more, and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        // A file that was cut or overwritten in the middle opens without a word.
        let said: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        if said != "ok" {
            return Err(StoreError { path: self.path.clone(), trouble: Trouble::Damaged(said) });
        }
        migrator().run(&self.pool).await.map_err(|error| StoreError {
            path: self.path.clone(),
            trouble: error::of_migration(error, newest()),
        })
    }

    fn error(&self, error: sqlx::Error) -> StoreError {
        StoreError { path: self.path.clone(), trouble: trouble(error) }
    }
}

/// What the service remembers is nobody else's business: SQLite would let everybody read it.
fn create(path: &Path) -> Result<(), StoreError> {
    let made = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(path));
    made.map(drop)
        .map_err(|source| StoreError { path: path.to_owned(), trouble: Trouble::File(source) })
}

fn newest() -> i64 {
    MIGRATIONS.iter().map(|(number, _, _)| *number).max().unwrap_or_default()
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.iter().map(|(number, what, text)| {
        Migration::new(*number, (*what).into(), MigrationType::Simple, text.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}

#[cfg(test)]
mod tests;
