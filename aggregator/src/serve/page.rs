//! The service's pages: `/metrics` for Prometheus and `/healthz` for whoever watches it.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use steward_common::exposition::{CONTENT_TYPE, header as metric_header, line};
use steward_common::metric::{self, MetricDef};
use tokio::net::TcpListener;

use super::api;
use super::chunks::Chunks;
use super::connections::Connections;
use super::leader::Role;
use super::record::{Collection, Now, State};
use super::task::LONGEST_PAUSE;
use crate::output::exporter;
use crate::shutdown::Shutdown;

/// Connections at a time: Prometheus needs one, and a few people may look.
const MOST: usize = 64;

/// A connection is closed after this; Prometheus opens another without a word.
const LIFETIME: Duration = Duration::from_secs(60);

/// A request must have been sent by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until `shutdown`.
pub async fn serve(listener: TcpListener, state: Arc<State>, shutdown: Shutdown) {
    let mut router = Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/metrics/constants", get(constants))
        .route("/healthz", get(healthz));
    if state.config.serve.api {
        router = router.merge(api::routes());
    }
    listen(listener, router.with_state(state), shutdown).await;
}

/// Serves these pages until `shutdown`.
pub async fn listen(listener: TcpListener, router: Router, shutdown: Shutdown) {
    let mut connections = Connections::new(MOST);
    loop {
        let accepted = connections.next(&shutdown, || listener.accept()).await;
        let Some((stream, _)) = accepted else { break };
        let service = TowerToHyperService::new(router.clone());
        let closing = shutdown.clone();
        connections.spawn(LIFETIME, async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            // What a client does wrong is its own business.
            tokio::select! {
                _ = &mut connection => return,
                () = closing.wait() => connection.as_mut().graceful_shutdown(),
            }
            drop(connection.await);
        });
    }
    connections.end().await;
}

/// What there is to see here.
const PAGES: &str = "steward

/metrics  clusters and the service itself, for Prometheus
/metrics/constants  values of the configuration alone
/healthz  200 while it leads or waits for the leader
";

async fn index(Extract(state): Extract<Arc<State>>) -> String {
    let api = if state.config.serve.api { api::PAGE } else { "" };
    format!("{PAGES}{api}")
}

async fn metrics(Extract(state): Extract<Arc<State>>) -> Response {
    text(all(&state))
}

async fn constants(Extract(state): Extract<Arc<State>>) -> Response {
    text(Ok(vec![state.exporter.constants()]))
}

