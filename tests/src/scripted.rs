//! An archive of jobs that a test writes down field by field, collected by the real program.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::archive::{done, records};
use crate::service::program;

/// What stands for sacct.
const SACCT: &str = include_str!("sacct.py");

/// A configuration, the rows that its sacct answers with, and an archive.
#[derive(Debug)]
pub struct Scripted {
    directory: tempfile::TempDir,
}

impl Scripted {
    /// A site on UTC without jobs; `slurm` are more settings of Slurm, in which `sacct` may be another,
    /// that may call ours as `$SACCT`.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn new(slurm: &str) -> Scripted {
        let site = Scripted { directory: crate::shared::directory() };
        site.configure("clusters = [\"c1\"]\n", slurm);
        site.write("sacct.py", SACCT);
        site.answer(&Value::Array(Vec::new()));
        site
    }

    /// Writes the configuration anew.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn configure(&self, clusters: &str, slurm: &str) {
        let (sacct, rows) = (self.path("sacct.py"), self.path("rows.json"));
        let ours = format!("sacct = [\"python3\", {sacct:?}, {rows:?}]\n");
        let ours = if slurm.contains("sacct = ") { "" } else { &*ours };
        let retries = if slurm.contains("retries = ") { "" } else { "retries = 0\n" };
        let text = format!(
            "time_zone = \"UTC\"\n[archive]\ndirectory = {:?}\n[serve]\nstate = {:?}\n[slurm]\n\
             {ours}{retries}{clusters}{slurm}\n",
            self.data(),
            self.path("state"),
        );
        self.write("steward.toml", &text);
    }

    /// Writes the configuration anew, with a shell script for sacct, in which ours is `$SACCT`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn wrap(&self, script: &str, clusters: &str, slurm: &str) {
        self.write("sacct.sh", script);
        let sacct = format!("sacct = [\"sh\", {:?}]\n", self.path("sacct.sh"));
        self.configure(clusters, &(sacct + slurm));
    }

    /// What sacct answers from now on.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn answer(&self, rows: &Value) {
        self.write("rows.json", &rows.to_string());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The archive's directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path("archive")
    }

    /// The program, with only warnings in its log.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .arg("--config")
            .arg(self.path("steward.toml"))
            .args(arguments)
            .stdin(Stdio::null())
            .env("STEWARD_LOG", "warn")
            .env("SACCT", format!("python3 {} {}", self.text("sacct.py"), self.text("rows.json")));
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap_or_else(|error| panic!("steward: {error}"))
    }

    /// Runs it; what it says.
    ///
    /// # Panics
    /// If it fails.
    pub fn steward(&self, arguments: &[&str]) -> String {
        done(&self.run(arguments))
    }

    /// What it says as JSON.
    ///
    /// # Panics
    /// If it fails, or that is no JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let said = self.steward(arguments);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// The runs of the archive by the id that people see, each by column.
    ///
    /// # Panics
    /// If a run is there twice.
    #[must_use]
    pub fn runs(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut runs = BTreeMap::new();
        for record in records(&self.data()) {
            let id = record.get("job_id").cloned().unwrap_or_default();
            assert!(runs.insert(id.clone(), record).is_none(), "{id} is there twice");
        }
        runs
    }
}

/// Now, in seconds since 1970.
///
/// # Panics
/// If the clock stands before that.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_else(|error| panic!("{error}")).as_secs();
    i64::try_from(seconds).unwrap_or_else(|error| panic!("{error}"))
}
