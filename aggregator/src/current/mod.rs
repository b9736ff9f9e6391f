//! Jobs and nodes of a cluster as they are now, as rows for programs: what `/api/v1`, the Unix
//! socket, `steward current` and `steward nodes` give. Their names are those of the archive's columns
//! where both have them. Times are seconds since 1970; what nobody knows is `null`.

mod job;
mod node;

use serde::{Deserialize, Serialize};
use steward_common::cluster::{CurrentJob, Question, Snapshot};

pub use job::{JobRow, TimeLimit, Unlimited};
pub use node::{Held, NodeRow, ReasonRow, StockRow, jobs_on, state_word, state_words};

/// Which clusters are asked for; all if none is named.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Their names.
    pub clusters: Vec<String>,
}

/// Rows of a cluster.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Rows<T> {
    /// Which cluster.
    pub cluster: String,
    /// When slurmctld told them; `None` if it never did.
    pub seen_at: Option<i64>,
    /// Why it did not tell newer ones, if it was asked.
    pub error: Option<String>,
    /// The rows.
    pub rows: Vec<T>,
}

impl Rows<JobRow> {
    /// The jobs of a cluster that are wanted.
    #[must_use]
    pub fn of_jobs(snapshot: &Snapshot, wanted: impl Fn(&CurrentJob) -> bool) -> Self {
        let queue = snapshot.jobs.iter().flat_map(|seen| seen.what.iter());
        Rows {
            cluster: snapshot.cluster.to_string(),
            seen_at: snapshot.jobs.as_ref().map(|seen| seen.at.get()),
            error: error(snapshot, Question::Jobs),
            rows: queue
                .filter(|job| wanted(job))
                .map(|job| JobRow::new(&snapshot.cluster, job))
                .collect(),
        }
    }
}

impl Rows<NodeRow> {
    /// The nodes of a cluster.
    #[must_use]
    pub fn of_nodes(snapshot: &Snapshot) -> Self {
        let reserved =
            snapshot.nodes.as_ref().map(|seen| snapshot.reserved(seen.at)).unwrap_or_default();
        let nodes = snapshot.nodes.iter().flat_map(|seen| seen.what.iter());
        Rows {
            cluster: snapshot.cluster.to_string(),
            seen_at: snapshot.nodes.as_ref().map(|seen| seen.at.get()),
            error: error(snapshot, Question::Nodes),
            rows: nodes
                .map(|node| {
                    let reservation = reserved.get(&node.name).map(|name| &**name);
                    NodeRow::new(snapshot, node, reservation)
                })
                .collect(),
        }
    }
}

fn error(snapshot: &Snapshot, question: Question) -> Option<String> {
    snapshot.asked.get(&question).and_then(|asked| asked.error.clone())
}
