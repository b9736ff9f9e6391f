//! Python with what tests need of PyPI, in an environment of its own beside the built programs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::agent;

/// What is installed. A change makes a new environment.
const PACKAGES: [&str; 4] =
    ["duckdb==1.5.5", "duckdb-extension-httpfs==1.5.5", "moto[server]==5.2.5", "polars==2.1.0"];

/// Seconds that one call may take; an installation from PyPI takes the longest.
const LIMIT: &str = "900";

/// The interpreter of the environment; makes it if need be, which takes minutes and PyPI once.
///
/// # Panics
/// If that cannot be done.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let built = agent::program();
        let target = built.ancestors().nth(2).unwrap_or_else(|| panic!("{}", built.display()));
        install(&target.join("python"))
    })
}

fn install(cache: &Path) -> PathBuf {
    let made = || -> std::io::Result<PathBuf> {
        fs::create_dir_all(cache)?;
        // Other test runs may share the directory.
        let lock = File::create(cache.join("lock"))?;
        lock.lock()?;
        let wanted = PACKAGES.join("\n");
        let environment = cache.join("environment");
        let (python, list) = (environment.join("bin/python"), environment.join("packages"));
        if fs::read_to_string(&list).is_ok_and(|found| found == wanted) {
            return Ok(python);
        }
        if environment.exists() {
            fs::remove_dir_all(&environment)?;
        }
        run(Command::new("timeout").args([LIMIT, "python3", "-m", "venv"]).arg(&environment));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new("timeout").arg(LIMIT).arg(&python).args(pip).args(PACKAGES));
        fs::write(&list, wanted)?;
        Ok(python)
    };
    made().unwrap_or_else(|error| panic!("{}: {error}", cache.display()))
}

/// Runs a script with arguments, in a directory, with more environment; gives what it printed.
///
/// # Panics
/// If it fails.
pub fn script(text: &str, args: &[&str], dir: &Path, environment: &[(&str, String)]) -> String {
    let mut command = Command::new("timeout");
    command.arg("300").arg(python()).args(["-c", text]).args(args).current_dir(dir);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    run(&mut command)
}

fn run(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {}: {said}", done.status);
    String::from_utf8(done.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
