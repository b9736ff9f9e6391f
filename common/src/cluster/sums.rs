//! What many nodes have, by class.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::class::Split;
use super::node::NodeSplit;
use super::stock::GPU;

/// Sums over nodes. Each node is added once, or once for each partition that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sums {
    /// How many nodes were added.
    pub nodes: u64,
    /// Their CPUs.
    pub cpus: Split,
    /// Their memory, in bytes.
    pub memory: Split,
    /// CPUs that sinfo calls idle.
    pub sinfo_idle: u64,
    gres: BTreeMap<(Arc<str>, Arc<str>), Split>,
}

impl Sums {
    /// Adds a node.
    pub fn add(&mut self, node: &NodeSplit<'_>) {
        self.nodes += 1;
        self.cpus.add(&node.cpus);
        self.memory.add(&node.memory);
        self.sinfo_idle = self.sinfo_idle.saturating_add(node.sinfo_idle);
        for (stock, split) in &node.gres {
            let key = (Arc::clone(&stock.kind), Arc::clone(&stock.model));
            self.gres.entry(key).or_default().add(split);
        }
    }

    /// GPUs by type, those without a type under an empty one.
    pub fn gpus(&self) -> impl Iterator<Item = (&str, &Split)> {
        self.gres
            .iter()
            .filter(|((kind, _), _)| &**kind == GPU)
            .map(|((_, model), split)| (&**model, split))
    }

    /// Every other generic resource, by kind and type.
    pub fn gres(&self) -> impl Iterator<Item = (&str, &str, &Split)> {
        self.gres
            .iter()
            .filter(|((kind, _), _)| &**kind != GPU)
            .map(|((kind, model), split)| (&**kind, &**model, split))
    }

    /// CPUs as sinfo counts them in `%C`: allocated, idle, other, total.
    #[must_use]
    pub fn sinfo_cpus(&self) -> [u64; 4] {
        let total = self.cpus.total();
        let other = total.saturating_sub(self.cpus.allocated).saturating_sub(self.sinfo_idle);
        [self.cpus.allocated, self.sinfo_idle, other, total]
    }
}
