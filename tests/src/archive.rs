//! An archive of jobs that never were, looked after by the real program; and what stands in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::sacct_text::CLUSTER;
use crate::service::program;

/// Hours that each collection asks for again, so that text may be as of so many hours ago.
pub const OVERLAP: u64 = 13;

/// A configuration, the text that its sacct answers from, and an archive.
#[derive(Debug)]
pub struct Site {
    directory: tempfile::TempDir,
}

impl Default for Site {
    fn default() -> Self {
        Self::new("")
    }
}

impl Site {
    /// A site without jobs and with an empty archive; `archive` are more settings of the archive.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn new(archive: &str) -> Site {
        let site = Site { directory: crate::shared::directory() };
        site.configure(archive);
        site
    }

    /// Writes the configuration anew.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn configure(&self, archive: &str) {
        let replay = program().with_file_name("steward-sacct-replay");
        assert!(replay.is_file(), "{} is not built", replay.display());
        // A Rust string's quotes and escapes are TOML's, for these paths.
        let text = format!(
            "[archive]\ndirectory = {:?}\n{archive}\n[slurm]\nsacct = [{replay:?}, {:?}]\n\
             clusters = [{CLUSTER:?}]\nretries = 0\n\n[collect]\noverlap = \"{OVERLAP}h\"\n\
             [store]\npath = {:?}\n",
            self.data(),
            self.text(),
            self.directory.path().join("steward.db"),
        );
        fs::write(self.config(), text).unwrap_or_else(|error| panic!("steward.toml: {error}"));
    }

    /// Where sacct's text is to be; what was there is gone.
    ///
    /// # Panics
    /// If that cannot be removed.
    #[must_use]
    pub fn new_text(&self) -> PathBuf {
        let text = self.text();
        if text.exists() {
            fs::remove_dir_all(&text).unwrap_or_else(|error| panic!("{}: {error}", text.display()));
        }
        text
    }

    fn text(&self) -> PathBuf {
        self.directory.path().join("text")
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("steward.toml")
    }

    /// The archive's directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("archive")
    }

    /// A directory beside it.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program, over the archive in `data`.
    #[must_use]
    pub fn command(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("--config").arg(self.config()).args(arguments).arg("--data-dir").arg(data);
        command.stdin(Stdio::null()).env("STEWARD_LOG", "warn");
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, data: &Path, arguments: &[&str]) -> Output {
        self.command(data, arguments).output().unwrap_or_else(|error| panic!("steward: {error}"))
    }

    /// Runs it over the site's own archive; what it says.
    ///
    /// # Panics
    /// If it fails.
    pub fn steward(&self, arguments: &[&str]) -> String {
        done(&self.run(&self.data(), arguments))
    }
}

/// What a command said.
///
/// # Panics
/// If it failed.
pub fn done(output: &Output) -> String {
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}{complaint}", output.status);
    said.into_owned()
}

/// Makes a copy of an archive.
///
/// # Panics
/// If it cannot.
pub fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    }
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.is_ok_and(|status| status.success()), "cp -a {}", from.display());
}

/// All files below a directory.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
            if path.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The rows of all Parquet files of a layer, as sorted lines: the file without the archive's
/// directory, then all columns but some.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn rows(data: &Path, layer: &str, without: &[&str]) -> Vec<String> {
    rows_of(data, layer, without, &|_| true)
}

/// The same for files for which `counts` holds.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn rows_of(
    data: &Path,
    layer: &str,
    without: &[&str],
    counts: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for path in files(&data.join(layer)).into_iter().filter(|path| counts(path)) {
        let wrong = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
        let file = File::open(&path).unwrap_or_else(|error| wrong(&error));
        let reader = SerializedFileReader::new(file).unwrap_or_else(|error| wrong(&error));
        let name = path.strip_prefix(data).unwrap_or(&path).display().to_string();
        for row in reader.get_row_iter(None).unwrap_or_else(|error| wrong(&error)) {
            let row = row.unwrap_or_else(|error| wrong(&error));
            let mut line = name.clone();
            for (column, value) in row.get_column_iter() {
                if without.contains(&column.as_str()) {
                    continue;
                }
                let value = match value {
                    Field::Str(text) => text.clone(),
                    Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
                    value => value.to_string(),
                };
                line += &format!(" {column}={value}");
            }
            lines.push(line);
        }
    }
    lines.sort();
    lines
}

/// The rows of `processed`, each by column; an absent value is `null`.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn records(data: &Path) -> Vec<BTreeMap<String, String>> {
    let mut records = Vec::new();
    for path in files(&data.join("processed")) {
        let wrong = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
        let file = File::open(&path).unwrap_or_else(|error| wrong(&error));
        let reader = SerializedFileReader::new(file).unwrap_or_else(|error| wrong(&error));
        for row in reader.get_row_iter(None).unwrap_or_else(|error| wrong(&error)) {
            let row = row.unwrap_or_else(|error| wrong(&error));
            let text = |value: &Field| match value {
                Field::Str(text) => text.clone(),
                Field::TimestampMillis(millis) => (millis / 1000).to_string(),
                value => value.to_string(),
            };
            let columns = row.get_column_iter().map(|(name, value)| (name.clone(), text(value)));
            records.push(columns.collect());
        }
    }
    records
}

/// Compares two archives' rows.
///
/// # Panics
/// If they differ: with the first lines that do.
pub fn assert_same(found: &[String], expected: &[String], what: &str) {
    if found == expected {
        return;
    }
    let only = |of: &[String], other: &[String]| -> Vec<String> {
        let only = of.iter().filter(|line| !other.contains(line)).take(2);
        only.map(|line| line.chars().take(600).collect()).collect()
    };
    panic!(
        "{what}: {} rows, expected {}\nonly here: {:#?}\nmissing: {:#?}",
        found.len(),
        expected.len(),
        only(found, expected),
        only(expected, found)
    );
}
