//! Connections of a listener: so many at a time, each for so long, all awaited at the end.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::shutdown::Shutdown;

/// A client that does not read its answer is not waited for longer than this at the end.
const GRACE: Duration = Duration::from_secs(2);

/// After a failure to accept, which comes again at once while descriptors are short.
const BREATH: Duration = Duration::from_millis(500);

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    places: Arc<Semaphore>,
    /// The place of the one that was accepted and is not served yet.
    place: Option<OwnedSemaphorePermit>,
    served: JoinSet<()>,
}

impl Connections {
    /// None yet, and never more than `most`: whoever comes then waits.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), place: None, served: JoinSet::new() }
    }

    /// The next one; `None` when it is time to stop.
    pub async fn next<T, F>(&mut self, shutdown: &Shutdown, accept: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        loop {
            while self.served.try_join_next().is_some() {}
            let place = shutdown.or(Arc::clone(&self.places).acquire_owned()).await.ok()?;
            self.place = place.ok();
            match shutdown.or(accept()).await.ok()? {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    shutdown.or(tokio::time::sleep(BREATH)).await.ok()?;
                }
            }
        }
    }

    /// Serves the one that was accepted last, for no longer than `lifetime`.
    pub fn spawn(&mut self, lifetime: Duration, serve: impl Future<Output = ()> + Send + 'static) {
        let place = self.place.take();
        self.served.spawn(async move {
            // Whose time is over is cut off.
            drop(tokio::time::timeout(lifetime, serve).await);
            drop(place);
        });
    }

    /// Waits for those that are being served, but not for long.
    pub async fn end(mut self) {
        let all = async { while self.served.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            self.served.shutdown().await;
        }
    }
}
