//! An Alertmanager of a test's own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::own_port;
use crate::{http, wait};

/// Nobody is told of anything.
const CONFIG: &str = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n";

/// A real Alertmanager on a port of loopback; dropping it ends it.
#[derive(Debug)]
pub struct Alertmanager {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Alertmanager {
    /// Starts one that knows of no alerts.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(dir.path().join("config.yml"), CONFIG)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut own = Self { dir, port: own_port(), child: None };
        let at = |name: &str| own.dir.path().join(name).display().to_string();
        let child = Command::new("prometheus-alertmanager")
            .arg(format!("--config.file={}", at("config.yml")))
            .arg(format!("--storage.path={}", at("data")))
            .arg(format!("--web.listen-address=127.0.0.1:{}", own.port))
            // It looks for others unless told not to.
            .arg("--cluster.listen-address=")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus-alertmanager: {error}"));
        own.child = Some(child);
        let url = format!("{}/-/ready", own.url());
        wait::until_true("the Alertmanager is ready", Duration::from_secs(30), || {
            http::get(&url).is_ok_and(|answer| answer.status().is_success())
        });
        own
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The alerts that hold.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn alerts(&self) -> Vec<Value> {
        http::get(&format!("{}/api/v2/alerts", self.url()))
            .and_then(reqwest::blocking::Response::json)
            .unwrap_or_else(|error| panic!("Alertmanager: {error}"))
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let ended = child.kill().and_then(|()| child.wait());
            ended.unwrap_or_else(|error| panic!("Alertmanager: {error}"));
        }
    }
}
