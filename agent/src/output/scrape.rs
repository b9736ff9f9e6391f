//! The listener for Prometheus: `/metrics` and `/healthz`.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::exposition::{Format, encode};
use super::limited::Limited;
use crate::publish::Latest;
use crate::shutdown::Shutdown;

/// A client that does not read its answer is not waited for longer than this at the end.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Context {
    latest: Latest,
}

/// Serves until `shutdown`.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    latest: Latest,
    shutdown: Shutdown,
) -> std::io::Result<()> {
    let context = Context { latest };
    let router = Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .with_state(context);
    let closing = shutdown.clone();
    let server = axum::serve(Limited::new(listener), router)
        .with_graceful_shutdown(async move { closing.wait().await });
    tokio::select! {
        result = async { server.await } => result,
        () = async { shutdown.wait().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

async fn index() -> &'static str {
    "steward-agent\n\n/metrics  what the jobs on this node do, for Prometheus\n/healthz  200 while scans succeed\n"
}

async fn metrics(State(context): State<Context>, headers: HeaderMap) -> Response {
    let Some(snapshot) = context.latest.borrow().clone() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the first scan is not done yet\n")
            .into_response();
    };
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let format = Format::negotiate(accept);
    match encode(snapshot.samples(), format) {
        Ok(body) => ([(header::CONTENT_TYPE, format.content_type())], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn healthz(State(context): State<Context>) -> (StatusCode, String) {
    let unhealthy = |why: String| (StatusCode::SERVICE_UNAVAILABLE, why);
    let Some(snapshot) = context.latest.borrow().clone() else {
        return unhealthy("the first scan is not done yet\n".to_owned());
    };
    let age = snapshot.at.elapsed();
    if age > snapshot.period * 3 + Duration::from_secs(1) {
        return unhealthy(format!("the last scan began {} s ago\n", age.as_secs()));
    }
    if snapshot.nodes.is_empty() {
        return unhealthy(
            "the cluster's name is not known: set 'cluster' or paths.slurm_conf\n".to_owned(),
        );
    }
    if !snapshot.whole {
        return unhealthy("the last scan could not list all jobs: see the log\n".to_owned());
    }
    (StatusCode::OK, "ok\n".to_owned())
}
