//! The cluster exporter: snapshots in, pages for Prometheus out. A part of `steward serve`, and
//! `steward exporter` alone.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Extract;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use steward_common::cluster::Snapshot;
use steward_common::time;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::output::exporter::{Exhibit, constants, snapshots};
use crate::serve::board::Board;
use crate::serve::page;
use crate::shutdown::{self, Shutdown};
use crate::snapshot::{self, Publish};

/// What is exported about clusters.
#[derive(Debug)]
pub struct Exporter {
    board: Arc<Board>,
    exhibit: Exhibit,
    constants: Bytes,
}

impl Exporter {
    /// One that has seen nothing yet. Snapshots are put up on `board` for others too.
    ///
    /// # Errors
    /// Never, while memory lasts.
    pub fn new(config: &Config, board: Arc<Board>) -> Result<Self, fmt::Error> {
        let settings = config.exporter.clone();
        let constants = constants(&settings.constants)?.into();
        Ok(Self { board, exhibit: Exhibit::new(settings), constants })
    }

    /// Shows a snapshot to all who look.
    pub fn show(&self, snapshot: Arc<Snapshot>) {
        if let Err(error) = self.exhibit.show(&snapshot) {
            tracing::error!(%error, "cannot write what is exported");
        }
        self.board.put(snapshot);
    }

    /// Takes snapshots and shows them until `shutdown`, whenever `may_ask` says so.
    pub async fn watch(
        self: Arc<Self>,
        config: Arc<Config>,
        may_ask: impl Fn() -> bool + Clone + Send + Sync + 'static,
        shutdown: Shutdown,
    ) {
        let publish = Publish::new(move |snapshot| self.show(snapshot));
        snapshot::watch(config, publish, may_ask, shutdown).await;
    }

    /// What a scrape gets: the text of the last snapshots as it was written then, and the few lines
    /// that are of this moment.
    ///
    /// # Errors
    /// Never, while memory lasts.
    pub fn metrics(&self) -> Result<Vec<Bytes>, fmt::Error> {
        let now = time::Timestamp::new(Timestamp::now().as_second());
        let ages = snapshots(&self.board.all(), now)?;
        Ok(vec![self.exhibit.text(), ages.into(), self.constants()])
    }

    /// The constants alone.
    #[must_use]
    pub fn constants(&self) -> Bytes {
        self.constants.clone()
    }
}

/// Everything of one moment, without a listener.
pub struct Once {
    /// The page.
    pub page: String,
    /// How many clusters told of their nodes.
    pub seen: usize,
    /// How many questions were not answered.
    pub failed: usize,
}

/// Asks each cluster once.
///
/// # Errors
/// If the name of the local cluster cannot be found out.
pub fn once(config: Config, shutdown: &Shutdown) -> anyhow::Result<Once> {
    let config = Arc::new(config);
    let exporter = Exporter::new(&config, Arc::new(Board::default()))?;
    let (mut seen, mut failed) = (0, 0);
    for snapshot in snapshot::once(&config, shutdown)? {
        seen += usize::from(snapshot.nodes.is_some());
        failed += snapshot.asked.values().filter(|asked| asked.error.is_some()).count();
        exporter.show(Arc::new(snapshot));
    }
    let chunks = exporter.metrics()?;
    let page = chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect();
    Ok(Once { page, seen, failed })
}

/// Runs the exporter alone until `shutdown`.
///
/// # Errors
/// If its address is taken, or a part of it ends before its time.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    let address = config.serve.listen;
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("{address}: serve.listen"))?;
    tracing::info!(%address, "started");
    let config = Arc::new(config);
    let exporter = Arc::new(Exporter::new(&config, Arc::new(Board::default()))?);
    let router = Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/metrics/constants", get(only_constants))
        .route("/healthz", get(healthz))
        .with_state(Arc::clone(&exporter));
    let (stopper, stop) = shutdown::channel();
    let mut parts = JoinSet::new();
    parts.spawn(exporter.watch(config, || true, stop.clone()));
    parts.spawn(page::listen(listener, router, stop));
    let early = tokio::select! {
        () = shutdown => None,
        ended = parts.join_next() => ended,
    };
    stopper.stop();
    while let Some(ended) = parts.join_next().await {
        ended?;
    }
    match early {
        None => Ok(()),
        Some(Ok(())) => Err(anyhow::anyhow!("a part of the exporter ended by itself")),
        Some(Err(error)) => Err(error.into()),
    }
}

async fn index() -> &'static str {
    "steward exporter\n\n/metrics            clusters, for Prometheus\n/metrics/constants  values of the configuration alone\n/healthz            200 while it runs\n"
}

async fn metrics(Extract(exporter): Extract<Arc<Exporter>>) -> Response {
    page::text(exporter.metrics())
}

async fn only_constants(Extract(exporter): Extract<Arc<Exporter>>) -> Response {
    page::text(Ok(vec![exporter.constants()]))
}

async fn healthz() -> &'static str {
    "ok: exporter\n"
}
