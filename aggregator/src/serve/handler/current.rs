//! `current` and `nodes`: the queue and the nodes of each cluster as they are now. Everyone is told
//! about his own jobs, the administrator about all; nodes are nobody's secret.

use std::sync::Arc;

use serde_json::Value;
use steward_common::cluster::{CurrentJob, Snapshot};

use super::{Call, Peer};
use crate::command::BadInput;
use crate::current::{JobRow, NodeRow, Rows, Which};

/// The queue.
///
/// # Errors
/// If there is no such cluster.
#[allow(clippy::unused_async, reason = "as every handler")]
pub async fn jobs(call: Call) -> anyhow::Result<Value> {
    let rows: Vec<Rows<JobRow>> = clusters(&call)?
        .iter()
        .map(|snapshot| Rows::of_jobs(snapshot, |job| may_see(&call.peer, job)))
        .collect();
    Ok(serde_json::to_value(rows)?)
}

/// The nodes.
///
/// # Errors
/// If there is no such cluster.
#[allow(clippy::unused_async, reason = "as every handler")]
pub async fn nodes(call: Call) -> anyhow::Result<Value> {
    let rows: Vec<Rows<NodeRow>> =
        clusters(&call)?.iter().map(|snapshot| Rows::of_nodes(snapshot)).collect();
    Ok(serde_json::to_value(rows)?)
}

fn clusters(call: &Call) -> anyhow::Result<Vec<Arc<Snapshot>>> {
    let which: Which = call.args()?;
    let known = call.state.board.all();
    if let Some(strange) =
        which.clusters.iter().find(|name| known.keys().all(|own| own.as_str() != *name))
    {
        let names: Vec<&str> = known.keys().map(|name| name.as_str()).collect();
        let names = names.join(", ");
        let message = format!("no cluster {strange:?} is watched by the service; it has: {names}");
        return Err(BadInput(message).into());
    }
    let wanted = |snapshot: &Arc<Snapshot>| {
        which.clusters.is_empty()
            || which.clusters.iter().any(|name| name == snapshot.cluster.as_str())
    };
    Ok(known.into_values().filter(wanted).collect())
}

/// By number where Slurm says it, else by name.
fn may_see(peer: &Peer, job: &CurrentJob) -> bool {
    let own = match job.uid {
        Some(uid) => uid.get() == peer.uid,
        None => peer.user.as_deref().is_some_and(|user| !user.is_empty() && user == &*job.user),
    };
    peer.is_admin || own
}

#[cfg(test)]
mod tests {
    use steward_common::cluster::draft::{Desk, Draft, Figure};

    use super::*;

    #[test]
    fn everyone_sees_his_own_and_the_administrator_all() {
        let job = |user: &str, uid| {
            let draft = Draft {
                id: Figure::At(7),
                user: user.into(),
                uid,
                state: "RUNNING".into(),
                ..Draft::default()
            };
            Desk::default().job(draft).unwrap()
        };
        let peer = |uid, user: Option<&str>, is_admin| Peer {
            uid,
            user: user.map(str::to_owned),
            is_admin,
        };
        let alice = peer(1001, Some("alice"), false);
        assert!(may_see(&alice, &job("alice", Figure::At(1001))));
        assert!(!may_see(&alice, &job("bob", Figure::At(1002))));
        // The number counts: the name of another cluster's user may be the same.
        assert!(!may_see(&alice, &job("alice", Figure::At(1002))));
        assert!(may_see(&alice, &job("alice", Figure::Unset)));
        assert!(!may_see(&peer(1001, None, false), &job("", Figure::Unset)));
        assert!(may_see(&peer(0, Some("root"), true), &job("bob", Figure::At(1002))));
    }
}
