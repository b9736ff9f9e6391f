//! A listener with a limit: so many connections, each for so long. Whoever opens more waits, and
//! cannot use up the descriptors that the scan needs.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Connections at a time: Prometheus needs one, and a few people may look.
const MOST: usize = 64;

/// A connection is closed after this; Prometheus opens another without a word.
const LIFETIME: Duration = Duration::from_secs(60);

/// The listener.
#[derive(Debug)]
pub struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Limited {
    /// Puts the limit on `listener`.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MOST)) }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed: without a place, this waits for one.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, end: Box::pin(sleep(LIFETIME)), _place: place }, address)
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One connection; its place is free again when it is dropped.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn in_time(&mut self, context: &mut Context<'_>) -> Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(Error::from(ErrorKind::TimedOut)),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
