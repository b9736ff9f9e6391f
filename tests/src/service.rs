//! `steward serve` as the real program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::agent;
use crate::exposition::Exposition;
use crate::gateway::own_port;
use crate::http;
use crate::testbed::Testbed;
use crate::wait;

/// The built program, beside the agent.
///
/// # Panics
/// If it is not built.
pub fn program() -> PathBuf {
    agent::program().with_file_name("steward")
}

/// Runs the real program to its end; code 124 says that it did not come to one within a minute.
///
/// # Panics
/// If it cannot be started.
pub fn steward(args: &[&str]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(program())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("steward: {error}"))
}

/// Copies a program. Not by this process: a child that another test starts meanwhile would hold the
/// copy open for writing for a moment, and until then the kernel refuses to run it.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("--").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "cp {} {}", from.display(), to.display());
}

/// Runs it as `user`.
///
/// # Panics
/// If it cannot be started.
pub fn steward_as(user: &str, args: &[&str]) -> Output {
    // Where it was built may be closed to others.
    let copy = crate::shared::directory();
    let program = copy.path().join("steward");
    copy_program(&self::program(), &program);
    Command::new("runuser")
        .args(["-u", user, "--", "timeout", "60"])
        .arg(program)
        .args(args)
        .current_dir("/tmp")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("runuser: {error}"))
}

/// A running service; dropping it kills it.
#[derive(Debug)]
pub struct Service {
    child: Child,
    url: String,
    socket: PathBuf,
}

impl Service {
    /// Starts one with its state in `dir`, a socket and a configuration of that `name` there, and
    /// `more` settings; waits until it answers. It does not collect unless `more` has
    /// `[collect]`, takes no snapshots unless it has `[exporter]`, and looks at no rules unless it
    /// has `[evaluate]`.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(dir: &Path, name: &str, more: &str) -> Self {
        let address = format!("127.0.0.1:{}", own_port());
        let socket = dir.join(format!("{name}.sock"));
        let config = dir.join(format!("{name}.toml"));
        let mut text = more.to_owned();
        if !more.contains("[collect]") {
            text += "\n[collect]\nenabled = false\n";
        }
        if !more.contains("[exporter]") {
            text += "\n[exporter]\nenabled = false\n";
        }
        if !more.contains("[evaluate]") {
            text += "\n[evaluate]\nenabled = false\n";
        }
        writeln!(
            text,
            "\n[serve]\nlisten = \"{address}\"\nsocket = \"{}\"\nstate = \"{}\"",
            socket.display(),
            dir.join("state").display()
        )
        .and_then(|()| std::fs::write(&config, text).map_err(|_| std::fmt::Error))
        .unwrap_or_else(|error| panic!("{}: {error}", config.display()));
        let child = Command::new(program())
            .arg("--config")
            .arg(&config)
            .arg("serve")
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("steward: {error}"));
        let service = Self { child, url: format!("http://{address}"), socket };
        wait::until_true("the service answers", Duration::from_secs(60), || {
            service.health().is_some()
        });
        service
    }

    /// Where its pages are.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its Unix socket.
    ///
    /// # Panics
    /// If its path is no text.
    pub fn socket(&self) -> &str {
        self.socket.to_str().unwrap_or_else(|| panic!("{:?}", self.socket))
    }

    /// What /healthz says with 200.
    pub fn health(&self) -> Option<String> {
        let answer = http::get(&format!("{}/healthz", self.url)).ok()?;
        answer.status().is_success().then(|| answer.text().ok())?
    }

    /// Waits until /healthz says that it is `role`.
    ///
    /// # Panics
    /// If it does not.
    pub fn wait_for(&self, role: &str) {
        let expected = format!("ok: {role}\n");
        wait::until_true(role, Duration::from_secs(60), || {
            self.health().as_deref() == Some(expected.as_str())
        });
    }

    /// What it exposes now.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn metrics(&self) -> Exposition {
        http::get(&format!("{}/metrics", self.url))
            .and_then(reqwest::blocking::Response::text)
            .map(|text| Exposition::parse(&text))
            .unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }

    /// Sends a signal and gives the exit code; `None` if it died of the signal.
    ///
    /// # Panics
    /// If it does not end within seconds.
    pub fn signal(&mut self, signal: Signal) -> Option<i32> {
        let pid = i32::try_from(self.child.id()).unwrap_or_else(|error| panic!("pid: {error}"));
        kill(Pid::from_raw(pid), signal).unwrap_or_else(|error| panic!("kill: {error}"));
        wait::until("the service ends", Duration::from_secs(15), || {
            self.child.try_wait().unwrap_or_else(|error| panic!("wait: {error}"))
        })
        .code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
