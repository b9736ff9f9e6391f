//! The agent: in this process for most tests, as the real program where signals and exit codes
//! matter.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use steward_agent::Agent;
pub use steward_agent::config::{Config, Span};
use tempfile::NamedTempFile;
use tokio::sync::oneshot;

use crate::exposition::Exposition;
use crate::gateway::own_port;
use crate::http;
use crate::testbed::Testbed;
use crate::wait;

/// Settings for a test: the testbed's cluster, a short interval, any free port, no lingering.
pub fn config() -> Config {
    let mut config =
        Config { interval: Span(Duration::from_secs(1)), linger: 0, ..Config::default() };
    config.scrape.listen = ([127, 0, 0, 1], 0).into();
    config.push.spread = 0.0;
    // A debug build is slow; tests want their scans all the same.
    config.quiet.share = 1.0;
    // Agents of several tests run at once; each starts anew.
    config.paths.state = std::path::PathBuf::new();
    config.paths.slurm_conf = Some(Testbed::get().slurm_conf().into());
    config
}

/// An agent that runs in this process; dropping it stops it.
#[derive(Debug)]
pub struct RunningAgent {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl RunningAgent {
    /// Starts it and waits for its first scan.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let agent = Agent::new(config).await?;
                tell.send(agent.address())?;
                let shutdown = async {
                    // A sender that is gone means the same.
                    let _gone = stopped.await;
                };
                agent.run(shutdown).await
            })
        });
        let address = told
            .recv_timeout(Duration::from_secs(30))
            .unwrap_or_else(|error| panic!("the agent did not start: {error}"));
        let url = address.map(|address| format!("http://{address}")).unwrap_or_default();
        let agent = Self { url, stop: Some(stop), thread: Some(thread) };
        if !agent.url.is_empty() {
            wait::until_true("the agent's first scan", Duration::from_secs(30), || {
                agent.get("/metrics").is_some()
            });
        }
        agent
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The body of a page; `None` unless it answers 200.
    pub fn get(&self, path: &str) -> Option<String> {
        let answer = http::get(&format!("{}{path}", self.url)).ok()?;
        answer.status().is_success().then(|| answer.text().ok())?
    }

    /// What it exposes now.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn metrics(&self) -> Exposition {
        let text = self.get("/metrics").unwrap_or_else(|| panic!("{}: no /metrics", self.url));
        Exposition::parse(&text)
    }

    /// Waits until the exposition satisfies `condition`.
    ///
    /// # Panics
    /// If it does not in time.
    pub fn wait_for<T>(
        &self,
        what: &str,
        patience: Duration,
        mut condition: impl FnMut(&Exposition) -> Option<T>,
    ) -> T {
        wait::until(what, patience, || condition(&self.metrics()))
    }

    /// Waits until `count` more scans are done.
    ///
    /// # Panics
    /// If they are not in time.
    pub fn wait_scans(&self, count: u32) {
        let scans = |metrics: &Exposition| {
            metrics.all("steward_agent_scans_total", &[]).first().map(|sample| sample.value)
        };
        let enough = scans(&self.metrics()).unwrap_or(0.0) + f64::from(count);
        self.wait_for("more scans", Duration::from_secs(120), |metrics| {
            (scans(metrics)? >= enough).then_some(())
        });
    }

    /// Stops it and waits until it has ended.
    ///
    /// # Panics
    /// If it ended with an error.
    pub fn stop(mut self) {
        self.end().unwrap_or_else(|error| panic!("the agent ended with an error: {error:#}"));
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself; the thread's result tells.
            let _ended = stop.send(());
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => anyhow::bail!("the agent panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("the agent ended with an error: {error:#}");
        }
    }
}

/// The built program.
///
/// # Panics
/// If it is not built.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_else(|error| panic!("current_exe: {error}"));
    let path = own.ancestors().nth(2).map(|dir| dir.join("steward-agent"));
    path.filter(|path| path.is_file())
        .unwrap_or_else(|| panic!("steward-agent is not built: run 'cargo build' first"))
}

/// A command line of the real program, with the testbed's slurm.conf and a state file of its own.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).envs(environment()).stdin(Stdio::null());
    command
}

/// What keeps a program from what another test, or an agent of this host, does.
fn environment() -> [(&'static str, String); 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let testbed = Testbed::get();
    let state = format!(
        "{}/run/agent-{}-{}.json",
        testbed.value("STEWARD_TESTBED_DIR"),
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    [("SLURM_CONF", testbed.slurm_conf().to_owned()), ("STEWARD_AGENT_STATE", state)]
}

/// Runs the real program to its end; code 124 says that it did not come to one within a minute.
///
/// # Panics
/// If it cannot be started.
pub fn run(args: &[&str]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(program())
        .args(args)
        .envs(environment())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("steward-agent: {error}"))
}

/// The real program, running; dropping it kills it.
#[derive(Debug)]
pub struct Process(pub Child);

impl Process {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(args: &[&str]) -> Self {
        let child = command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("steward-agent: {error}"));
        Self(child)
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Sends a signal and gives the exit code; `None` if it died of the signal.
    ///
    /// # Panics
    /// If it does not end.
    pub fn signal(&mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        let pid = i32::try_from(self.0.id()).unwrap_or_else(|error| panic!("pid: {error}"));
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)
            .unwrap_or_else(|error| panic!("kill: {error}"));
        wait::until("the agent ends", Duration::from_secs(30), || {
            self.0.try_wait().unwrap_or_else(|error| panic!("wait: {error}"))
        })
        .code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// The real program with a port and a log of its own; dropping it kills it.
#[derive(Debug)]
pub struct Served {
    /// The program.
    pub process: Process,
    url: String,
    log: NamedTempFile,
}

impl Served {
    /// Starts it, without waiting for its first scan.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(args: &[&str]) -> Self {
        let address = format!("127.0.0.1:{}", own_port());
        let log = NamedTempFile::new().unwrap_or_else(|error| panic!("no file: {error}"));
        let stderr = log.reopen().unwrap_or_else(|error| panic!("the log: {error}"));
        let child = command(args)
            .args(["--listen", &address])
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("steward-agent: {error}"));
        Self { process: Process(child), url: format!("http://{address}"), log }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it exposes now; `None` before its first scan.
    pub fn metrics(&self) -> Option<Exposition> {
        let answer = http::get(&format!("{}/metrics", self.url)).ok()?;
        let text = answer.status().is_success().then(|| answer.text().ok())??;
        Some(Exposition::parse(&text))
    }

    /// What it wrote to its log.
    ///
    /// # Panics
    /// If that cannot be read.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_else(|error| panic!("the log: {error}"))
    }
}
