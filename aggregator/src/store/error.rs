//! What can be wrong with the store, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use sqlx::migrate::MigrateError;

/// The store cannot be used, or did not do what was asked. Nothing is changed or deleted then.
#[derive(Debug)]
pub struct StoreError {
    /// Its file.
    pub path: PathBuf,
    /// What is wrong.
    pub trouble: Trouble,
}

/// What is wrong with a store.
#[derive(Debug)]
pub enum Trouble {
    /// The file cannot be made or opened.
    File(std::io::Error),
    /// The file is no database, or not whole.
    Damaged(String),
    /// Another process writes for too long.
    Locked,
    /// There is no room.
    Full,
    /// Its directory or file may not be written to.
    ReadOnly,
    /// A newer version has changed its tables.
    Newer {
        /// The migration that it has,
        has: i64,
        /// and the last one that is known here.
        known: i64,
    },
    /// Something else.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// An error of SQLite about the file at `path`.
    #[must_use]
    pub fn new(path: &Path, error: sqlx::Error) -> StoreError {
        StoreError { path: path.to_owned(), trouble: trouble(error) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the store ", self.path.display())?;
        match &self.trouble {
            Trouble::File(source) => write!(f, "cannot be opened: {source} (store.path)"),
            Trouble::Damaged(said) => write!(
                f,
                "is damaged or no SQLite file ({said}); it is left as it is: put a backup in its \
                 place, or move it and its -wal away to begin with an empty one"
            ),
            Trouble::Locked => f.write_str(
                "is locked by another process that writes for too long; nothing was changed",
            ),
            Trouble::Full => {
                f.write_str("cannot grow: the disk is full; nothing of what it has is lost")
            }
            Trouble::ReadOnly => {
                f.write_str("may not be written to: give its directory to the service's user")
            }
            Trouble::Newer { has, known } => write!(
                f,
                "was changed by a newer steward (its tables are of version {has}, this one knows \
                 {known}); it is left as it is: update this steward, or put an older backup in \
                 its place"
            ),
            Trouble::Other(error) => write!(f, "failed: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What an error of SQLite means; its codes are in <https://sqlite.org/rescode.html>.
pub(super) fn trouble(error: sqlx::Error) -> Trouble {
    let code = error.as_database_error().and_then(|error| error.code());
    let number = code.and_then(|text| text.parse::<u32>().ok());
    // The low byte says what, the rest in which way.
    match number.map(|number| number & 0xff) {
        Some(5 | 6) => Trouble::Locked,
        Some(13) => Trouble::Full,
        Some(3 | 8) => Trouble::ReadOnly,
        Some(11 | 26) => Trouble::Damaged(said(&error)),
        // SQLITE_IOERR_SHORT_READ: the file ends before it should.
        Some(10) if number == Some(522) => Trouble::Damaged(said(&error)),
        _ if matches!(error, sqlx::Error::PoolTimedOut) => Trouble::Locked,
        _ => Trouble::Other(error.into()),
    }
}

fn said(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

pub(super) fn of_migration(error: MigrateError, known: i64) -> Trouble {
    match error {
        MigrateError::VersionMissing(has) if has > known => Trouble::Newer { has, known },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => trouble(error),
        error => Trouble::Other(error.into()),
    }
}
