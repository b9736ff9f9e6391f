//! What a program costs: CPU time and memory of its own, without those of the programs it starts.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

/// Name of the part of this program that starts another and measures it.
pub const MEASURED: &str = "measured";

/// What it cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time, without that of programs that it started.
    pub cpu: Duration,
    /// From start to end.
    pub wall: Duration,
    /// The most memory, in MiB, that it, or a program that it started, had at a time.
    pub memory: f64,
}

/// Runs a command; what it prints goes to `output`. `SACCT_REPLAY_CALLS` is set for it, so that
/// what its sacct answers stands beside that, in the file with the extension `calls`.
///
/// # Errors
/// If it fails: with the last lines of what it said.
pub fn cost(command: &[&str], output: &Path) -> Result<Cost> {
    let result = output.with_extension("cost");
    let own = std::env::current_exe()?;
    let status = tied(&own)
        .arg(MEASURED)
        .arg(&result)
        .args(command)
        .env("SACCT_REPLAY_CALLS", output.with_extension("calls"))
        .stdout(File::create(output)?)
        .stderr(File::create(output.with_extension("err"))?)
        .status()?;
    if !status.success() {
        let said = fs::read_to_string(output.with_extension("err"))?;
        let lines: Vec<&str> = said.lines().collect();
        bail!(
            "`{}` failed: {}",
            command.join(" "),
            lines[lines.len().saturating_sub(3)..].join("; ")
        );
    }
    Ok(serde_json::from_str(&fs::read_to_string(result)?)?)
}

/// A command line whose program dies with this one.
fn tied(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// The other side of [`cost`], in a small process of its own: memory is measured as the most of all
/// children, and a child begins with the memory of its parent. Gives the command's exit code.
///
/// # Errors
/// If the command cannot be started or measured.
pub fn measured(arguments: &[String]) -> Result<i32> {
    let [result, program, arguments @ ..] = arguments else { bail!("measured FILE COMMAND…") };
    let start = Instant::now();
    let mut child = tied(program).args(arguments).spawn().context("setpriv")?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    // Not reaped yet: only so long are its children's times apart from its own.
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    let wall = start.elapsed();
    let others = of_children(pid)?;
    let status = child.wait()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let all = time(usage.user_time()) + time(usage.system_time());
    let memory = usage.max_rss() as f64 / 1024.0;
    let cost = Cost { cpu: all.saturating_sub(others), wall, memory };
    fs::write(result, serde_json::to_string(&cost)?)?;
    Ok(status.code().or(status.signal()).unwrap_or(1))
}

fn time(value: TimeVal) -> Duration {
    Duration::from_micros(u64::try_from(value.num_microseconds()).unwrap_or(0))
}

/// CPU time of the children of a process that has ended.
fn of_children(pid: Pid) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("/proc/PID/stat: no name")?;
    // The state is the third; cutime and cstime the sixteenth and seventeenth.
    let fields: Vec<&str> = fields.split(' ').skip(13).take(2).collect();
    let mut ticks = 0u64;
    for field in fields {
        ticks += field.parse::<u64>().context("/proc/PID/stat: a time")?;
    }
    let each = sysconf(SysconfVar::CLK_TCK)?.context("clock ticks")?;
    Ok(Duration::from_secs_f64(ticks as f64 / each as f64))
}
