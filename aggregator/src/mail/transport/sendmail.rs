//! A program of this machine that takes mails on its standard input.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lettre::Address;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::SendError;
use crate::output::plain::{cut, visible};

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How much of what it complains about is kept.
const COMPLAINT: u64 = 4096;

/// A program that takes mails.
#[derive(Clone, Debug)]
pub struct Program {
    argv: Vec<String>,
    limit: Duration,
}

impl Program {
    /// With its arguments; it may take so long.
    pub fn new(argv: Vec<String>, limit: Duration) -> Program {
        Program { argv, limit }
    }

    /// Hands a mail over for one recipient.
    ///
    /// # Errors
    /// If it was not taken, or nobody knows.
    pub async fn send(&self, raw: &[u8], from: &Address, to: &Address) -> Result<(), SendError> {
        let (program, raw) = (self.clone(), raw.to_vec());
        let (from, to) = (from.to_string(), to.to_string());
        let work = tokio::task::spawn_blocking(move || program.run(&raw, &from, &to));
        work.await.unwrap_or_else(|error| Err(SendError::unsure(error.to_string())))
    }

    fn run(&self, raw: &[u8], from: &str, to: &str) -> Result<(), SendError> {
        let name = self.argv.first().cloned().unwrap_or_default();
        let mut child = Command::new(&name)
            .args(self.argv.get(1..).unwrap_or_default())
            .args(["-i", "-f", from, "--", to])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| SendError::down(format!("mail.sendmail: {name}: {error}")))?;
        // A mail on a command line of Unix ends its lines with one character.
        let text: Vec<u8> = raw.iter().copied().filter(|byte| *byte != b'\r').collect();
        let written = child.stdin.take().map(|mut input| {
            thread::spawn(move || input.write_all(&text).and_then(|()| input.flush()))
        });
        let complaint = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                drop(stderr.by_ref().take(COMPLAINT).read_to_end(&mut text));
                drop(std::io::copy(&mut stderr, &mut std::io::sink()));
                cut(&visible(String::from_utf8_lossy(&text).trim()), 300)
            })
        });
        let status = self.wait(&mut child);
        let written =
            written.and_then(|thread| thread.join().ok()).is_some_and(|done| done.is_ok());
        let Some(status) = status else {
            return Err(SendError::unsure(format!("{name}: no end after {:?}", self.limit)));
        };
        let said = complaint.and_then(|thread| thread.join().ok()).unwrap_or_default();
        outcome(&name, status, written, &said)
    }

    /// Its end; `None` if it had to be killed.
    fn wait(&self, child: &mut Child) -> Option<ExitStatus> {
        let until = Instant::now() + self.limit;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(LOOK),
                _ => break,
            }
        }
        if let Ok(pid) = i32::try_from(child.id()) {
            // It may have ended by itself.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        drop(child.wait());
        None
    }
}

/// What an exit code means (sysexits.h). 75 is "later", and some programs have queued the mail then.
fn outcome(name: &str, status: ExitStatus, written: bool, said: &str) -> Result<(), SendError> {
    let told = format!("{name}: {status}: {said}");
    match status.code() {
        Some(0) if written => Ok(()),
        Some(65 | 67 | 68) => Err(SendError::Refused { permanent: true, said: told }),
        Some(75 | 0) | None => Err(SendError::unsure(told)),
        Some(_) => {
            debug_assert!(status.signal().is_none());
            Err(SendError::down(told))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(script: &str, limit: u64) -> Result<(), SendError> {
        let argv = ["sh", "-c", script, "sendmail"].map(str::to_owned).to_vec();
        Program::new(argv, Duration::from_secs(limit)).run(
            b"A: b\r\n\r\nc\r\n",
            "f@a.org",
            "t@a.org",
        )
    }

    #[test]
    fn the_exit_code_says_what_became_of_it() {
        assert_eq!(send("cat >/dev/null", 20), Ok(()));
        for (code, refused, unsure) in [
            (67, true, false),
            (68, true, false),
            (75, false, true),
            (69, false, false),
            (1, false, false),
        ] {
            let error = send(&format!("cat >/dev/null; echo no >&2; exit {code}"), 20).unwrap_err();
            assert_eq!(
                matches!(error, SendError::Refused { permanent: true, .. }),
                refused,
                "{code}"
            );
            assert_eq!(matches!(error, SendError::Unsure { .. }), unsure, "{code}");
            assert!(error.to_string().contains("no"), "{error}");
        }
        assert!(matches!(send("kill -9 $$", 20), Err(SendError::Unsure { .. })));
        assert!(matches!(send("sleep 60", 1), Err(SendError::Unsure { .. })));
        let missing = Program::new(vec!["/no/such".to_owned()], Duration::from_secs(1));
        assert!(matches!(missing.run(b"", "a@b.org", "c@d.org"), Err(SendError::Down { .. })));
    }

    #[test]
    fn the_program_gets_the_recipient_and_lines_of_unix() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let script = format!("{{ echo \"$@\"; cat; }} >{}", out.display());
        send(&script, 20).unwrap();
        let text = std::fs::read_to_string(out).unwrap();
        assert_eq!(text, "-i -f f@a.org -- t@a.org\nA: b\n\nc\n");
    }
}
