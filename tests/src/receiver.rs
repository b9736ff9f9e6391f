//! A receiver of webhooks in another language, which checks signatures by its own means.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{http, wait};

/// A running receiver; dropping it ends it.
#[derive(Debug)]
pub struct Receiver {
    log: PathBuf,
    child: Child,
}

impl Receiver {
    /// Starts one that writes what it took to a file in `dir`.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start(dir: &Path, port: u16, secret: &Path) -> Self {
        let log = dir.join("received.jsonl");
        let child = Command::new("python3")
            .arg(crate::directory().join("src/receiver.py"))
            .arg(port.to_string())
            .arg(secret)
            .arg(&log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("python3: {error}"));
        let url = format!("http://127.0.0.1:{port}/");
        let receiver = Self { log, child };
        wait::until_true("the receiver is there", Duration::from_secs(30), || {
            http::get(&url).is_ok_and(|answer| answer.status().is_success())
        });
        receiver
    }

    /// What it took: the event's id by the header, and the body.
    ///
    /// # Panics
    /// If what it wrote cannot be read.
    pub fn taken(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let one = |line: &str| {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            (value["event"].as_str().unwrap_or_default().to_owned(), value["body"].clone())
        };
        text.lines().map(one).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.unwrap_or_else(|error| panic!("receiver: {error}"));
    }
}
