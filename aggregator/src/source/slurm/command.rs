//! A command of Slurm, run with a time limit and a way to stop it.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use steward_common::slurm::sacct::DELIMITER;
use steward_common::visible::visible;

use super::pipe::{Over, Pipe};

/// How much of what a command complains about is kept.
const COMPLAINT: usize = 4096;

/// No answer that is read as a whole is larger than this, not the queue with a million jobs.
pub const TEXT: u64 = 1 << 30;

/// How much of a text that is no answer is shown.
const BEGIN: usize = 60;

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
        source: io::Error,
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
        source: io::Error,
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

/// What a command prints, up to its end or the end of its time.
pub type Answer = Pipe<ChildStdout>;

/// A command that is running. Its answer is read from [`Running::answer`].
pub struct Running {
    name: String,
    child: Child,
    over: Over,
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
        let over = Over::default();
        let complaint = child.stderr.take().map(|stderr| {
            let stderr = Pipe::new(stderr, over.clone());
            thread::spawn(move || complaint(stderr))
        });
        let watch = Some(watch(&child, over.clone(), name.clone(), limit, stop));
        Ok(Running { name, child, over, complaint, watch })
    }

    /// What it prints.
    pub fn answer(&mut self) -> Option<Answer> {
        let answer = self.child.stdout.take()?;
        // Where the system does not allow it, the pipe stays as it is.
        let _size = rustix::pipe::fcntl_setpipe_size(&answer, PIPE);
        Some(Pipe::new(answer, self.over.clone()))
    }

    /// All that it prints, when it has ended.
    ///
    /// # Errors
    /// If that is more than `most` bytes, or as [`Running::finish`].
    pub fn text(mut self, most: u64) -> Result<Vec<u8>, CommandError> {
        let mut bytes = Vec::new();
        let answer = self.answer();
        let mut read = answer.map_or(Ok(0), |answer| answer.take(most + 1).read_to_end(&mut bytes));
        if bytes.len() as u64 > most {
            let why = format!("its answer has more than {most} bytes: {}", begin(&bytes));
            read = Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        match read {
            Ok(_) => self.finish().map(|_| bytes),
            Err(source) => {
                let command = self.name.clone();
                Err(self.give_up().unwrap_or(CommandError::Unreadable { command, source }))
            }
        }
    }

    /// Waits for its end; gives what it complained about all the same.
    ///
    /// # Errors
    /// If it failed, took too long or was stopped.
    pub fn finish(mut self) -> Result<String, CommandError> {
        let status = self.child.wait();
        // A process that it left behind may hold the pipe of complaints for as long as it likes.
        self.over.set();
        let killed = self.end_watch();
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok());
        if let Some(error) = killed {
            return Err(error);
        }
        let command = self.name.clone();
        let complaint = complaint.unwrap_or_default();
        match status {
            Ok(status) if status.success() => Ok(complaint),
            Ok(status) => Err(CommandError::Failed { command, status, complaint }),
            Err(source) => Err(CommandError::Unreadable { command, source }),
        }
    }

    /// Ends it, for somebody who cannot read its answer. Tells why it was ended before, if it was:
    /// then its answer was cut short, and is not to blame.
    #[must_use]
    pub fn give_up(mut self) -> Option<CommandError> {
        self.end()
    }

    fn end(&mut self) -> Option<CommandError> {
        kill(&self.child);
        drop(self.child.wait());
        self.over.set();
        self.end_watch()
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
            drop(self.end());
        }
    }
}

/// What a command complains about, on one line.
fn complaint(mut stderr: Pipe<ChildStderr>) -> String {
    let mut text = Vec::new();
    // What cannot be read of a complaint is not worth one of our own.
    drop(stderr.by_ref().take(COMPLAINT as u64).read_to_end(&mut text));
    // If all is over, the last words may not have been read yet.
    text.extend(stderr.rest(COMPLAINT.saturating_sub(text.len())));
    // More is read only so that the command does not wait for us.
    drop(io::copy(&mut stderr, &mut io::sink()));
    String::from_utf8_lossy(&text).trim().replace('\n', "; ")
}

/// How a text begins that is no answer, for a message: up to the first delimiter, behind which
/// there may be names.
#[must_use]
pub fn begin(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == DELIMITER).next().unwrap_or_default();
    let text = visible(&String::from_utf8_lossy(text.get(..BEGIN).unwrap_or(text)));
    format!("it begins with '{}'", text.chars().take(BEGIN).collect::<String>())
}

fn kill(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // It may have ended by itself.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

type Watch = (mpsc::Sender<()>, JoinHandle<Option<CommandError>>);

/// Kills the command when its time is over, and ends all reading from it. Ends when the sender is dropped.
fn watch(
    child: &Child,
    over: Over,
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
            over.set();
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
        running.answer().unwrap().read_to_string(&mut text).unwrap();
        assert!(matches!(running.finish(), Err(CommandError::TooSlow { .. })));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn nobody_who_left_the_group_of_a_command_makes_it_last_longer() {
        // The last one prints all the time.
        for left in ["setsid sleep 25", "setsid sleep 25 & sleep 25", "setsid timeout 25 yes"] {
            let (begun, limit) = (Instant::now(), Duration::from_millis(300));
            let mut running = Running::start(&shell(left), &[], limit, NEVER).unwrap();
            io::copy(&mut running.answer().unwrap(), &mut io::sink()).unwrap();
            assert!(matches!(running.finish(), Err(CommandError::TooSlow { .. })), "{left}");
            assert!(begun.elapsed() < Duration::from_secs(15), "{left}");
        }
    }

    #[test]
    fn who_holds_the_pipe_of_complaints_delays_nothing_and_hides_no_word() {
        let (begun, limit) = (Instant::now(), Duration::from_secs(25));
        let script = "setsid sleep 25 >/dev/null & echo no >&2; exit 3";
        let error = Running::start(&shell(script), &[], limit, NEVER).unwrap().finish();
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with(": no"), "{error}");
        let dropped = Running::start(&shell("setsid sleep 25"), &[], limit, NEVER).unwrap();
        assert!(dropped.give_up().is_none());
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn an_answer_that_is_too_long_is_told_with_its_beginning() {
        let limit = Duration::from_secs(25);
        let text = |script| Running::start(&shell(script), &[], limit, NEVER).unwrap().text(6);
        assert_eq!(text("echo 12345").unwrap(), b"12345\n");
        let error = text("yes 'a\tb'").unwrap_err();
        assert!(matches!(error, CommandError::Unreadable { .. }), "not tried again: {error}");
        assert_eq!(
            error.to_string(),
            "sh: its answer has more than 6 bytes: it begins with 'a\\tb\\na\\tb'"
        );
    }

    #[test]
    fn a_command_is_stopped_when_we_are() {
        let running = Running::start(&shell("sleep 60"), &[], Duration::from_secs(60), || true);
        assert!(matches!(running.unwrap().finish(), Err(CommandError::Stopped)));
    }
}
