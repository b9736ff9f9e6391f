//! Recorded trees: what a kernel and a Slurm said once, and what the jobs said of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use steward_agent::config::Config;

/// A copy of a recording that a test may change.
#[derive(Debug)]
pub struct Fixture {
    dir: tempfile::TempDir,
    /// The jobs by their own account.
    pub jobs: Vec<Truth>,
}

/// What a job was made to do, and what it measured itself.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the names are those of the metrics")]
pub struct Truth {
    pub id: u32,
    pub node: String,
    pub uid: u32,
    pub account: String,
    pub partition: String,
    pub cpus: u32,
    pub memory_limit_bytes: u64,
    pub sluid: Option<String>,
    pub processes: u32,
    pub threads: u32,
    pub threads_by_name: BTreeMap<String, u32>,
    /// By part; only of the job that was made to compute.
    pub cpu_seconds: Option<BTreeMap<String, f64>>,
    pub slurmstepd_cpu_seconds: Option<BTreeMap<String, f64>>,
    pub anon_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub files: Vec<String>,
    pub scratch: PathBuf,
    pub scratch_files: u32,
    pub steps: Vec<String>,
}

#[derive(Deserialize)]
struct TruthFile {
    jobs: Vec<Truth>,
}

/// Every recording, by the name of its directory.
pub const ALL: [&str; 3] = ["v1-slurm-22.05", "v2-slurm-22.05", "v2-slurm-26.05"];

impl Fixture {
    /// Copies the recording of that name.
    ///
    /// # Panics
    /// If there is none.
    pub fn open(name: &str) -> Self {
        let source = crate::directory().join("fixtures").join(name);
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        copy(&source, dir.path());
        let text = fs::read_to_string(source.join("truth.json"))
            .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let truth: TruthFile =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { dir, jobs: truth.jobs }
    }

    /// The copy's cgroup root.
    pub fn cgroup(&self) -> PathBuf {
        self.dir.path().join("cgroup")
    }

    /// The copy's proc root.
    pub fn proc(&self) -> PathBuf {
        self.dir.path().join("proc")
    }

    /// Settings that make an agent read the copy.
    pub fn config(&self) -> Config {
        let mut config = Config { cluster: "recorded".parse().ok(), ..Config::default() };
        config.paths.cgroup = self.cgroup();
        config.paths.proc = self.proc();
        config.paths.slurm_conf = Some("/dev/null".into());
        config.scratch.paths = self.jobs.iter().map(|job| job.scratch.clone()).collect();
        config
    }

    /// Moves a directory of the copy, both below its cgroup root.
    ///
    /// # Panics
    /// If it cannot be moved.
    pub fn move_dir(&self, from: &str, to: &str) {
        let target = self.cgroup().join(to);
        let parent = target.parent().unwrap_or(&target);
        fs::create_dir_all(parent)
            .and_then(|()| fs::rename(self.cgroup().join(from), &target))
            .unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
    }
}

/// Links are copied as they are: they name files of another machine.
fn copy(from: &Path, to: &Path) {
    let entries = fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    for entry in entries.filter_map(Result::ok) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let copied = if kind.is_dir() {
            fs::create_dir_all(&target).map(|()| copy(&path, &target))
        } else if kind.is_symlink() {
            fs::read_link(&path).and_then(|link| symlink(link, &target))
        } else {
            fs::copy(&path, &target).map(|_| ())
        };
        copied.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
