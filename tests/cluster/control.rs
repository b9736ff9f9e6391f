//! The testbed's daemons: signals to them, and bringing back what was killed.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use steward_tests::testbed::Testbed;
use steward_tests::wait;

/// A daemon that is told to end saves first what it knows.
const END: Duration = Duration::from_secs(60);

/// Sends a signal to a service of the testbed; its pid.
pub fn signal(service: &str, signal: Signal) -> i32 {
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
    pid
}

/// Ends a service of the testbed, and waits until it has ended.
pub fn end(service: &str) {
    let pid = signal(service, Signal::SIGTERM);
    let command = format!("/proc/{pid}/cmdline");
    // Of one that nobody has reaped yet it is empty.
    let has_ended = || std::fs::read(&command).map_or(true, |line| line.is_empty());
    wait::until_true(&format!("{service} ends"), END, has_ended);
}

/// Starts again what died, with these settings of the testbed; what went wrong if that failed.
pub fn up(settings: &[(&str, &str)]) -> Result<(), String> {
    let path = steward_tests::directory().join("../deploy/testbed");
    let dir = Testbed::get().value("STEWARD_TESTBED_DIR");
    let mut command = Command::new(path);
    command.arg("up").env("STEWARD_TESTBED_DIR", dir).envs(settings.iter().copied());
    let output = command.output().unwrap();
    if output.status.success() { Ok(()) } else { Err(format!("testbed up: {output:?}")) }
}

/// Starts again what died.
pub fn repair() {
    up(&[]).unwrap();
}

/// Starts again what died when it goes, whether the test passed or not.
pub struct Repair;

impl Drop for Repair {
    fn drop(&mut self) {
        must(up(&[]));
    }
}

/// For who puts things back: a test that has failed already is not to end all others too.
pub fn must(done: Result<(), String>) {
    match done {
        Err(why) if std::thread::panicking() => eprintln!("{why}"),
        done => done.unwrap(),
    }
}
