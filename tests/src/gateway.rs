//! A Pushgateway of a test's own, which it may stop and start.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::exposition::Exposition;
use crate::http;
use crate::wait;

/// A real Pushgateway on a port of its own; dropping it ends it.
#[derive(Debug)]
pub struct Gateway {
    address: String,
    child: Option<Child>,
}

impl Gateway {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Self {
        let address = format!("127.0.0.1:{}", own_port());
        let mut gateway = Self { address, child: None };
        gateway.resume();
        gateway
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it; what it held is lost.
    ///
    /// # Panics
    /// If it cannot be ended.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().and_then(|()| child.wait()).unwrap_or_else(|e| panic!("pushgateway: {e}"));
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn resume(&mut self) {
        let child = Command::new("prometheus-pushgateway")
            .arg(format!("--web.listen-address={}", self.address))
            // Debian's build persists to one file for all unless told not to.
            .arg("--persistence.file=")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus-pushgateway: {error}"));
        self.child = Some(child);
        let url = format!("{}/-/ready", self.url());
        wait::until_true("the Pushgateway is ready", Duration::from_secs(30), || {
            http::get(&url).is_ok_and(|answer| answer.status().is_success())
        });
    }

    /// All that it holds now.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn metrics(&self) -> Exposition {
        Exposition::parse(&self.text())
    }

    /// All that it holds now, as text.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn text(&self) -> String {
        http::get(&format!("{}/metrics", self.url()))
            .and_then(reqwest::blocking::Response::text)
            .unwrap_or_else(|error| panic!("pushgateway: {error}"))
    }

    /// The groups that it holds: `(job, instance)`.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn groups(&self) -> Vec<(String, String)> {
        let answer: serde_json::Value = http::get(&format!("{}/api/v1/metrics", self.url()))
            .and_then(reqwest::blocking::Response::json)
            .unwrap_or_else(|error| panic!("pushgateway: {error}"));
        let groups = answer["data"].as_array().cloned().unwrap_or_default();
        let label = |group: &serde_json::Value, name: &str| {
            group["labels"][name].as_str().unwrap_or_default().to_owned()
        };
        groups.iter().map(|group| (label(group, "job"), label(group, "instance"))).collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A port that no other test gets, of this run or of another on this machine, even while nobody
/// listens on it: the kernel would give one that is free for a moment to the next who asks.
///
/// # Panics
/// If there is none.
pub fn own_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(18_100);
    /// Locked as long as this process lives.
    static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(port < 19_000, "no free port from 18100 to 19000");
        let mark = std::env::temp_dir().join(format!("steward-test-port-{port}"));
        let lock = File::create(mark).ok().filter(|file| file.try_lock().is_ok());
        let is_free = std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        if let Some(lock) = lock.filter(|_| is_free) {
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
            return port;
        }
    }
}
