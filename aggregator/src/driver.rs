//! Requests to the network from code that waits: it may run anywhere, also where a runtime would not
//! let it wait.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread on which requests are made, so that others can wait for them wherever they are.
pub struct Driver {
    handle: Handle,
    /// Dropped to stop it.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn start() -> io::Result<Driver> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("driver".to_owned()).spawn(move || {
            // An error says that the other end is gone, which is the sign to stop.
            let _gone = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Driver { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// The answer; `None` if the request did not come to its end.
    pub fn wait<T: Send + 'static>(
        &self,
        question: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Who asked is waiting.
            let _sent = sender.send(question.await);
        });
        receiver.recv().ok()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing left to do.
            let _ended = thread.join();
        }
    }
}
