//! One signal to stop, seen by every task.

use tokio::sync::watch;

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
}
