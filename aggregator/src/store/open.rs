//! Opening a store with its tables up to date, and knowing a file again.

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::Url;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection, Executor, SqlSafeStr};

use super::error::{self, StoreError, Trouble};
use super::place::{Address, Place};

/// Readers do not wait for the writer, and a power cut loses at most the last change. The file keeps that. That a writer
/// waits five seconds for another is what sqlx does anyway.
const JOURNAL: &str = "PRAGMA journal_mode = WAL";

/// How long a question waits for its turn, and a server for its first answer.
const TURN: Duration = Duration::from_secs(10);

/// What PostgreSQL is told of our patience: for a statement, for the lock of another, and with a change of ours that
/// nobody ends.
const TIMEOUTS: &str = "-c statement_timeout=15s -c lock_timeout=5s \
                        -c idle_in_transaction_session_timeout=60s";

/// Questions at a time. SQLite has one writer, and readers are few.
const MOST: u32 = 4;

/// How often tables are made, and how long after the last time.
const TRIES: u32 = 10;
const AGAIN: Duration = Duration::from_millis(200);

/// Every migration: its number, what it brings, its text.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "job states", include_str!("migrations/0001_job_states.sql")),
    (2, "notices", include_str!("migrations/0002_notices.sql")),
    (3, "exemptions and audit log", include_str!("migrations/0003_exemptions.sql")),
    (4, "cancellations", include_str!("migrations/0004_cancellations.sql")),
    (5, "outlets", include_str!("migrations/0005_outlets.sql")),
    (6, "bank", include_str!("migrations/0006_bank.sql")),
];

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

/// What is open of a store.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) pool: AnyPool,
    /// A connection that stays with the file, whatever happens to its name: the pool opens others when it likes.
    keeper: Mutex<Option<AnyConnection>>,
    /// Which file that is; `None` on a server, or once it was left and no other could be opened.
    pub(super) file: Option<File>,
}

impl Open {
    /// Opens the store, makes its file if there is none, and brings its tables up to date.
    pub(super) async fn new(place: &Place) -> Result<Open, StoreError> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        match place {
            Place::File(path) => Open::file(place, path).await,
            Place::Server { address, password_file } => {
                Open::server(place, address, password_file.as_deref()).await
            }
        }
    }

    async fn file(place: &Place, path: &Path) -> Result<Open, StoreError> {
        let file = create(path).map_err(|source| StoreError {
            place: place.clone(),
            trouble: Trouble::File(source),
        })?;
        let fault = |error| StoreError::new(place, error);
        let options =
            AnyConnectOptions::from_url(&file_url(path).map_err(fault)?).map_err(fault)?;
        let (keeper, said) = look(&options).await.map_err(fault)?;
        if said != "ok" {
            return Err(StoreError { place: place.clone(), trouble: Trouble::Damaged(said) });
        }
        let open = Open { pool: pool(options), keeper: Mutex::new(Some(keeper)), file: Some(file) };
        open.migrated().await.map_err(|trouble| StoreError { place: place.clone(), trouble })
    }

    async fn server(
        place: &Place,
        address: &Address,
        password_file: Option<&Path>,
    ) -> Result<Open, StoreError> {
        let fault = |trouble| StoreError { place: place.clone(), trouble };
        let password = password_file.map(secret).transpose().map_err(fault)?;
        let mut url = address.with_password(password.as_deref());
        url.query_pairs_mut().append_pair("options", TIMEOUTS);
        let options =
            AnyConnectOptions::from_url(&url).map_err(|error| StoreError::new(place, error))?;
        // A pool would go on trying where a first connection says what is wrong.
        let first = tokio::time::timeout(TURN, options.connect()).await;
        let first = first.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let first = first.map_err(|error| StoreError::new(place, error))?;
        drop(first.close().await);
        let open = Open { pool: pool(options), keeper: Mutex::new(None), file: None };
        open.migrated().await.map_err(fault)
    }

    async fn migrated(self) -> Result<Open, Trouble> {
        let mut tries = 0;
        while let Err(error) = migrator().run(&self.pool).await {
            // Of several that open a new file one makes the tables, and the others find them made.
            tries += 1;
            if tries < TRIES
                && matches!(error, MigrateError::ExecuteMigration(..) | MigrateError::Execute(_))
            {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            self.close().await;
            return Err(error::of_migration(error, newest()));
        }
        Ok(self)
    }

    /// Waits until nothing is asked any more, and closes all.
    pub(super) async fn close(&self) {
        self.pool.close().await;
        if let Some(keeper) = self.keeper() {
            drop(keeper.close().await);
        }
    }

    fn keeper(&self) -> Option<AnyConnection> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the file still has its name. When that cannot be told it is not taken for deleted:
    /// SQLite will say what is wrong. A database has no file that could be lost.
    pub(super) fn is_there(&self, place: &Place) -> bool {
        let Place::File(path) = place else { return true };
        let Some(own) = self.file else { return false };
        match File::at(path) {
            Ok(file) => file == own,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Closes a file that has lost its name, before another of that name is opened: SQLite finds the
    /// log beside a file by the name alone, and must neither apply what is in there to another file
    /// nor have it open twice.
    pub(super) async fn leave(&mut self, place: &Place) {
        let Place::File(path) = place else { return };
        self.pool.close().await;
        if let Some(mut keeper) = self.keeper() {
            // A file that was moved is then whole. If it fails the file is lost all the same.
            drop(keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)").await);
            drop(keeper.close().await);
        }
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

/// What is wrong with a file: one that was cut or overwritten in the middle opens without a word. A pool would try for
/// as long as it may where this says it at once.
async fn look(options: &AnyConnectOptions) -> Result<(AnyConnection, String), sqlx::Error> {
    let mut connection = options.connect().await?;
    connection.execute(JOURNAL).await?;
    let check = sqlx::query_scalar("PRAGMA quick_check(1)");
    let said = check.fetch_one(&mut connection).await?;
    Ok((connection, said))
}

fn pool(options: AnyConnectOptions) -> AnyPool {
    AnyPoolOptions::new().max_connections(MOST).acquire_timeout(TURN).connect_lazy_with(options)
}

/// A file's name as an address that keeps its odd signs.
pub(super) fn file_url(path: &Path) -> Result<Url, sqlx::Error> {
    let wrong = |what: &str| sqlx::Error::Configuration(what.into());
    let file = Url::from_file_path(path).map_err(|()| wrong("must be an absolute path"))?;
    let text = file.as_str().replacen("file:", "sqlite:", 1) + "?mode=rw";
    Url::parse(&text).map_err(|error| sqlx::Error::Configuration(error.into()))
}

/// A password from its file, without the end of the line.
fn secret(path: &Path) -> Result<String, Trouble> {
    let fault = |said: String| Trouble::Secret { path: path.to_owned(), said };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(fault("it is empty".to_owned()));
    }
    Ok(text.to_owned())
}

/// What the service remembers is nobody else's business: SQLite would let everybody read it.
fn create(path: &Path) -> std::io::Result<File> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    File::at(path)
}

pub(super) fn newest() -> i64 {
    MIGRATIONS.iter().map(|(number, _, _)| *number).max().unwrap_or_default()
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.iter().map(|(number, what, text)| {
        Migration::new(*number, (*what).into(), MigrationType::Simple, text.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}
