//! What there is, and in which class it is: of the cluster and of each partition.

use std::fmt;

use steward_common::cluster::{Base, Class, Flag, Split, Sums};
use steward_common::metric::MetricDef;
use steward_common::metric::cluster as metric;

use super::View;
use super::leaf::{Leaf, count, flag};

/// A line for each class, those with nothing in them too.
fn classes(
    leaf: &mut Leaf,
    def: &'static MetricDef,
    labels: &[&str],
    split: &Split,
) -> fmt::Result {
    let mut all = labels.to_vec();
    for class in Class::all() {
        all.truncate(labels.len());
        all.extend([class.name(), class.cause()]);
        leaf.put(def, &all, count(split.get(class)))?;
    }
    Ok(())
}

/// The metrics of one group of nodes.
struct Group {
    cpus: &'static MetricDef,
    memory: &'static MetricDef,
    gpus: &'static MetricDef,
    gres: &'static MetricDef,
}

fn group(leaf: &mut Leaf, defs: &Group, labels: &[&str], sums: &Sums) -> fmt::Result {
    classes(leaf, defs.cpus, labels, &sums.cpus)?;
    classes(leaf, defs.memory, labels, &sums.memory)?;
    for (model, split) in sums.gpus() {
        classes(leaf, defs.gpus, &[labels, &[model]].concat(), split)?;
    }
    for (kind, model, split) in sums.gres() {
        classes(leaf, defs.gres, &[labels, &[kind, model]].concat(), split)?;
    }
    Ok(())
}

/// `steward_cluster_…`.
pub fn cluster(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let (Some(sums), Some(nodes)) = (&view.sums, &view.snapshot.nodes) else { return Ok(()) };
    let defs = Group {
        cpus: &metric::CPUS,
        memory: &metric::MEMORY,
        gpus: &metric::GPUS,
        gres: &metric::GRES,
    };
    group(leaf, &defs, &[view.cluster], sums)?;
    for base in Base::ALL {
        let nodes = nodes.what.iter().filter(|node| node.state.base == *base).count();
        leaf.put(&metric::NODES, &[view.cluster, base.name()], count(nodes as u64))?;
    }
    for each in Flag::ALL {
        let nodes = nodes.what.iter().filter(|node| node.state.has(*each)).count();
        leaf.put(&metric::NODES_FLAGGED, &[view.cluster, each.name()], count(nodes as u64))?;
    }
    Ok(())
}

/// `steward_partition_…`, as far as nodes go.
pub fn partitions(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let defs = Group {
        cpus: &metric::PARTITION_CPUS,
        memory: &metric::PARTITION_MEMORY,
        gpus: &metric::PARTITION_GPUS,
        gres: &metric::PARTITION_GRES,
    };
    let most = view.settings.limits.partitions;
    for (name, sums) in view.partitions.iter().flatten().take(most) {
        let labels = [view.cluster, &**name];
        group(leaf, &defs, &labels, sums)?;
        leaf.put(&metric::PARTITION_NODES, &labels, count(sums.nodes))?;
    }
    let known = view.snapshot.partitions.iter().flat_map(|seen| seen.what.iter());
    for partition in known.take(most) {
        let up = flag(&*partition.state == "up");
        leaf.put(&metric::PARTITION_UP, &[view.cluster, &partition.name], up)?;
    }
    Ok(())
}
