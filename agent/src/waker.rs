//! Wakes the scan loop when a job begins, changes or ends.

use std::collections::BTreeSet;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::io::unix::AsyncFd;

use crate::kernel::watch::{EVENTS, Watch};
use crate::rhythm::Reason;

/// Why a look at what changed is wanted, if anything did.
#[must_use]
pub fn reason(changed: &BTreeSet<PathBuf>) -> Option<Reason> {
    let of = |path: &PathBuf| match path.file_name() {
        Some(name) if name == EVENTS => Reason::Last,
        _ => Reason::Changed,
    };
    changed.iter().map(of).max()
}

/// Takes what changed out of the list: all of it, or only what a last look is for.
pub fn take(changed: &mut BTreeSet<PathBuf>, last: bool) -> BTreeSet<PathBuf> {
    if !last {
        return std::mem::take(changed);
    }
    let (taken, rest) = std::mem::take(changed)
        .into_iter()
        .partition(|path| path.file_name().is_some_and(|name| name == EVENTS));
    *changed = rest;
    taken
}

/// Waits for the kernel's word that something changed.
#[derive(Debug)]
pub struct Waker(Option<(Watch, AsyncFd<OwnedFd>)>);

impl Waker {
    /// Watches nothing yet. Where the kernel gives no watch, jobs are found by the clock alone.
    #[must_use]
    #[allow(
        deprecated,
        reason = "unsound only for a type that lies about its descriptor; an OwnedFd does not"
    )]
    pub fn new() -> Self {
        let made = || -> Result<_, std::io::Error> {
            let watch = Watch::new()?;
            let ready = AsyncFd::new(watch.readiness()?)?;
            Ok((watch, ready))
        };
        match made() {
            Ok(made) => Self(Some(made)),
            Err(error) => {
                tracing::warn!(
                    "cannot watch for new jobs, so that short ones may be missed: {error}; raise fs.inotify.max_user_instances"
                );
                Self(None)
            }
        }
    }

    /// Watches these paths; true if one of them is new.
    pub fn watch(&mut self, paths: &BTreeSet<PathBuf>) -> bool {
        self.0.as_mut().is_some_and(|(watch, _)| watch.set(paths))
    }

    /// The paths in which something changed; never returns where nothing can be watched.
    pub async fn changed(&mut self) -> BTreeSet<PathBuf> {
        let Some((watch, ready)) = &mut self.0 else { return pending().await };
        loop {
            match ready.readable().await {
                Ok(mut guard) => {
                    guard.clear_ready();
                    let changed = watch.changed();
                    if !changed.is_empty() {
                        return changed;
                    }
                }
                Err(_) => return pending().await,
            }
        }
    }
}
