//! One signal to stop, seen by everything that runs.

use std::future::Future;

use tokio::sync::watch;

use crate::command::Interrupted;

/// Something that every loop waits for beside its work.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The other end: stops everything when told, or when dropped.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// A connected pair.
#[must_use]
pub fn channel() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Shutdown(receiver))
}

impl Stopper {
    /// Tells everyone.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Returns when it is time to stop.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        // An error means that the stopper is gone: the same thing.
        let stopped = receiver.wait_for(|stopped| *stopped).await;
        drop(stopped);
    }

    /// Whether it is time to stop.
    #[must_use]
    pub fn is_due(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for `work`, which is dropped half-done when it is time to stop.
    ///
    /// # Errors
    /// If it was time to stop first.
    pub async fn or<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            () = self.wait() => Err(Interrupted),
            done = work => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stopper_that_is_told_or_gone_stops_what_waits() {
        let (stopper, shutdown) = channel();
        assert!(!shutdown.is_due());
        assert_eq!(shutdown.or(async { 7 }).await.ok(), Some(7));
        stopper.stop();
        assert!(shutdown.is_due());
        assert!(shutdown.or(std::future::pending::<()>()).await.is_err());
        let (stopper, shutdown) = channel();
        drop(stopper);
        shutdown.wait().await;
        assert!(shutdown.is_due());
    }
}
