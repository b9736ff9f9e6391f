//! `analyze`: who used what, for everyone of his own jobs, for the administrator of anybody's.

use serde_json::Value;

use super::jobs::{READERS, allowed};
use super::{Call, Peer};
use crate::analyze::AnalyzeError;
use crate::analyze::ask::Asked;
use crate::analyze::nodes::Sizes;
use crate::archive;
use crate::jobs::Whose;

/// Columns that a screen may have.
const WIDTH: std::ops::RangeInclusive<usize> = 40..=160;

/// Sums up what the archive has. What nodes have is not asked for: slurmctld is not for everybody.
///
/// # Errors
/// If it is not his to ask, or there is nothing to show.
pub async fn answer(call: Call) -> anyhow::Result<Value> {
    let mut asked: Asked = call.args()?;
    asked.options.user = users(std::mem::take(&mut asked.options.user), &call.peer)?;
    asked.width = asked.width.clamp(*WIDTH.start(), *WIDTH.end());
    let turn = READERS.acquire().await?;
    let state = call.state;
    let work = tokio::task::spawn_blocking(move || {
        // Held to the end of the work, also when nobody waits for it any more.
        let _turn = turn;
        let archive = archive::open(&state.config.archive.directory, &state.config)?;
        asked.text(&archive, &state.config, Sizes::new())
    });
    match work.await? {
        Ok(text) => Ok(Value::String(text)),
        Err(error) if call.peer.is_admin || error.is::<AnalyzeError>() => Err(error),
        Err(error) => {
            // It holds paths that are nobody else's business.
            tracing::error!(%error, "the archive cannot be read for a user");
            anyhow::bail!("the service cannot read the archive; tell an administrator")
        }
    }
}

/// Whose jobs he gets; nobody named means all of them.
fn users(users: Vec<String>, peer: &Peer) -> anyhow::Result<Vec<String>> {
    let whose = match (users.is_empty(), peer.is_admin) {
        (true, true) => Whose::All,
        (true, false) => Whose::Own,
        (false, _) => Whose::Of(users),
    };
    Ok(match allowed(whose, peer)? {
        Whose::Of(users) => users,
        Whose::Own | Whose::All => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_gets_his_own_and_the_administrator_anybodys() {
        let peer = |user: Option<&str>, is_admin| Peer {
            uid: 1000,
            user: user.map(str::to_owned),
            is_admin,
        };
        let ask = |names: &[&str], peer: &Peer| {
            users(names.iter().map(|name| (*name).to_owned()).collect(), peer).ok()
        };
        let (alice, root) = (peer(Some("alice"), false), peer(Some("root"), true));
        for own in [&[][..], &["alice"], &["alice", "alice"]] {
            assert_eq!(ask(own, &alice), Some(vec!["alice".to_owned()]), "{own:?}");
        }
        for others in [&["bob"][..], &["alice", "bob"], &[""]] {
            assert_eq!(ask(others, &alice), None, "{others:?}");
        }
        assert_eq!(ask(&[], &peer(None, false)), None);
        assert_eq!(ask(&[], &root), Some(Vec::new()));
        assert_eq!(ask(&["bob"], &root), Some(vec!["bob".to_owned()]));
    }
}
