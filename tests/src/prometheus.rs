//! The testbed's Prometheus.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::http;
use crate::testbed::Testbed;

#[derive(Deserialize)]
struct Answer {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

/// One series of an instant query's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Series {
    /// Its labels, the name among them.
    pub metric: BTreeMap<String, String>,
    /// Time and value.
    pub value: (f64, String),
}

/// Asks for `query` now.
///
/// # Errors
/// What Prometheus said against it.
///
/// # Panics
/// If Prometheus does not answer.
pub fn query(query: &str) -> Result<Vec<Series>, String> {
    let url = format!("{}/api/v1/query", Testbed::get().prometheus());
    let answer: Answer = http::client()
        .get(&url)
        .query(&[("query", query)])
        .send()
        .and_then(reqwest::blocking::Response::json)
        .unwrap_or_else(|error| panic!("{url}: {error}"));
    if answer.status == "success" {
        Ok(answer.data.map(|data| data.result).unwrap_or_default())
    } else {
        Err(answer.error.unwrap_or_default())
    }
}
