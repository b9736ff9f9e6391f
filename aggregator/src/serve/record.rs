//! What the service knows about itself: seen by /metrics, /healthz and those who ask.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::board::Board;
use super::leader::Leadership;
use crate::config::Config;
use crate::exporter::Exporter;
use crate::output::exporter::Years;
use crate::store::Store;

/// Everything about the service that several of its parts see.
#[derive(Debug)]
pub struct State {
    /// Its settings.
    pub config: Arc<Config>,
    /// When it started.
    pub started: Timestamp,
    /// Whether it acts.
    pub leadership: Arc<Leadership>,
    /// What became of each task, in the order of the list.
    pub tasks: Vec<Arc<Record>>,
    /// What tasks count.
    pub counts: Arc<Counts>,
    /// The newest snapshot of each cluster.
    pub board: Arc<Board>,
    /// What it must not forget.
    pub store: Store,
    /// What is exported about clusters.
    pub exporter: Arc<Exporter>,
    /// Requests at the socket, by command and result.
    pub requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

/// What tasks count, each for itself.
#[derive(Debug, Default)]
pub struct Counts {
    /// Groups deleted from the Pushgateway.
    pub groups_deleted: AtomicU64,
    /// What collections did.
    pub collections: Mutex<Collections>,
    /// Tries to write to the store that failed.
    pub store_failures: AtomicU64,
    /// GPU-years that were used.
    pub gpu_years: Mutex<Years>,
    /// The page about the last evaluation; empty before the first.
    pub rules: Mutex<String>,
    /// What the last check of the bank said, for Prometheus.
    pub bank: Mutex<String>,
}

/// What the collections of this service did.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    /// By cluster.
    pub clusters: BTreeMap<String, Collection>,
    /// Bytes of the archive after the last one, or when this service began to lead: raw and processed.
    pub bytes: Option<(u64, u64)>,
}

/// What they did for a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collection {
    /// When it last succeeded.
    pub last_success: Option<Timestamp>,
    /// Runs that were new or had changed.
    pub runs: u64,
    /// Jobs that could not be read.
    pub malformed: u64,
    /// Up to when the archive has everything.
    pub covered_until: Option<i64>,
}

/// What became of a task.
#[derive(Debug)]
pub struct Record {
    /// Its name.
    pub name: &'static str,
    now: Mutex<Now>,
}

/// A record at a moment.
#[derive(Clone, Debug)]
pub struct Now {
    /// Runs that succeeded.
    pub ok: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Times at which it was due while it was still running.
    pub skipped: u64,
    /// Since when it runs, if it does.
    pub running_since: Option<Timestamp>,
    /// When it last succeeded.
    pub last_success: Option<Timestamp>,
    /// When it last failed.
    pub last_failure: Option<Timestamp>,
    /// Why it last failed; forgotten when it succeeds.
    pub error: Option<String>,
    /// How long its last run took.
    pub last_duration: Option<Duration>,
    /// When it is due next.
    pub next: Option<Timestamp>,
    /// When its loop was last awake.
    pub awake: Instant,
}

impl Record {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let now = Now {
            ok: 0,
            failed: 0,
            skipped: 0,
            running_since: None,
            last_success: None,
            last_failure: None,
            error: None,
            last_duration: None,
            next: None,
            awake: Instant::now(),
        };
        Self { name, now: Mutex::new(now) }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it is now.
    #[must_use]
    pub fn now(&self) -> Now {
        self.lock().clone()
    }

    /// The task's loop is awake and knows when it is due.
    pub fn awake(&self, next: Option<Timestamp>) {
        let mut now = self.lock();
        (now.next, now.awake) = (next, Instant::now());
    }

    /// A run begins.
    pub fn begin(&self, at: Timestamp) {
        self.lock().running_since = Some(at);
    }

    /// It was due and is still running.
    pub fn skip(&self) {
        self.lock().skipped += 1;
    }

    /// A run is over.
    pub fn end(&self, at: Timestamp, took: Duration, result: Result<(), String>) {
        let mut now = self.lock();
        (now.running_since, now.last_duration) = (None, Some(took));
        match result {
            Ok(()) => {
                now.ok += 1;
                (now.last_success, now.error) = (Some(at), None);
            }
            Err(why) => {
                now.failed += 1;
                (now.last_failure, now.error) = (Some(at), Some(why));
            }
        }
    }
}
