//! What the nodes of a cluster have, as sinfo says it now: hours that jobs held are compared with it.

use std::collections::HashMap;
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::slurm::gres;
use steward_common::summary::scope::NodeSize;

use crate::collect::site;
use crate::config;
use crate::source::slurm::command::CommandError;
use crate::source::slurm::sacct::Stop;
use crate::source::slurm::settings::text;

/// How long sinfo may take: the tables do not wait long for one column.
const LIMIT: Duration = Duration::from_secs(5);

/// What nodes have, by cluster and node.
pub type Sizes = HashMap<String, HashMap<String, NodeSize>>;

/// Asks for the nodes of these clusters. Of one that does not answer nothing is known; that is said
/// in the log, because an archive may well be read where there is no Slurm.
#[must_use]
pub fn sizes(slurm: &config::Slurm, clusters: &[String], stop: &Stop) -> Sizes {
    let mut sizes = Sizes::new();
    let local = if slurm.clusters.is_empty() && !clusters.is_empty() {
        site::local_within(&slurm.scontrol, LIMIT, stop).map_err(|error| not_known("", &error)).ok()
    } else {
        None
    };
    for cluster in clusters {
        let is = |name: &ClusterName| name.as_str() == cluster;
        let named = slurm.clusters.iter().find(|name| is(name));
        if named.is_none() && !local.as_ref().is_some_and(is) {
            continue;
        }
        match ask(&slurm.sinfo, named, stop) {
            Ok(answer) => drop(sizes.insert(cluster.clone(), read(&answer))),
            Err(error) => not_known(cluster, &error),
        }
    }
    sizes
}

fn not_known(cluster: &str, error: &CommandError) {
    tracing::debug!(cluster, %error, "it is not known what the nodes have");
}

fn ask(
    sinfo: &[String],
    cluster: Option<&ClusterName>,
    stop: &Stop,
) -> Result<String, CommandError> {
    let of = cluster.map(|cluster| format!("--clusters={cluster}"));
    let all = ["--all", "--noheader", "--Node", "--format=%N|%c|%G"];
    let arguments: Vec<&str> = all.into_iter().chain(of.as_deref()).collect();
    text(sinfo, &arguments, LIMIT, stop)
}

/// Of lines `n1|64|gpu:a100:4(S:0-1)`, where a node in several partitions comes several times. A
/// line that is none, as the cluster's name above the list, is passed over; so is a number that
/// cannot be read.
fn read(text: &str) -> HashMap<String, NodeSize> {
    let mut nodes = HashMap::new();
    for line in text.lines() {
        let mut fields = line.trim().splitn(3, '|');
        let (Some(node), Some(cpus), Some(resources)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        nodes.insert(node.to_owned(), NodeSize { cpus: cpus.parse().ok(), gpus: gpus(resources) });
    }
    nodes
}

fn gpus(resources: &str) -> Option<u32> {
    let all = gres::parse(resources).ok()?;
    let gpus = all.iter().filter(|one| one.name == "gpu").map(|one| one.count);
    u32::try_from(gpus.sum::<u64>()).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn size(cpus: u32, gpus: u32) -> NodeSize {
        NodeSize { cpus: Some(cpus), gpus: Some(gpus) }
    }

    #[test]
    fn nodes_have_what_sinfo_says() {
        let text = "CLUSTER: c1\nn1|64|(null)\nn2|8|gpu:a100:4(S:0,1),gpu:v100:2,shard:8\n\
                    n2|8|gpu:a100:4(S:0,1),gpu:v100:2,shard:8\nn3|many|gpu:(\n";
        let unknown = NodeSize { cpus: None, gpus: None };
        let expected = [("n1", size(64, 0)), ("n2", size(8, 6)), ("n3", unknown)];
        assert_eq!(read(text), expected.map(|(node, size)| (node.to_owned(), size)).into());
    }

    #[test]
    fn only_clusters_that_can_be_asked_are() {
        let script = |text: &str| ["sh", "-c", text].map(str::to_owned).to_vec();
        let slurm = config::Slurm {
            sinfo: script("echo 'n1|4|(null)'; echo \"$0|1|(null)\""),
            scontrol: script("echo 'ClusterName = here'"),
            ..config::Slurm::default()
        };
        let stop: Stop = Arc::new(|| false);
        let asked =
            |slurm: &config::Slurm| sizes(slurm, &["far".to_owned(), "here".to_owned()], &stop);
        let found = asked(&slurm);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["here"]);
        assert_eq!(found["here"]["n1"], size(4, 0));
        let named = config::Slurm { clusters: vec!["far".parse().unwrap()], ..slurm.clone() };
        assert_eq!(asked(&named).keys().collect::<Vec<_>>(), ["far"]);
        // One that hangs, fails or is not there is as good as none.
        for text in ["exit 1", "echo no cluster of that name"] {
            let broken = config::Slurm { sinfo: script(text), ..named.clone() };
            assert!(asked(&broken).values().all(HashMap::is_empty), "{text}");
        }
        let none = config::Slurm { scontrol: script("exit 1"), ..slurm };
        assert!(asked(&none).is_empty());
    }
}
