//! The service's memory: what it must not forget and nobody else keeps. SQLite, in one file.
//!
//! A subject is a file with its questions and, in `sqlite/`, a numbered migration. To change a table
//! add a migration: those that are there stay as they are, since files out there have them. Keep to SQL
//! that PostgreSQL takes too.

mod error;
mod open;
pub mod states;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::sqlite::SqlitePool;
use tokio::sync::{RwLock, RwLockReadGuard};

pub use error::StoreError;
use error::trouble;
use open::Open;

/// An open store. Its clones are the same.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    open: Arc<RwLock<Open>>,
    losses: Arc<AtomicU64>,
}

impl Store {
    /// Opens the file, makes it if there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// If it cannot be used; it is then left as it is.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        let open = Open::new(path).await?;
        Ok(Store {
            path: path.to_owned(),
            open: Arc::new(RwLock::new(open)),
            losses: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Waits until nothing is asked any more, and closes the file.
    pub async fn close(&self) {
        self.open.read().await.pool.close().await;
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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
    async fn pool(&self) -> Result<RwLockReadGuard<'_, SqlitePool>, StoreError> {
        let open = self.open.read().await;
        if open.is_there(&self.path) {
            return Ok(RwLockReadGuard::map(open, |open| &open.pool));
        }
        drop(open);
        let mut open = self.open.write().await;
        // Another may have been quicker.
        if !open.is_there(&self.path) {
            self.replace(&mut open).await?;
        }
        Ok(RwLockReadGuard::map(open.downgrade(), |open| &open.pool))
    }

    async fn replace(&self, open: &mut Open) -> Result<(), StoreError> {
        if open.file.take().is_some() {
            self.losses.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                path = %self.path.display(),
                "the store's file was deleted or replaced while the service runs; it is opened \
                 anew, and what only the old one had is lost: put a backup in its place while no \
                 service runs"
            );
        }
        open.leave(&self.path).await;
        *open = Open::new(&self.path).await?;
        Ok(())
    }

    fn error(&self, error: sqlx::Error) -> StoreError {
        StoreError { path: self.path.clone(), trouble: trouble(error) }
    }
}

#[cfg(test)]
mod tests;
