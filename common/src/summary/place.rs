//! Where runs were: on which nodes, on which kinds of GPU. Hours are summed by the text that
//! Slurm has for it, and each different text is taken apart once, at the end.

use std::collections::{BTreeMap, HashMap};

use super::hours::Hours;
use super::part::Run;
use super::report::{GpuLine, NodeLine};
use super::row::Row;
use super::scope::{Filter, NodeSize};
use crate::id::NodeName;
use crate::intern::{Name, Names};
use crate::slurm::hostlist;
use crate::window::Window;

/// What runs on one list of nodes held.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    jobs: u64,
    cpu: f64,
    gpu: f64,
}

/// What runs with the same GPUs held and used.
#[derive(Debug, Clone, Copy, Default)]
struct Gpus {
    jobs: u64,
    gpu: Hours,
}

/// Sums by node list, for each cluster, and by GPU types.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Clusters are few, lists are many: a list's place is the number of its name.
    lists: Vec<(Name, Vec<Place>)>,
    types: Vec<Gpus>,
}

fn at<T: Clone + Default>(places: &mut Vec<T>, name: Name) -> Option<&mut T> {
    if places.len() <= name.index() {
        places.resize(name.index() + 1, T::default());
    }
    places.get_mut(name.index())
}

impl Places {
    /// Counts a run with the hours that it held in the window.
    pub(super) fn add(&mut self, row: &Row, run: &Run) {
        let known = self.lists.iter().position(|(cluster, _)| *cluster == row.cluster);
        let known = known.unwrap_or_else(|| {
            self.lists.push((row.cluster, Vec::new()));
            self.lists.len() - 1
        });
        let list = self.lists.get_mut(known).and_then(|(_, places)| at(places, row.nodes));
        let Some(list) = list else { return };
        list.jobs += 1;
        list.cpu += run.took.cpu.held;
        let Some(gpu) = &run.took.gpu else { return };
        list.gpu += gpu.held;
        if let Some(model) = at(&mut self.types, row.gpu_types) {
            model.jobs += 1;
            model.gpu.merge(&gpu.hours(run.cause.is_some()));
        }
    }

    /// The nodes, busiest first: those that runs were on, and those that are known and had none.
    /// A run's hours are divided evenly over its nodes.
    pub(super) fn nodes(
        &self,
        names: &Names,
        window: Window,
        filter: &Filter,
        sizes: &HashMap<String, HashMap<String, NodeSize>>,
    ) -> Vec<NodeLine> {
        let mut lines = Vec::new();
        let mut clusters: Vec<&str> = sizes.keys().map(String::as_str).collect();
        clusters.extend(self.lists.iter().map(|(cluster, _)| names.text(*cluster)));
        clusters.sort_unstable();
        clusters.dedup();
        let wanted = |cluster: &&str| {
            filter.clusters.is_empty() || filter.clusters.iter().any(|one| one == cluster)
        };
        for cluster in clusters.into_iter().filter(wanted) {
            let mut sums: HashMap<String, Place> = HashMap::new();
            let known = sizes.get(cluster);
            for node in known.into_iter().flat_map(HashMap::keys) {
                sums.insert(node.clone(), Place::default());
            }
            let here = self.lists.iter().find(|(name, _)| names.text(*name) == cluster);
            for (list, text) in names.iter() {
                let place = here.and_then(|(_, places)| places.get(list.index()));
                if let Some(place) = place.filter(|place| place.jobs > 0) {
                    spread(&mut sums, text, place);
                }
            }
            for (node, place) in sums {
                let size = known.and_then(|sizes| sizes.get(&node)).copied().unwrap_or_default();
                lines.push(NodeLine::new(
                    (cluster, node),
                    place.jobs,
                    (place.cpu, place.gpu),
                    size,
                    window,
                ));
            }
        }
        lines.sort_by(|a, b| {
            b.cpu_hours
                .total_cmp(&a.cpu_hours)
                .then_with(|| (&a.node, &a.cluster).cmp(&(&b.node, &b.cluster)))
        });
        lines
    }

    /// GPU-hours by type, most first. GPUs of unknown type have the empty name.
    pub(super) fn gpu_types(&self, names: &Names) -> Vec<GpuLine> {
        let mut sums: BTreeMap<&str, GpuLine> = BTreeMap::new();
        for (list, text) in names.iter() {
            let Some(place) = self.types.get(list.index()).filter(|place| place.jobs > 0) else {
                continue;
            };
            let types = types(text);
            let all: f64 = types.iter().map(|(_, count)| count).sum();
            for (model, count) in types {
                let line = sums.entry(model).or_insert_with(|| GpuLine {
                    model: model.to_owned(),
                    jobs: 0,
                    gpu: Hours::default(),
                });
                line.jobs += place.jobs;
                line.gpu.add_share(&place.gpu, count / all);
            }
        }
        let mut lines: Vec<GpuLine> = sums.into_values().collect();
        lines.sort_by(|a, b| b.gpu.reserved.total_cmp(&a.gpu.reserved));
        lines
    }
}

fn spread(sums: &mut HashMap<String, Place>, list: &str, place: &Place) {
    // A list that cannot be read stands for itself: its hours must not get lost.
    let nodes = hostlist::expand(list).ok();
    let names = nodes.iter().flatten().map(NodeName::as_str);
    let itself = nodes.is_none().then_some(list);
    let share = 1.0 / nodes.as_ref().map_or(1, Vec::len).max(1) as f64;
    for node in names.chain(itself) {
        if !sums.contains_key(node) {
            sums.insert(node.to_owned(), Place::default());
        }
        if let Some(sum) = sums.get_mut(node) {
            sum.jobs += place.jobs;
            sum.cpu += place.cpu * share;
            sum.gpu += place.gpu * share;
        }
    }
}

/// `a100=2,v100=1`; one of unknown type if it says nothing of that kind.
fn types(text: &str) -> Vec<(&str, f64)> {
    fn one(item: &str) -> Option<(&str, f64)> {
        let (model, count) = item.split_once('=')?;
        let count: u32 = count.parse().ok()?;
        (count > 0 && !model.is_empty()).then_some((model, f64::from(count)))
    }
    let found: Option<Vec<(&str, f64)>> = text.split(',').map(one).collect();
    found.unwrap_or_else(|| vec![("", 1.0)])
}

#[cfg(test)]
mod tests {
    use super::types;

    #[test]
    fn types_of_gpus() {
        assert_eq!(types("a100=2,v100=1"), [("a100", 2.0), ("v100", 1.0)]);
        assert_eq!(types("a100_1g.5gb=7"), [("a100_1g.5gb", 7.0)]);
        for text in ["", "a100", "a100=0", "=1", "a100=2,"] {
            assert_eq!(types(text), [("", 1.0)], "{text:?}");
        }
    }
}
