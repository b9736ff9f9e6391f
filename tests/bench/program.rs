//! The real program, as built for a release, with a port and a state file of its own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use reqwest::header::ACCEPT;
use steward_tests::{http, wait};
use tempfile::TempDir;

use crate::child::{self, Running};
use crate::workload::NODE;

/// What Prometheus says that it accepts: it gets OpenMetrics.
pub const PROMETHEUS: &str =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
/// What curl says: it gets text 0.0.4, which is made in another way.
pub const CURL: &str = "*/*";

/// A running `steward-agent`; dropping it ends it.
pub struct Program {
    pub process: Running,
    url: String,
    /// Its configuration and state; removed with it.
    _directory: TempDir,
}

impl Program {
    /// Starts it, and waits for its first scan.
    pub fn start(interval: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // A file of ours, though empty: that of this host must not count.
        let config = directory.path().join("agent.toml");
        std::fs::write(&config, "").expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        drop(listener);
        let process = child::command(built())
            .arg("--config")
            .arg(config)
            .arg("--state")
            .arg(directory.path().join("state.json"))
            .args(["--node", NODE, "--cluster", "bench", "--log", "warn"])
            .args(["--interval", interval, "--listen", &address])
            .stdin(Stdio::null())
            .spawn()
            .expect("steward-agent");
        let program = Self {
            process: Running(process),
            url: format!("http://{address}/metrics"),
            _directory: directory,
        };
        wait::until("the first scan", Duration::from_secs(60), || program.scans(PROMETHEUS));
        program
    }

    /// Scans done, as it says itself to a reader that accepts `accept`.
    pub fn scans(&self, accept: &str) -> Option<f64> {
        let page = http::client().get(&self.url).header(ACCEPT, accept).send().ok()?;
        let page = page.status().is_success().then(|| page.text().ok())??;
        let line = page.lines().find(|line| line.starts_with("steward_agent_scans_total"))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> f64 {
        child::resident(&self.process.0.id().to_string())
    }
}

/// Where cargo put it: beside this program.
fn built() -> PathBuf {
    let path = std::env::current_exe().expect("a path").with_file_name("steward-agent");
    assert!(path.is_file(), "{} is not built: use tests/bench/agent", path.display());
    path
}
