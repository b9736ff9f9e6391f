//! The Unix socket: users of this machine ask, and the kernel says who they are.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::connections::Connections;
use super::handler::{self, Call, Peer};
use super::record::State;
use super::wire::{LONGEST_REQUEST, Reply, Request};
use crate::command;
use crate::config::Mode;
use crate::shutdown::Shutdown;
use crate::source::people::People;

/// Connections at a time, of all users and of one.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 8;

/// How long a request may take to arrive, and an answer to be made.
const TO_ASK: Duration = Duration::from_secs(10);
const TO_ANSWER: Duration = Duration::from_secs(120);
/// How long all of it may take, the sending of the answer included.
const LIFETIME: Duration = Duration::from_secs(300);

/// The socket, and its file, which goes with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is: another service may have put its own there.
    inode: (u64, u64),
}

impl Socket {
    /// Listens at `path`. What a dead service left there is replaced.
    ///
    /// # Errors
    /// If a living one listens there, or something else is there, or it cannot be made.
    pub fn bind(path: &Path, mode: Mode) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(name),
            Ok(found) if !found.file_type().is_socket() => {
                anyhow::bail!("{}: is in the way and no socket; see serve.socket", name());
            }
            Ok(_) => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    anyhow::bail!(
                        "{}: another service listens there; give this one its own with --socket",
                        name()
                    );
                }
            }
        }
        // Nobody sees it before it has its permissions.
        let fresh = path.with_added_extension(std::process::id().to_string());
        let listener = UnixListener::bind(&fresh).with_context(|| fresh.display().to_string())?;
        let placed = fs::set_permissions(&fresh, Permissions::from_mode(mode.0))
            .and_then(|()| fs::rename(&fresh, path))
            .and_then(|()| fs::symlink_metadata(path));
        match placed {
            Ok(file) => Ok(Self { listener, path: path.into(), inode: (file.dev(), file.ino()) }),
            Err(error) => {
                // The first error is the one to tell.
                drop(fs::remove_file(&fresh));
                Err(error).with_context(name)
            }
        }
    }

    /// Answers until `shutdown`, then removes the file.
    pub async fn serve(self, state: Arc<State>, shutdown: Shutdown) {
        let desk = Desk {
            state,
            people: People::default(),
            own: nix::unistd::geteuid().as_raw(),
            asking: Arc::default(),
        };
        let mut connections = Connections::new(MOST);
        while let Some((stream, _)) = connections.next(&shutdown, || self.listener.accept()).await {
            let desk = desk.clone();
            connections.spawn(LIFETIME, async move {
                // Who hangs up has no answer to wait for.
                if let Err(error) = desk.converse(stream).await {
                    tracing::debug!(%error, "a request without an answer");
                }
            });
        }
        connections.end().await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path).map(|file| (file.dev(), file.ino()));
        if now.is_ok_and(|now| now == self.inode) {
            // Left behind, it is replaced by the next service.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Where requests are answered.
#[derive(Clone, Debug)]
struct Desk {
    state: Arc<State>,
    people: People,
    own: u32,
    asking: Arc<Mutex<HashMap<u32, usize>>>,
}

impl Desk {
    async fn converse(&self, stream: UnixStream) -> io::Result<()> {
        let uid = stream.peer_cred()?.uid();
        let (read, mut write) = stream.into_split();
        let reply = match Turn::take(&self.asking, uid) {
            None => failure("too many requests of yours at once: wait for their answers", 1),
            Some(_turn) => {
                let mut text = Vec::new();
                let mut read = BufReader::new(read.take(LONGEST_REQUEST));
                match timeout(TO_ASK, read.read_until(b'\n', &mut text)).await {
                    Err(_) => failure("the request did not come in time", 1),
                    Ok(Err(error)) => return Err(error),
                    Ok(Ok(_)) if text.last() != Some(&b'\n') => {
                        failure("the request is too long, or does not end with a newline", 2)
                    }
                    Ok(Ok(_)) => self.reply(uid, &text).await,
                }
            }
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        write.write_all(&text).await?;
        write.shutdown().await
    }

    async fn reply(&self, uid: u32, text: &[u8]) -> Reply {
        let request: Request = match serde_json::from_slice(text) {
            Ok(request) => request,
            Err(error) => return self.note("unknown", failure(&format!("no request: {error}"), 2)),
        };
        let Some((name, handler)) = handler::find(&request.command) else {
            let known: Vec<&str> = handler::HANDLERS.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            let message = format!("{:?} is not known here; known: {known}", request.command);
            return self.note("unknown", failure(&message, 2));
        };
        let is_admin = uid == 0 || uid == self.own;
        let peer = Peer { uid, user: self.people.name(uid).await, is_admin };
        let call = Call { peer, args: request.args, state: Arc::clone(&self.state) };
        let reply = match timeout(TO_ANSWER, handler(call)).await {
            Ok(Ok(value)) => Reply::Ok(value),
            Ok(Err(error)) => failure(&command::message(&error), command::code(&error)),
            Err(_) => failure("the answer took too long", 1),
        };
        self.note(name, reply)
    }

    fn note(&self, command: &'static str, reply: Reply) -> Reply {
        let result = if matches!(reply, Reply::Ok(_)) { "ok" } else { "failed" };
        let mut requests = self.state.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((command, result)).or_default() += 1;
        reply
    }
}

fn failure(message: &str, code: u8) -> Reply {
    Reply::Error { message: message.to_owned(), code }
}

/// One of the few requests that a user may have open.
struct Turn {
    asking: Arc<Mutex<HashMap<u32, usize>>>,
    uid: u32,
}

impl Turn {
    fn take(asking: &Arc<Mutex<HashMap<u32, usize>>>, uid: u32) -> Option<Self> {
        let mut counts = asking.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(uid).or_default();
        if *count >= MOST_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Self { asking: Arc::clone(asking), uid })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_few_requests_at_a_time_and_takes_none_of_another() {
        let asking = Arc::default();
        let turns: Vec<_> = (0..MOST_OF_ONE).map(|_| Turn::take(&asking, 7).unwrap()).collect();
        assert!(Turn::take(&asking, 7).is_none());
        assert!(Turn::take(&asking, 8).is_some());
        drop(turns);
        assert!(Turn::take(&asking, 7).is_some());
        assert!(asking.lock().unwrap().is_empty(), "nobody who left is remembered");
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_a_living_one_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/s.sock");
        let first = Socket::bind(&path, Mode(0o660)).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        let refused = Socket::bind(&path, Mode(0o666)).unwrap_err().to_string();
        assert!(refused.contains("another service listens"), "{refused}");
        drop(first);
        assert!(!path.exists());
        // A standard library listener leaves its file behind, as a killed service does.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = Socket::bind(&path, Mode(0o666)).unwrap();
        drop(second);
        fs::write(&path, "precious").unwrap();
        let refused = Socket::bind(&path, Mode(0o666)).unwrap_err().to_string();
        assert!(refused.contains("no socket"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(fs::read_dir(dir.path().join("run")).unwrap().count(), 1);
    }
}
