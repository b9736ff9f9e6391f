//! Real jobs of real users on the testbed's Slurm.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::testbed::Testbed;
use crate::wait;

/// Jobs start within a second on an idle testbed; others may be running.
const START: Duration = Duration::from_secs(120);

/// A submitted job; dropping it cancels it.
#[derive(Debug)]
pub struct Job {
    /// Slurm's raw job id.
    pub id: String,
}

/// Runs a Slurm command as root.
///
/// # Panics
/// If it cannot be started or fails.
pub fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .env("TZ", "UTC")
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    text(&format!("{program} {args:?}"), output)
}

fn text(what: &str, output: Output) -> String {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Submits `script` as `user`, with the given options of sbatch.
///
/// # Panics
/// If sbatch refuses.
pub fn submit(user: &str, options: &[&str], script: &str) -> Job {
    let mut command = Command::new("runuser");
    command
        .args(["-u", user, "--", "sbatch", "--parsable", "--output=/dev/null"])
        .args(options)
        .current_dir("/tmp")
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("runuser: {error}"));
    let mut stdin = child.stdin.take().unwrap_or_else(|| panic!("sbatch has no standard input"));
    std::io::Write::write_all(&mut stdin, script.as_bytes())
        .unwrap_or_else(|error| panic!("sbatch: {error}"));
    drop(stdin);
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("sbatch: {error}"));
    let id = text("sbatch", output);
    Job { id: id.split(';').next().unwrap_or(&id).to_owned() }
}

/// Takes nodes for `user` and starts nothing on them, with the given options of salloc.
///
/// # Panics
/// If salloc refuses.
pub fn allocate(user: &str, options: &[&str]) -> Job {
    let output = Command::new("runuser")
        .args(["-u", user, "--", "salloc", "--no-shell"])
        .args(options)
        .current_dir("/tmp")
        .env("SLURM_CONF", Testbed::get().slurm_conf())
        .output()
        .unwrap_or_else(|error| panic!("salloc: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    let granted = told.split("Granted job allocation ").nth(1);
    let id = granted.and_then(|rest| rest.split_whitespace().next());
    Job { id: id.unwrap_or_else(|| panic!("salloc: {told}")).to_owned() }
}

impl Job {
    /// Its state by slurmctld; `FORGOTTEN` some minutes after its end.
    ///
    /// # Panics
    /// If squeue cannot be started.
    pub fn state(&self) -> String {
        let output = Command::new("squeue")
            .args(["-h", "-j", &self.id, "-t", "all", "-o", "%T"])
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .output()
            .unwrap_or_else(|error| panic!("squeue: {error}"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        match (output.status.success(), complaint.contains("Invalid job id")) {
            (true, _) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            (false, true) => "FORGOTTEN".to_owned(),
            // A slurmctld that is slow has not said that the job is over.
            (false, false) => "UNKNOWN".to_owned(),
        }
    }

    /// Waits until it runs.
    ///
    /// # Panics
    /// If it does not start.
    pub fn wait_running(&self) {
        wait::until_true(&format!("job {} runs", self.id), START, || self.state() == "RUNNING");
    }

    /// Waits until slurmctld says that it is over.
    ///
    /// # Panics
    /// If it goes on.
    pub fn wait_ended(&self, patience: Duration) {
        wait::until_true(&format!("job {} ends", self.id), patience, || {
            !matches!(
                self.state().as_str(),
                "PENDING" | "RUNNING" | "COMPLETING" | "SUSPENDED" | "UNKNOWN"
            )
        });
    }

    /// Cancels it, without waiting.
    pub fn cancel(&self) {
        // One that is over already cannot be cancelled: nothing is lost.
        let _over = Command::new("scancel")
            .arg(&self.id)
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .output();
    }

    /// A directory of it in the real hierarchy.
    ///
    /// # Panics
    /// If it has none.
    pub fn cgroup(&self) -> PathBuf {
        fn find(dir: &Path, name: &str, depth: usize) -> Option<PathBuf> {
            let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
            let dirs: Vec<PathBuf> = entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            dirs.iter().find(|path| path.ends_with(name)).cloned().or_else(|| {
                (depth > 0).then(|| dirs.iter().find_map(|path| find(path, name, depth - 1)))?
            })
        }
        let name = format!("job_{}", self.id);
        find(Path::new("/sys/fs/cgroup"), &name, 5)
            .unwrap_or_else(|| panic!("no directory {name} below /sys/fs/cgroup"))
    }

    /// A field of its rows in accounting, one a row, steps included.
    pub fn sacct(&self, field: &str) -> Vec<String> {
        let text = run("sacct", &["-n", "-P", "-j", &self.id, "-o", field]);
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancel();
    }
}
