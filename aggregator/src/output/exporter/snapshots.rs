//! What became of the questions: the few lines that change from scrape to scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steward_common::cluster::Snapshot;
use steward_common::id::ClusterName;
use steward_common::metric::cluster as metric;
use steward_common::time::Timestamp;

use super::leaf::{Leaf, bind, flag};

/// `steward_snapshot_…`, at `now`.
///
/// # Errors
/// Never, while memory lasts.
pub fn snapshots(
    all: &BTreeMap<ClusterName, Arc<Snapshot>>,
    now: Timestamp,
) -> Result<String, fmt::Error> {
    let mut leaf = Leaf::default();
    for (cluster, snapshot) in all {
        let cluster = cluster.as_str();
        let interval = snapshot.interval.as_secs_f64();
        leaf.put(&metric::SNAPSHOT_INTERVAL, &[cluster], interval)?;
        for (question, asked) in &snapshot.asked {
            let labels = [cluster, question.name()];
            leaf.put(&metric::SNAPSHOT_SUCCESS, &labels, flag(asked.error.is_none()))?;
            leaf.put(&metric::SNAPSHOT_DURATION, &labels, asked.took.as_secs_f64())?;
            if let Some(answered) = asked.answered {
                // A clock that was set back makes nothing younger than now.
                let age = now.since(answered).unwrap_or(Duration::ZERO);
                leaf.put(&metric::SNAPSHOT_AGE, &labels, age.as_secs_f64())?;
            }
        }
    }
    bind(&[&leaf])
}
