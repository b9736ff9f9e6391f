//! Who a user is, as the system's directory says.

use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::sync::Semaphore;

/// How long the directory may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Questions at a time. One that never gets an answer keeps its place, so that a dead directory
/// server costs this many threads and no more.
const MOST: usize = 16;

/// The system's directory of users, which may ask a server that does not answer.
#[derive(Clone, Debug)]
pub struct People {
    places: Arc<Semaphore>,
}

impl Default for People {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MOST)) }
    }
}

impl People {
    /// The name of the user with that id; `None` if there is none, or no answer in time.
    pub async fn name(&self, uid: u32) -> Option<String> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let asked = tokio::task::spawn_blocking(move || {
            let found = User::from_uid(Uid::from_raw(uid));
            drop(place);
            found.ok().flatten().map(|user| user.name)
        });
        tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn root_has_a_name_and_nobody_knows_a_number_without_one() {
        let people = People::default();
        assert_eq!(people.name(0).await.as_deref(), Some("root"));
        assert_eq!(people.name(3_999_999_999).await, None);
    }
}
