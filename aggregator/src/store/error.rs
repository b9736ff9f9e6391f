//! What can be wrong with the store, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

use super::place::Place;

/// The store cannot be used, or did not do what was asked. Nothing is changed or deleted then.
#[derive(Debug)]
pub struct StoreError {
    /// Where it is.
    pub place: Place,
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
    /// It may not be written to.
    ReadOnly,
    /// A newer version has changed its tables.
    Newer {
        /// The migration that it has,
        has: i64,
        /// and the last one that is known here.
        known: i64,
    },
    /// The file with the password cannot be used.
    Secret {
        /// Which it is.
        path: PathBuf,
        /// Why not.
        said: String,
    },
    /// No PostgreSQL answers.
    NoAnswer(String),
    /// PostgreSQL does not let the user in.
    NotLetIn(String),
    /// PostgreSQL has no such database.
    NoDatabase(String),
    /// The user may not do that in the database.
    NotAllowed(String),
    /// Something else.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// An error of the database at `place`.
    #[must_use]
    pub fn new(place: &Place, error: sqlx::Error) -> StoreError {
        let trouble = match (place, error) {
            (Place::Server { .. }, sqlx::Error::PoolTimedOut) => {
                Trouble::NoAnswer("it took too long".to_owned())
            }
            (_, error) => trouble(error),
        };
        StoreError { place: place.clone(), trouble }
    }
}

impl StoreError {
    /// Whether others were writing: the same may work a moment later.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.trouble, Trouble::Locked)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the store ", self.place)?;
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
            Trouble::ReadOnly => f.write_str(match self.place {
                Place::File(_) => "may not be written to: give its directory to the service's user",
                Place::Server { .. } => {
                    "may not be written to: name the server that is no standby in store.url"
                }
            }),
            Trouble::Newer { has, known } => write!(
                f,
                "was changed by a newer steward (its tables are of version {has}, this one knows \
                 {known}); it is left as it is: update this steward, or put an older backup in \
                 its place"
            ),
            Trouble::Secret { path, said } => {
                write!(f, "has no password: {}: {said} (store.password_file)", path.display())
            }
            Trouble::NoAnswer(said) => write!(
                f,
                "does not answer ({said}): see that PostgreSQL runs there and that store.url has \
                 its host, port and sslmode"
            ),
            Trouble::NotLetIn(said) => write!(
                f,
                "does not let us in ({said}): see the user in store.url, the password in \
                 store.password_file and the server's pg_hba.conf"
            ),
            Trouble::NoDatabase(said) => write!(
                f,
                "is not there ({said}): make the database, for example `createdb -O USER NAME`, \
                 or name another in store.url"
            ),
            Trouble::NotAllowed(said) => write!(
                f,
                "does not allow that ({said}): make the user of store.url the database's owner, \
                 or grant it CREATE on the schema"
            ),
            Trouble::Other(error) => write!(f, "failed: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What an error of a database means.
pub(super) fn trouble(error: sqlx::Error) -> Trouble {
    match &error {
        sqlx::Error::Database(said) => match said.try_downcast_ref::<PgDatabaseError>() {
            Some(said) => of_postgres(said.code(), said.message()),
            None => of_sqlite(said.code().as_deref(), said.message()),
        }
        .unwrap_or_else(|| Trouble::Other(error.into())),
        sqlx::Error::Io(said) => Trouble::NoAnswer(said.to_string()),
        sqlx::Error::Tls(said) => Trouble::NoAnswer(said.to_string()),
        // Those before us in the queue are waited for too long.
        sqlx::Error::PoolTimedOut => Trouble::Locked,
        _ => Trouble::Other(error.into()),
    }
}

/// SQLite's codes are in <https://sqlite.org/rescode.html>.
fn of_sqlite(code: Option<&str>, said: &str) -> Option<Trouble> {
    let number = code.and_then(|text| text.parse::<u32>().ok())?;
    // The low byte says what, the rest in which way.
    Some(match number & 0xff {
        5 | 6 => Trouble::Locked,
        13 => Trouble::Full,
        3 | 8 => Trouble::ReadOnly,
        11 | 26 => Trouble::Damaged(said.to_owned()),
        // SQLITE_IOERR_SHORT_READ: the file ends before it should.
        10 if number == 522 => Trouble::Damaged(said.to_owned()),
        _ => return None,
    })
}

/// PostgreSQL's codes are in <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_postgres(code: &str, said: &str) -> Option<Trouble> {
    let said = said.to_owned();
    Some(match code {
        "28P01" | "28000" => Trouble::NotLetIn(said),
        "3D000" => Trouble::NoDatabase(said),
        "42501" => Trouble::NotAllowed(said),
        "25006" => Trouble::ReadOnly,
        "53100" => Trouble::Full,
        // A lock that another holds, a statement that took too long, two that wait for each other.
        "55P03" | "57014" | "40P01" | "40001" => Trouble::Locked,
        // It stops, starts, or has no room for another connection.
        "57P01" | "57P02" | "57P03" | "53300" => Trouble::NoAnswer(said),
        _ => return None,
    })
}

pub(super) fn of_migration(error: MigrateError, known: i64) -> Trouble {
    match error {
        MigrateError::VersionMissing(has) if has > known => Trouble::Newer { has, known },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => trouble(error),
        error => Trouble::Other(error.into()),
    }
}
