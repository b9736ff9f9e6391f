//! The service's memory: what it must not forget and nobody else keeps. SQLite, in one file, or a database of
//! PostgreSQL.
//!
//! A subject is a file with its questions and, in `migrations/`, a numbered migration that both engines take (TEXT,
//! BIGINT and DOUBLE PRECISION; `$1`). To change a table add a migration: those that are there stay as they are,
//! since stores out there have them. A question goes through [`Store::ask`]; several changes that belong together
//! begin with [`Store::begin`].

pub mod alerts;
pub mod audit;
pub mod cancels;
mod error;
pub mod events;
pub mod exemptions;
pub mod forget;
pub mod holds;
pub mod ledger;
pub mod notices;
mod open;
mod place;
pub mod post;
pub mod states;
pub mod told;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::{Any, AnyPool, Transaction};
use tokio::sync::{RwLock, RwLockReadGuard};

pub use error::{StoreError, Trouble};
use open::Open;
pub use place::{Address, Place};

/// How long the store is waited for, whatever it does: more than each engine's own patience.
const LONGEST: Duration = Duration::from_secs(30);

/// An open store. Its clones are the same.
#[derive(Clone, Debug)]
pub struct Store {
    place: Place,
    open: Arc<RwLock<Open>>,
    losses: Arc<AtomicU64>,
}

impl Store {
    /// Opens a file of SQLite; see [`Store::at`].
    ///
    /// # Errors
    /// If it cannot be used; it is then left as it is.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        Store::at(Place::File(PathBuf::from(path))).await
    }

    /// Opens a store, makes its file if there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// If it cannot be used; it is then left as it is.
    pub async fn at(place: Place) -> Result<Store, StoreError> {
        let open = Open::new(&place).await?;
        Ok(Store { place, open: Arc::new(RwLock::new(open)), losses: Arc::new(AtomicU64::new(0)) })
    }

    /// The same for a store that is there: `None` if its file was never made. Nothing is made for
    /// somebody who only looks.
    ///
    /// # Errors
    /// If it cannot be used.
    pub async fn existing(place: Place) -> Result<Option<Store>, StoreError> {
        match &place {
            Place::File(path) if !path.exists() => Ok(None),
            _ => Store::at(place).await.map(Some),
        }
    }

    /// Waits until nothing is asked any more, and closes it.
    pub async fn close(&self) {
        self.open.read().await.close().await;
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How often the file was found deleted or replaced since the store was opened. What was written
    /// before may be lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Makes sure that what is written now is in the file that others will find: one that was
    /// deleted or replaced is opened anew.
    ///
    /// # Errors
    /// If the new one cannot be used; this is tried again whenever the store is.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.pool().await.map(drop)
    }

    /// Whom to ask. The file stays the same until the answer is dropped.
    async fn pool(&self) -> Result<RwLockReadGuard<'_, AnyPool>, StoreError> {
        let open = self.open.read().await;
        if open.is_there(&self.place) {
            return Ok(RwLockReadGuard::map(open, |open| &open.pool));
        }
        drop(open);
        let mut open = self.open.write().await;
        // Another may have been quicker.
        if !open.is_there(&self.place) {
            self.replace(&mut open).await?;
        }
        Ok(RwLockReadGuard::map(open.downgrade(), |open| &open.pool))
    }

    /// Begins a change of several parts: all of them are made, or none. On SQLite it is the only writer from here
    /// on: a change that reads first and writes later could not be waited for.
    async fn begin(&self, pool: &AnyPool) -> Result<Transaction<'static, Any>, StoreError> {
        match self.place {
            Place::File(_) => self.ask(pool.begin_with("BEGIN IMMEDIATE")).await,
            Place::Server { .. } => self.ask(pool.begin()).await,
        }
    }

    /// Waits for an answer, but not for ever: a server may be gone without a word.
    async fn ask<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(LONGEST, work).await {
            Ok(answer) => answer.map_err(|error| self.error(error)),
            Err(_) => Err(self.error(sqlx::Error::PoolTimedOut)),
        }
    }

    async fn replace(&self, open: &mut Open) -> Result<(), StoreError> {
        if open.file.take().is_some() {
            self.losses.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                path = %self.place,
                "the store's file was deleted or replaced while the service runs; it is opened \
                 anew, and what only the old one had is lost: put a backup in its place while no \
                 service runs"
            );
        }
        open.leave(&self.place).await;
        *open = Open::new(&self.place).await?;
        Ok(())
    }

    fn error(&self, error: sqlx::Error) -> StoreError {
        StoreError::new(&self.place, error)
    }
}

/// A name that nothing else in the store has.
fn id() -> String {
    let mut bytes = [0_u8; 8];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) != Ok(8) {
        // The kernel gives so few at once, always; if it did not, the clock would do.
        let nanoseconds = jiff::Timestamp::now().as_nanosecond();
        return format!("{nanoseconds:032x}");
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
