//! `jobs`: runs of jobs, for everyone his own, for the administrator anybody's.

use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Call, Peer};
use crate::archive;
use crate::jobs::{Question, Whose};

/// An answer has at most so many runs.
pub const MOST: usize = 10_000;

/// The archive is read for so many at a time, so that users cannot take the machine from the
/// collection.
pub static READERS: Semaphore = Semaphore::const_new(2);

/// Looks into the archive.
///
/// # Errors
/// If it is not his to ask, or the archive cannot be read.
pub async fn answer(call: Call) -> anyhow::Result<Value> {
    let mut question: Question = call.args()?;
    question.whose = allowed(question.whose, &call.peer)?;
    question.limit = if question.limit == 0 { MOST } else { question.limit.min(MOST) };
    let archive = archive::open(&call.state.config.archive.directory, &call.state.config)?;
    let turn = READERS.acquire().await?;
    let answer = tokio::task::spawn_blocking(move || {
        // Held to the end of the work, also when nobody waits for it any more.
        let _turn = turn;
        archive.jobs(&question)
    });
    match answer.await? {
        Ok(answer) => Ok(serde_json::to_value(answer)?),
        Err(error) if call.peer.is_admin => Err(error.into()),
        Err(error) => {
            // It holds paths that are nobody else's business.
            tracing::error!(%error, "the archive cannot be read for a user");
            anyhow::bail!("the service cannot read the archive; tell an administrator")
        }
    }
}

/// Whose jobs he gets.
pub(super) fn allowed(whose: Whose, peer: &Peer) -> anyhow::Result<Whose> {
    if peer.is_admin && whose != Whose::Own {
        return Ok(whose);
    }
    let Some(own) = &peer.user else {
        anyhow::bail!(
            "the system knows no name for user id {} (or did not say it in time), so it is not \
             known which jobs are yours",
            peer.uid
        );
    };
    let others = match &whose {
        Whose::Own => false,
        Whose::Of(users) => users.iter().any(|user| user != own),
        Whose::All => true,
    };
    if others {
        anyhow::bail!(
            "the service tells {own:?} about {own:?}'s own jobs only; ask an administrator"
        );
    }
    Ok(Whose::Of(vec![own.clone()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(user: Option<&str>, is_admin: bool) -> Peer {
        Peer { uid: 1000, user: user.map(str::to_owned), is_admin }
    }

    fn of(user: &str) -> Whose {
        Whose::Of(vec![user.to_owned()])
    }

    #[test]
    fn everyone_gets_his_own_and_the_administrator_anybodys() {
        let (alice, root) = (peer(Some("alice"), false), peer(Some("root"), true));
        let got = |whose, peer: &Peer| allowed(whose, peer).ok();
        assert_eq!(got(Whose::Own, &alice), Some(of("alice")));
        assert_eq!(got(of("alice"), &alice), Some(of("alice")));
        assert_eq!(got(of("bob"), &alice), None);
        assert_eq!(got(Whose::Of(vec!["alice".into(), "bob".into()]), &alice), None);
        assert_eq!(got(Whose::All, &alice), None);
        assert_eq!(got(Whose::Own, &root), Some(of("root")));
        assert_eq!(got(of("bob"), &root), Some(of("bob")));
        assert_eq!(got(Whose::All, &root), Some(Whose::All));
    }

    #[test]
    fn someone_without_a_name_has_no_jobs_unless_he_is_the_administrator() {
        let nobody = peer(None, false);
        for whose in [Whose::Own, of("alice"), of(""), Whose::All] {
            assert!(allowed(whose, &nobody).is_err());
        }
        assert_eq!(allowed(Whose::All, &peer(None, true)).ok(), Some(Whose::All));
        assert!(allowed(Whose::Own, &peer(None, true)).is_err());
    }
}
