//! The real program, as built for a release, over an archive of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use steward_tests::sacct_text::CLUSTER;

use crate::measure::{self, Cost};
use crate::text::Text;

/// Which layers of the archive are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers {
    /// `raw` and `processed`.
    Both,
    /// `processed` alone.
    Jobs,
}

/// An archive and the configuration that belongs to it.
pub struct Archive {
    directory: PathBuf,
    config: String,
    days: String,
}

/// Where cargo put a program: beside this one.
pub fn built(name: &str) -> Result<String> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.is_file() {
        bail!("{} is not built: use the script of this name in tests/bench", path.display());
    }
    Ok(path.display().to_string())
}

/// Whether `steward` has this command, and says so.
///
/// # Errors
/// If the program is not built.
pub fn has(command: &str) -> Result<bool> {
    let mut help = Command::new(built("steward")?);
    help.args([command, "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    let has = help.status()?.success();
    if !has {
        println!("  steward has no command '{command}' yet: what needs it is left out");
    }
    Ok(has)
}

impl Archive {
    /// An empty archive in `directory`, which is emptied, of `text`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(directory: &Path, text: &Text, days: u64, layers: Layers) -> Result<Archive> {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        let data = directory.join("archive");
        fs::create_dir_all(&data)?;
        let raw = if layers == Layers::Jobs { "raw = false\n" } else { "" };
        let sacct = [built("steward-sacct-replay")?, text.directory.display().to_string()];
        let config = directory.join("steward.toml");
        // A Rust string's quotes and escapes are TOML's, for paths that anybody has.
        let lines = format!(
            "[archive]\ndirectory = {data:?}\n{raw}\n[slurm]\nsacct = {sacct:?}\nclusters = [{CLUSTER:?}]\n"
        );
        fs::write(&config, lines)?;
        Ok(Archive {
            directory: directory.to_owned(),
            config: config.display().to_string(),
            days: days.to_string(),
        })
    }

    /// Runs steward with these arguments.
    ///
    /// # Errors
    /// If it fails.
    pub fn run(&self, arguments: &[&str]) -> Result<Cost> {
        let steward = built("steward")?;
        let command = [&[steward.as_str(), "--config", &self.config], arguments].concat();
        measure::cost(&command, &self.directory.join("output"))
    }

    /// Collects all of the text.
    ///
    /// # Errors
    /// If it fails.
    pub fn collect(&self) -> Result<Cost> {
        self.run(&["collect", "--days", &self.days, "--no-summary"])
    }

    /// How often sacct was called, and how many bytes it answered with.
    pub fn calls(&self) -> (usize, u64) {
        let calls = fs::read_to_string(self.directory.join("output.calls")).unwrap_or_default();
        let bytes = calls.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        (calls.lines().count(), bytes.sum())
    }

    /// All of the analysis.
    ///
    /// # Errors
    /// If it fails.
    pub fn analyze(&self) -> Result<Cost> {
        self.run(&["analyze", "--days", &self.days, "--format", "json"])
    }

    /// The sums by user alone.
    ///
    /// # Errors
    /// If it fails.
    pub fn users(&self) -> Result<Cost> {
        self.run(&["analyze", "--days", &self.days, "--table", "users", "--format", "json"])
    }

    /// Where the archive is.
    pub fn data(&self) -> PathBuf {
        self.directory.join("archive")
    }

    /// Bytes of all of its files, and of each of its directories.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sizes(&self) -> Result<(u64, Vec<(String, u64)>)> {
        let mut each = Vec::new();
        for entry in fs::read_dir(self.data())? {
            let entry = entry?;
            each.push((entry.file_name().to_string_lossy().into_owned(), size(&entry.path())?));
        }
        each.sort();
        Ok((each.iter().map(|(_, bytes)| bytes).sum(), each))
    }
}

fn size(path: &Path) -> Result<u64> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += size(&entry?.path())?;
    }
    Ok(sum)
}
