//! Nodes without an agent.

use std::collections::HashSet;
use std::sync::Arc;

use steward_common::id::NodeName;
use steward_common::slurm::hostlist;

use super::prometheus::{SILENT, agents};
use super::{Finding, Patient, good, note};

/// States in which nobody expects an agent to answer.
const AWAY: [&str; 6] =
    ["DOWN", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "FUTURE"];

/// Compares Slurm's nodes with the agents that Prometheus knows.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    if patient.config.prometheus.url.is_none() {
        return vec![note("not known without Prometheus", "set prometheus.url")];
    }
    // What does not answer was said before.
    let unknown = || vec![note("not known: see above", "put that right, and look again")];
    let Ok(told) = patient.controller().await else { return unknown() };
    let cluster = told.settings.get("ClusterName").unwrap_or_default();
    let Ok(agents) = agents(&patient).await else { return unknown() };
    let asked = patient.slurm(&patient.config.slurm.scontrol, &["-o", "show", "nodes"]).await;
    let nodes = match asked {
        Ok(text) => nodes(&text),
        Err(why) => return vec![note(why, "see that scontrol works as this user")],
    };
    let heard: HashSet<NodeName> = agents
        .into_iter()
        .filter(|agent| agent.cluster == cluster && agent.age <= SILENT)
        .map(|agent| agent.node)
        .collect();
    vec![judge(&nodes, &heard)]
}

fn judge(nodes: &[NodeName], heard: &HashSet<NodeName>) -> Finding {
    let without: Vec<NodeName> =
        nodes.iter().filter(|node| !heard.contains(*node)).cloned().collect();
    if without.is_empty() {
        return good(format!("all {} nodes that are up have one", nodes.len()));
    }
    note(
        format!(
            "{} of {} nodes have none: {}",
            without.len(),
            nodes.len(),
            hostlist::fold(&without)
        ),
        "install steward-agent there (`steward-agent check` says what it sees), and let Prometheus \
         scrape it",
    )
}

/// The nodes of `scontrol -o show nodes` that should answer.
fn nodes(text: &str) -> Vec<NodeName> {
    text.lines()
        .filter_map(|line| {
            let value =
                |name: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
            let state = value("State=")?;
            let away = state.split('+').any(|one| AWAY.contains(&one.trim_end_matches('*')));
            if away { None } else { value("NodeName=")?.parse().ok() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    /// Recorded from the testbed: see the README beside it.
    const REAL: &str =
        include_str!("../../../tests/fixtures/slurm-settings/scontrol-show-nodes.txt");

    #[test]
    fn nodes_that_are_up_should_have_an_agent() {
        let up = nodes(REAL);
        assert_eq!(up.len(), 4);
        let down = REAL.replacen("State=IDLE", "State=DOWN*+DRAIN", 1);
        assert_eq!(nodes(&down).len(), 3);
        let heard: HashSet<NodeName> = [up[1].clone()].into();
        let finding = judge(&up, &heard);
        assert_eq!(finding.mark, Mark::Note);
        assert!(finding.text.contains("3 of 4 nodes have none: n[1,3-4]"), "{finding:?}");
        assert_eq!(judge(&up, &up.iter().cloned().collect()).mark, Mark::Good);
    }
}
