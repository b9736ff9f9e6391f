//! The other end of the Unix socket: how commands ask the service.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::wire::{LONGEST_REPLY, Reply, Request};
use crate::command::BadInput;

/// How long an answer may take; a little longer than the service may.
const PATIENCE: Duration = Duration::from_secs(130);

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("{}: no service answers ({source}): is 'steward serve' running? is it serve.socket of its configuration?", socket.display())]
    NoService {
        /// Where it should.
        socket: PathBuf,
        /// What happened instead.
        source: io::Error,
    },
    /// The service does not like what was asked.
    #[error(transparent)]
    BadInput(#[from] BadInput),
    /// The service refused or failed.
    #[error("{0}")]
    Refused(String),
    /// The answer makes no sense.
    #[error("{}: the service's answer cannot be read: {why}", socket.display())]
    Broken {
        /// Where it came from.
        socket: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Asks the service at `socket`.
///
/// # Errors
/// If there is no service, or it refuses, or gives something else than a `T`.
pub async fn ask<T: DeserializeOwned>(
    socket: &Path,
    command: &str,
    args: impl Serialize,
) -> Result<T, AskError> {
    let broken = |why: String| AskError::Broken { socket: socket.to_owned(), why };
    let no_service = |source| AskError::NoService { socket: socket.to_owned(), source };
    let args = serde_json::to_value(args).map_err(|error| broken(error.to_string()))?;
    let request = Request { command: command.to_owned(), args };
    let mut text = serde_json::to_vec(&request).map_err(|error| broken(error.to_string()))?;
    text.push(b'\n');
    let exchange = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(&text).await?;
        let mut answer = Vec::new();
        stream.take(LONGEST_REPLY).read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = match timeout(PATIENCE, exchange).await {
        Ok(answer) => answer.map_err(no_service)?,
        Err(_) => return Err(no_service(io::ErrorKind::TimedOut.into())),
    };
    match serde_json::from_slice(&answer).map_err(|error| broken(error.to_string()))? {
        Reply::Ok(value) => {
            serde_json::from_value(value).map_err(|error| broken(error.to_string()))
        }
        Reply::Error { message, code: 2 } => Err(BadInput(message).into()),
        Reply::Error { message, .. } => Err(AskError::Refused(message)),
    }
}
