//! `steward` as the real program over an archive of a test's own, with text in place of a Slurm.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::sacct_text::Recipe;
use crate::service::program;

/// The name of the cluster that the text is of.
pub const CLUSTER: &str = "c1";

/// Text of jobs, in a directory.
#[derive(Debug)]
pub struct Text {
    directory: PathBuf,
}

impl Text {
    /// Writes the jobs of a recipe to `directory`.
    ///
    /// # Panics
    /// If that cannot be done.
    pub fn write(directory: &Path, recipe: Recipe) -> Text {
        recipe.write(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        Text { directory: directory.to_owned() }
    }

    /// Without the jobs that have not ended.
    ///
    /// # Panics
    /// If that cannot be done.
    #[must_use]
    pub fn without_open(self) -> Text {
        for name in ["open.txt", "open.index"] {
            let path = self.directory.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    panic!("{}: {error}", path.display())
                }
                _ => {}
            }
        }
        self
    }

    /// The command that stands for sacct, for a configuration.
    ///
    /// # Panics
    /// If it is not built.
    fn sacct(&self) -> String {
        let replay = program().with_file_name("steward-sacct-replay");
        assert!(replay.is_file(), "{} is not built: run 'cargo build'", replay.display());
        format!("{:?}", [replay.as_path(), &self.directory])
    }
}

/// A configuration.
#[derive(Debug)]
pub struct Centre {
    config: PathBuf,
}

impl Centre {
    /// One with its files in `dir`, the archive at `place`, and `more` settings.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn new(dir: &Path, name: &str, place: &str, text: &Text, more: &str) -> Centre {
        let config = dir.join(format!("{name}.toml"));
        let mut lines = format!("time_zone = \"UTC\"\n[archive]\ndirectory = {place:?}\n{more}\n");
        let sacct = text.sacct();
        let state = dir.join(format!("{name}-state"));
        writeln!(lines, "[slurm]\nsacct = {sacct}\nclusters = [{CLUSTER:?}]")
            .and_then(|()| writeln!(lines, "[serve]\nstate = {state:?}"))
            .unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(&config, lines)
            .unwrap_or_else(|error| panic!("{}: {error}", config.display()));
        Centre { config }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("--config").arg(&self.config).args(args).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).output();
        output.unwrap_or_else(|error| panic!("steward: {error}"))
    }

    /// Runs a command that must succeed; gives what it printed.
    ///
    /// # Panics
    /// If it fails.
    pub fn done(&self, args: &[&str]) -> String {
        let done = self.run(args);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "steward {args:?}: {}: {said}", done.status);
        String::from_utf8(done.stdout).unwrap_or_else(|error| panic!("steward {args:?}: {error}"))
    }

    /// Starts a command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("steward: {error}"))
    }
}
