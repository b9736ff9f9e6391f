//! The testbed's daemons: signals to them, and bringing back what was killed.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use steward_tests::testbed::Testbed;

/// Sends a signal to a service of the testbed.
pub fn signal(service: &str, signal: Signal) {
    let dir = Testbed::get().value("STEWARD_TESTBED_DIR");
    let path = format!("{dir}/run/{service}.pid");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let pid: i32 = text.split_whitespace().next().unwrap().parse().unwrap();
    // A pid that was given to another is not ours to signal. Not every daemon has a path of the
    // testbed among its arguments; all have one in their environment.
    let about =
        ["cmdline", "environ"].map(|file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap());
    let about = String::from_utf8_lossy(&about.concat()).into_owned();
    assert!(about.contains(dir), "{service}: {pid} is {about:?}");
    kill(Pid::from_raw(pid), signal).unwrap_or_else(|error| panic!("{service}: {error}"));
}

/// Starts again what died.
pub fn repair() {
    let path = steward_tests::directory().join("../deploy/testbed");
    let dir = Testbed::get().value("STEWARD_TESTBED_DIR");
    let output = Command::new(path).arg("up").env("STEWARD_TESTBED_DIR", dir).output().unwrap();
    assert!(output.status.success(), "testbed up: {output:?}");
}
