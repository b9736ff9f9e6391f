//! The state of each node, its flags, and why it is out.

use std::fmt;

use steward_common::metric::cluster as metric;

use super::View;
use super::leaf::{Leaf, count};

/// `steward_node_…`.
pub fn nodes(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(nodes) = &view.snapshot.nodes else { return Ok(()) };
    let most = view.settings.limits.nodes;
    let cut = nodes.what.len().saturating_sub(most);
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "node"], count(cut as u64))?;
    for node in nodes.what.iter().take(most) {
        let (cluster, name) = (view.cluster, node.name.as_str());
        leaf.put(&metric::NODE_STATE, &[cluster, name, node.state.base.name()], 1.0)?;
        for flag in node.state.flags() {
            leaf.put(&metric::NODE_FLAG, &[cluster, name, flag.name()], 1.0)?;
        }
        if let Some(reason) = &node.reason {
            let author = reason.author.as_deref().unwrap_or("");
            leaf.put(&metric::NODE_REASON, &[cluster, name, &reason.text, author], 1.0)?;
            if let Some(since) = reason.since {
                #[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
                let since = since.get() as f64;
                leaf.put(&metric::NODE_REASON_SINCE, &[cluster, name], since)?;
            }
        }
    }
    Ok(())
}
