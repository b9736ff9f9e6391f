//! The least that can be done with a snapshot: Slurm's JSON, from the standard output of two
//! commands, into the snapshot's own types. `tests/bench/exporter` compares the exporter with it.

use std::io::Write;
use std::process::{ChildStdout, Command, Stdio};

use steward_aggregator::source::slurm::json;

/// The program's own, for the same terms.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [jobs, nodes] = arguments.as_slice() else {
        anyhow::bail!("usage: read_snapshot JOBS.json NODES.json");
    };
    let nodes = read(nodes, json::nodes::read)?;
    let jobs = read(jobs, json::jobs::read)?;
    writeln!(std::io::stdout(), "{} nodes, {} jobs", nodes.len(), jobs.len())?;
    Ok(())
}

fn read<T, E>(path: &str, read: impl FnOnce(ChildStdout) -> Result<T, E>) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut child = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no pipe"))?;
    let all = read(pipe)?;
    anyhow::ensure!(child.wait()?.success(), "cat {path} failed");
    Ok(all)
}
