//! An answer that is none: why, and what to try.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    status: StatusCode,
    error: String,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
}

impl Refusal {
    /// What was asked makes no sense.
    pub fn bad(error: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, error: error.into() }
    }

    /// There is nothing of that name.
    pub fn none(error: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::NOT_FOUND, error: error.into() }
    }

    /// There is nothing that can be changed.
    pub fn read_only(error: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::METHOD_NOT_ALLOWED, error: error.into() }
    }

    /// It is not known yet.
    pub fn later(error: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, error: error.into() }
    }

    /// Something went wrong.
    pub fn failed(error: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, error: error.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&Body { error: &self.error }).unwrap_or_default();
        (self.status, [(header::CONTENT_TYPE, "application/json")], text + "\n").into_response()
    }
}
