//! The newest snapshot of each cluster, for all who want to see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use steward_common::cluster::Snapshot;
use steward_common::id::ClusterName;
use tokio::sync::watch;

/// Where snapshots are put up.
#[derive(Debug)]
pub struct Board {
    newest: Mutex<BTreeMap<ClusterName, Arc<Snapshot>>>,
    last: watch::Sender<Option<Arc<Snapshot>>>,
}

impl Default for Board {
    fn default() -> Board {
        Board { newest: Mutex::default(), last: watch::Sender::new(None) }
    }
}

impl Board {
    /// Puts up a snapshot in the place of the one before.
    pub fn put(&self, snapshot: Arc<Snapshot>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.insert(snapshot.cluster.clone(), Arc::clone(&snapshot));
        drop(newest);
        self.last.send_replace(Some(snapshot));
    }

    /// The newest of each cluster.
    #[must_use]
    pub fn all(&self) -> BTreeMap<ClusterName, Arc<Snapshot>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells whenever one is put up.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.last.subscribe()
    }
}