/// A page of metrics, of pieces that are sent as they are.
pub fn text(pieces: Result<Vec<Bytes>, fmt::Error>) -> Response {
    match pieces {
        Ok(pieces) => {
            let body = Body::new(Chunks::new(pieces));
            ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// About the service itself, and, while it leads, about clusters: two services must not both say
/// what one cluster has.
fn all(state: &State) -> Result<Vec<Bytes>, fmt::Error> {
    let mut pieces = vec![Bytes::from(page(state)?)];
    if state.leadership.leads() {
        let years = state.counts.gpu_years.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.push(exporter::years(&years)?.into());
        let rules = state.counts.rules.lock().unwrap_or_else(PoisonError::into_inner).clone();
        pieces.push(rules.into());
        let bank = state.counts.bank.lock().unwrap_or_else(PoisonError::into_inner).clone();
        pieces.push(bank.into());
        pieces.extend(state.exporter.metrics()?);
    }
    Ok(pieces)
}

/// A metric of each task.
type OfTask = (&'static MetricDef, fn(&Now) -> Option<f64>);

const OF_TASKS: &[OfTask] = &[
    (&metric::CENTRE_TASK_LAST_DURATION, |now| now.last_duration.map(|took| took.as_secs_f64())),
    (&metric::CENTRE_TASK_LAST_FAILURE, |now| now.last_failure.map(seconds)),
    (&metric::CENTRE_TASK_LAST_SUCCESS, |now| now.last_success.map(seconds)),
    (&metric::CENTRE_TASK_RUNNING, |now| Some(flag(now.running_since.is_some()))),
];

fn page(state: &State) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let deleted = state.counts.groups_deleted.load(Ordering::Relaxed);
    let failures = state.counts.store_failures.load(Ordering::Relaxed) + state.store.losses();
    for (def, labels, value) in [
        (&metric::CENTRE_BUILD_INFO, &[env!("CARGO_PKG_VERSION")][..], 1.0),
        (&metric::CENTRE_LEADER, &[], flag(state.leadership.leads())),
        (&metric::CENTRE_PUSHGATEWAY_GROUPS_DELETED, &[], count(deleted)),
        (&metric::CENTRE_START_TIMESTAMP, &[], seconds(state.started)),
        (&metric::CENTRE_STORE_FAILURES, &[], count(failures)),
    ] {
        metric_header(&mut out, def)?;
        line(&mut out, def, labels, value)?;
    }
    collections(&mut out, state)?;
    metric_header(&mut out, &metric::CENTRE_REQUESTS)?;
    let requests = state.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for ((command, result), value) in requests {
        line(&mut out, &metric::CENTRE_REQUESTS, &[command, result], count(value))?;
    }
    let tasks: Vec<_> = state.tasks.iter().map(|record| (record.name, record.now())).collect();
    for (def, figure) in OF_TASKS {
        metric_header(&mut out, def)?;
        for (name, now) in &tasks {
            if let Some(value) = figure(now) {
                line(&mut out, def, &[name], value)?;
            }
        }
    }
    metric_header(&mut out, &metric::CENTRE_TASK_RUNS)?;
    for (name, now) in &tasks {
        for (result, value) in [("ok", now.ok), ("failed", now.failed), ("skipped", now.skipped)] {
            line(&mut out, &metric::CENTRE_TASK_RUNS, &[name, result], count(value))?;
        }
    }
    Ok(out)
}

/// A metric of the collection of each cluster.
type OfCluster = (&'static MetricDef, fn(&Collection) -> Option<f64>);

const OF_CLUSTERS: &[OfCluster] = &[
    (&metric::CENTRE_ARCHIVE_COVERED_UNTIL, |one| {
        #[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
        one.covered_until.map(|second| second as f64)
    }),
    (&metric::CENTRE_COLLECT_LAST_SUCCESS, |one| one.last_success.map(seconds)),
    (&metric::CENTRE_COLLECT_MALFORMED, |one| Some(count(one.malformed))),
    (&metric::CENTRE_COLLECT_RUNS, |one| Some(count(one.runs))),
];

fn collections(out: &mut String, state: &State) -> fmt::Result {
    let mut done = state.counts.collections.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if !state.leadership.leads() {
        // Another service collects: what this one knew of the archive grows old.
        done.clusters.values_mut().for_each(|one| one.covered_until = None);
    }
    metric_header(out, &metric::CENTRE_ARCHIVE_BYTES)?;
    if let Some((raw, processed)) = done.bytes {
        line(out, &metric::CENTRE_ARCHIVE_BYTES, &["raw"], count(raw))?;
        line(out, &metric::CENTRE_ARCHIVE_BYTES, &["processed"], count(processed))?;
    }
    for (def, figure) in OF_CLUSTERS {
        metric_header(out, def)?;
        for (cluster, one) in &done.clusters {
            if let Some(value) = figure(one) {
                line(out, def, &[cluster], value)?;
            }
        }
    }
    Ok(())
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn seconds(moment: Timestamp) -> f64 {
    moment.as_duration().as_secs_f64()
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
fn count(value: u64) -> f64 {
    value as f64
}

async fn healthz(Extract(state): Extract<Arc<State>>) -> (StatusCode, String) {
    match health(&state) {
        Ok(role) => (StatusCode::OK, format!("ok: {role}\n")),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// What the service is, or what is wrong with it.
fn health(state: &State) -> Result<&'static str, String> {
    for record in &state.tasks {
        let asleep = record.now().awake.elapsed();
        if asleep > LONGEST_PAUSE * 3 {
            return Err(format!(
                "the loop of task {} has slept for {} s",
                record.name,
                asleep.as_secs()
            ));
        }
    }
    match state.leadership.role() {
        Role::Leader => Ok("leader"),
        Role::Standby => Ok("standby"),
        Role::Trouble(why) => Err(why),
    }
}
