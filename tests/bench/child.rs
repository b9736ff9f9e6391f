//! Programs that must not outlive the benchmark.

use std::ffi::OsStr;
use std::process::{Child, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A command line whose program dies with this one, however this one dies. Not by SIGTERM: strace
/// puts that off, and so does an agent that is stopped.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// A program that runs until this is dropped.
pub struct Running(pub Child);

impl Running {
    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("a process of ours");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Resident memory of a process in KiB; `process` is a pid or `self`.
pub fn resident(process: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}
