//! The testbed's Prometheus, or one of a test's own.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::gateway::own_port;
use crate::testbed::Testbed;
use crate::{http, wait};

/// A real Prometheus that scrapes agents every second, and nobody else does; dropping it ends it.
#[derive(Debug)]
pub struct Prometheus {
    url: String,
    child: Child,
    _directory: tempfile::TempDir,
}

impl Prometheus {
    /// Starts one that scrapes the agent at `agent`.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start(agent: &str) -> Self {
        Self::scraping(&[agent])
    }

    /// Starts one that scrapes these.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn scraping(targets: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("prometheus: {error}"));
        let config = directory.path().join("prometheus.yml");
        let targets: Vec<&str> =
            targets.iter().map(|target| target.trim_start_matches("http://")).collect();
        let text = format!(
            "scrape_configs:\n  - job_name: steward_agent\n    honor_labels: true\n    \
             scrape_interval: 1s\n    scrape_timeout: 1s\n    static_configs:\n      \
             - targets: {targets:?}\n"
        );
        std::fs::write(&config, text).unwrap_or_else(|error| panic!("prometheus: {error}"));
        let address = format!("127.0.0.1:{}", own_port());
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}"));
        let own = Self { url: format!("http://{address}"), child, _directory: directory };
        let ready = format!("{}/-/ready", own.url);
        wait::until_true("Prometheus is ready", Duration::from_secs(60), || {
            http::get(&ready).is_ok_and(|answer| answer.status().is_success())
        });
        own
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

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
    query_at(Testbed::get().prometheus(), query)
}

/// Asks the Prometheus at `url` for `query` now.
///
/// # Errors
/// What Prometheus said against it.
///
/// # Panics
/// If Prometheus does not answer.
pub fn query_at(url: &str, query: &str) -> Result<Vec<Series>, String> {
    let url = format!("{url}/api/v1/query");
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
