//! A command of Slurm, run with a time limit and a way to stop it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How much of what a command complains about is kept.
const COMPLAINT: u64 = 4096;

/// How much a pipe holds: with the usual 64 KiB writer and reader wake each other thirty thousand
/// times for an answer of two gigabytes.
const PIPE: usize = 1 << 20;

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A command that did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It cannot be started.
    #[error("{command}: {source}: is Slurm installed here? see [slurm] in steward.toml")]
    NotStarted {
        /// The command.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended with an error.
    #[error("{command}: {status}: {complaint}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        complaint: String,
    },
    /// It took too long.
    #[error("{command}: no end after {} s; see that Slurm answers (sacct may take slurm.timeout)", limit.as_secs())]
    TooSlow {
        /// The command.
        command: String,
        /// The time it had.
        limit: Duration,
    },
    /// Its answer cannot be read.
    #[error("{command}: {source}")]
    Unreadable {
        /// The command.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// We were told to stop.
    #[error("interrupted")]
    Stopped,
}

impl CommandError {
    /// Whether the same call may work later: the database is busy, or away for a moment.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, CommandError::Failed { .. })
    }

    /// Whether it does not know an option that it was given, or was built without what that needs:
    /// then it will not know it later either. A complaint that merely speaks of the option may be
    /// about anything.
    #[must_use]
    pub fn is_unknown_option(&self) -> bool {
        let CommandError::Failed { complaint, .. } = self else { return false };
        let complaint = complaint.to_ascii_lowercase();
        ["unrecognized option", "invalid option", "cannot find serializer plugin"]
            .iter()
            .any(|words| complaint.contains(words))
    }
}

/// A command that is running. Its answer is read from [`Running::answer`].
pub struct Running {
    name: String,
    child: Child,
    complaint: Option<JoinHandle<String>>,
    watch: Option<Watch>,
}

impl Running {
    /// Starts a command, in a process group of its own, with nothing on its standard input. It is
    /// killed when it takes longer than `limit`, or when `stop` says so.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        argv: &[String],
        environment: &[(&str, &str)],
        limit: Duration,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<Running, CommandError> {
        let name = argv.first().cloned().unwrap_or_default();
        let not_started = |source| CommandError::NotStarted { command: name.clone(), source };
        let mut child = Command::new(&name)
            .args(argv.get(1..).unwrap_or_default())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(not_started)?;
        let complaint = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                // What cannot be read of a complaint is not worth one of our own; the rest is
                // read so that the command does not wait for us.
                drop(stderr.by_ref().take(COMPLAINT).read_to_end(&mut text));
                drop(std::io::copy(&mut stderr, &mut std::io::sink()));
                String::from_utf8_lossy(&text).trim().replace('\n', "; ")
            })
        });
        let watch = Some(watch(&child, name.clone(), limit, stop));
        Ok(Running { name, child, complaint, watch })
    }

    /// What it prints.
    pub fn answer(&mut self) -> Option<ChildStdout> {
        let answer = self.child.stdout.take()?;
        // Where the system does not allow it, the pipe stays as it is.
        let _size = rustix::pipe::fcntl_setpipe_size(&answer, PIPE);
        Some(answer)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If it failed, took too long or was stopped.
    pub fn finish(mut self) -> Result<(), CommandError> {
        let status = self.child.wait();
        let killed = self.end_watch();
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok());
        if let Some(error) = killed {
            return Err(error);
        }
        let command = self.name.clone();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let complaint = complaint.unwrap_or_default();
                Err(CommandError::Failed { command, status, complaint })
            }
            Err(source) => Err(CommandError::Unreadable { command, source }),
        }
    }

    fn end_watch(&mut self) -> Option<CommandError> {
        let (done, thread) = self.watch.take()?;
        drop(done);
        thread.join().ok().flatten()
    }
}

/// A command that nobody waits for any more is ended.
impl Drop for Running {
    fn drop(&mut self) {
        if self.watch.is_some() {
            kill(&self.child);
            drop(self.child.wait());
            self.end_watch();
        }
    }
}

fn kill(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // It may have ended by itself.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

type Watch = (mpsc::Sender<()>, JoinHandle<Option<CommandError>>);

/// Kills the command when its time is over. Ends when the sender is dropped.
fn watch(
    child: &Child,
    command: String,
    limit: Duration,
    stop: impl Fn() -> bool + Send + 'static,
) -> Watch {
    let (done, told) = mpsc::channel::<()>();
    let pid = i32::try_from(child.id()).map(Pid::from_raw);
    let until = Instant::now() + limit;
    let thread = thread::spawn(move || {
        loop {
            match told.recv_timeout(LOOK) {
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                _ => return None,
            }
            let error = if stop() {
                CommandError::Stopped
            } else if Instant::now() >= until {
                CommandError::TooSlow { command: command.clone(), limit }
            } else {
                continue;
            };
            if let Ok(pid) = pid {
                let _ = killpg(pid, Signal::SIGKILL);
            }
            return Some(error);
        }
    });
    (done, thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: fn() -> bool = || false;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_answer_is_read_and_a_failure_says_why() {
        let second = Duration::from_secs(10);
        let mut running = Running::start(&shell("echo $A"), &[("A", "b")], second, NEVER).unwrap();
        let mut text = String::new();
        running.answer().unwrap().read_to_string(&mut text).unwrap();
        running.finish().unwrap();
        assert_eq!(text, "b\n");
        let failing = Running::start(&shell("echo no >&2; exit 3"), &[], second, NEVER).unwrap();
        let error = failing.finish().unwrap_err();
        assert!(error.is_passing() && error.to_string().contains("no"), "{error}");
        let missing = Running::start(&["/no/such".to_owned()], &[], second, NEVER);
        assert!(matches!(missing, Err(CommandError::NotStarted { .. })));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let begun = Instant::now();
        let mut running =
            Running::start(&shell("sleep 60 & sleep 60"), &[], Duration::from_millis(200), NEVER)
                .unwrap();
        let mut text = String::new();
        // Ends only when the last process that holds the pipe is gone.
        running.answer().unwrap().read_to_string(&mut text).unwrap();
        assert!(matches!(running.finish(), Err(CommandError::TooSlow { .. })));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_command_is_stopped_when_we_are() {
        let running = Running::start(&shell("sleep 60"), &[], Duration::from_secs(60), || true);
        assert!(matches!(running.unwrap().finish(), Err(CommandError::Stopped)));
    }
}
