//! The store's file: opening it with its tables up to date, and knowing it again.

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};

use super::error::{self, StoreError, Trouble};

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a question waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Questions at a time. SQLite has one writer, and readers are few.
const MOST: u32 = 4;

/// Every migration: its number, what it brings, its text.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "job states", include_str!("sqlite/0001_job_states.sql"))];

/// A file, whatever its name: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    device: u64,
    number: u64,
}

impl File {
    /// The file that has this name now.
    fn at(path: &Path) -> std::io::Result<File> {
        let found = std::fs::metadata(path)?;
        Ok(File { device: found.dev(), number: found.ino() })
    }
}

/// The open file of a store.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) pool: SqlitePool,
    /// Which file that is; `None` once it was left and no other could be opened.
    pub(super) file: Option<File>,
}

impl Open {
    /// Opens the file, makes it if there is none, and brings its tables up to date.
    pub(super) async fn new(path: &Path) -> Result<Open, StoreError> {
        let file = create(path)?;
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
        match prepare(&pool, path).await {
            Ok(()) => Ok(Open { pool, file: Some(file) }),
            Err(error) => {
                pool.close().await;
                Err(error)
            }
        }
    }

    /// Whether the file still has its name. When that cannot be told it is not taken for deleted:
    /// SQLite will say what is wrong.
    pub(super) fn is_there(&self, path: &Path) -> bool {
        let Some(own) = self.file else { return false };
        match File::at(path) {
            Ok(file) => file == own,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Closes a file that has lost its name, before another of that name is opened: SQLite finds the
    /// log beside a file by the name alone, and must neither apply what is in there to another file
    /// nor have it open twice.
    pub(super) async fn leave(&mut self, path: &Path) {
        // A file that was moved is then whole. If it fails the file is lost all the same.
        let emptied = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.pool).await;
        drop(emptied);
        self.pool.close().await;
        // One that stands in the place of the old may have brought its own.
        if path.exists() {
            return;
        }
        for suffix in ["-wal", "-shm"] {
            let mut beside = path.as_os_str().to_owned();
            beside.push(suffix);
            // None is there if they were deleted together.
            drop(std::fs::remove_file(PathBuf::from(beside)));
        }
    }
}

async fn prepare(pool: &SqlitePool, path: &Path) -> Result<(), StoreError> {
    // A file that was cut or overwritten in the middle opens without a word.
    let said: String = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(pool)
        .await
        .map_err(|error| StoreError::new(path, error))?;
    if said != "ok" {
        return Err(StoreError { path: path.to_owned(), trouble: Trouble::Damaged(said) });
    }
    migrator().run(pool).await.map_err(|error| StoreError {
        path: path.to_owned(),
        trouble: error::of_migration(error, newest()),
    })
}

/// What the service remembers is nobody else's business: SQLite would let everybody read it.
fn create(path: &Path) -> Result<File, StoreError> {
    let made = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(path));
    made.and_then(|_| File::at(path))
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
