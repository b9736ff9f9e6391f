//! DuckDB over the same files, from PyPI, in an environment of its own beside the text.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Sums by user, five times, each over a connection that knows nothing yet.
const SCRIPT: &str = r#"
import duckdb, json, sys, time
query = """SELECT "user", count(*), sum(cpu_hours_reserved), sum(cpu_hours_wasted), sum(memory_gb_hours_reserved),
           sum(memory_gb_hours_wasted), sum(gpu_hours_reserved) FROM read_parquet(?) GROUP BY ALL"""
times = []
for _ in range(5):
    connection = duckdb.connect(config={"threads": 1})
    start = time.process_time()
    rows = connection.execute(query, [sys.argv[1]]).fetchall()
    times.append(time.process_time() - start)
print(json.dumps({"seconds": sorted(times)[2], "jobs": sum(row[1] for row in rows)}))
"#;

/// What the query gave.
#[derive(Debug, Deserialize)]
pub struct Answer {
    /// CPU seconds of the query alone, the median.
    seconds: f64,
    /// Rows of the archive.
    pub jobs: u64,
}

impl Answer {
    /// CPU time of the query alone.
    pub fn cpu(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// A Python that has DuckDB.
pub struct DuckDb {
    python: PathBuf,
}

impl DuckDb {
    /// Installs it unless it is there.
    ///
    /// # Errors
    /// If it cannot be installed.
    pub fn install(cache: &Path) -> Result<DuckDb> {
        let environment = cache.join("duckdb");
        let python = environment.join("bin/python");
        let has = |python: &Path| {
            let mut ask = Command::new(python);
            ask.args(["-c", "import duckdb"]).output().is_ok_and(|done| done.status.success())
        };
        if !has(&python) {
            println!("  installing DuckDB from PyPI");
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]))?;
        }
        Ok(DuckDb { python })
    }

    /// Sums by user over all jobs of an archive.
    ///
    /// # Errors
    /// If the files are not there, or not as expected.
    pub fn users(&self, archive: &Path) -> Result<Answer> {
        let files = archive.join("processed/cluster=*/*.parquet");
        let text = run(Command::new(&self.python).args(["-c", SCRIPT]).arg(&files))?;
        serde_json::from_str(&text).context("DuckDB's answer")
    }
}

fn run(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("{command:?}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        bail!("{:?}: {}", command.get_program(), said.lines().last().unwrap_or("failed"));
    }
    Ok(String::from_utf8(done.stdout)?)
}
