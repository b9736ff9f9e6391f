//! Jobs to look at: real processes in real cgroups, made and removed by `workload.py`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The node whose jobs they are: a name of the benchmark's own, so that a Slurm on this host is
/// neither touched nor counted.
pub const NODE: &str = "stwbench";

/// Jobs that are there until this is dropped. A benchmark that dies drops its end of the pipe too,
/// and the script removes what it made.
pub struct Workload {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Workload {
    /// No jobs yet.
    pub fn empty() -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .arg(steward_tests::directory().join("bench/workload.py"))
            .arg(NODE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// `jobs` jobs with `processes` processes each.
    pub fn of(jobs: u32, processes: u32) -> Self {
        let mut load = Self::empty();
        load.size(jobs, processes);
        load
    }

    /// Makes it `jobs` jobs with `processes` processes each; what is there and fits stays.
    pub fn size(&mut self, jobs: u32, processes: u32) {
        self.ask(&format!("size {jobs} {processes}"));
    }

    /// The oldest job ends, another begins, and a third has one process replaced.
    pub fn turn(&mut self) {
        self.ask("turn");
    }

    fn ask(&mut self, command: &str) {
        let input = self.input.as_mut().expect("open until dropped");
        writeln!(input, "{command}").expect("the workload listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("READY");
        assert_eq!(line.trim(), "READY", "the workload failed at '{command}': run as root");
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        drop(self.input.take());
        // Waited for, so that the next part finds none of these jobs.
        let _ended = self.child.wait();
    }
}
