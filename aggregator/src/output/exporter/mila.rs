//! Mila's names: CPUs and GPUs in four classes by reservation, where `drain` is all that is
//! unusable. The classes sum to the total.

use std::collections::BTreeMap;
use std::fmt;

use steward_common::cluster::tally::Phase;
use steward_common::cluster::{Base, Flag, NodeState, Split};
use steward_common::metric::MetricDef;
use steward_common::metric::compatible as metric;
use steward_common::slurm::state::JobState;

use super::View;
use super::leaf::{Leaf, count, flag};

/// What stands for no reservation.
const NONE: &str = "None";

/// All of them.
pub fn mila(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    capacity(view, leaf)?;
    states(view, leaf)?;
    jobs(view, leaf)
}

fn four(
    leaf: &mut Leaf,
    defs: [&'static MetricDef; 4],
    labels: &[&str],
    split: &Split,
) -> fmt::Result {
    let figures = [split.allocated, split.idle, split.unusable(), split.total()];
    for (def, value) in defs.into_iter().zip(figures) {
        leaf.put(def, labels, count(value))?;
    }
    Ok(())
}

fn capacity(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(nodes) = &view.snapshot.nodes else { return Ok(()) };
    let reserved = view.snapshot.reserved(view.snapshot.taken_at);
    let mut cpus: BTreeMap<&str, Split> = [(NONE, Split::default())].into();
    let mut gpus: BTreeMap<(&str, &str), Split> = BTreeMap::new();
    for node in nodes.what.iter() {
        let own = node.reservation.as_ref().or(reserved.get(&node.name));
        let reservation = own.map_or(NONE, |name| &**name);
        let split = node.split();
        cpus.entry(reservation).or_default().add(&split.cpus);
        for (stock, split) in split.gres.iter().filter(|(stock, _)| stock.is_gpu()) {
            gpus.entry((&stock.model, reservation)).or_default().add(split);
        }
    }
    let defs =
        [&metric::M_CPUS_ALLOC, &metric::M_CPUS_IDLE, &metric::M_CPUS_DRAIN, &metric::M_CPUS_TOTAL];
    for (reservation, split) in &cpus {
        four(leaf, defs, &[view.cluster, reservation], split)?;
    }
    let defs =
        [&metric::M_GPUS_ALLOC, &metric::M_GPUS_IDLE, &metric::M_GPUS_DRAIN, &metric::M_GPUS_TOTAL];
    for ((model, reservation), split) in &gpus {
        four(leaf, defs, &[view.cluster, model, reservation], split)?;
    }
    Ok(())
}

/// The words of its enumeration.
const STATES: [&str; 18] = [
    "allocated",
    "completing",
    "idle",
    "maint",
    "mixed",
    "perfctrs",
    "power_up",
    "reserved",
    "reboot",
    "down",
    "drained",
    "draining",
    "fail",
    "failing",
    "future",
    "power_down",
    "unknown",
    "not_responding",
];

/// One word for a node, not responding and power among them.
fn word(state: NodeState) -> &'static str {
    if state.has(Flag::NotResponding) && !state.has(Flag::Drain) && state.base != Base::Down {
        return "not_responding";
    }
    match state.sinfo_word() {
        "idle" | "planned" | "blocked" => {
            if state.has_any(&[Flag::PowerUp, Flag::PoweringUp]) {
                "power_up"
            } else if state.has_any(&[Flag::PowerDown, Flag::PoweredDown, Flag::PoweringDown]) {
                "power_down"
            } else if state.has(Flag::Perfctrs) {
                "perfctrs"
            } else if state.has(Flag::Blocked) {
                "reserved"
            } else {
                "idle"
            }
        }
        "error" | "inval" => "down",
        other => other,
    }
}

fn states(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let nodes = view.snapshot.nodes.iter().flat_map(|seen| seen.what.iter());
    for node in nodes.take(view.settings.limits.nodes) {
        let is = word(node.state);
        for state in STATES {
            let labels = [view.cluster, node.name.as_str(), state];
            leaf.put(&metric::M_NODE_STATES, &labels, flag(state == is))?;
        }
    }
    Ok(())
}

fn jobs(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(tally) = &view.tally else { return Ok(()) };
    for state in JobState::all() {
        let jobs = tally.states.get(state.name()).copied().unwrap_or(0);
        let name = state.name().to_ascii_lowercase();
        leaf.put(&metric::M_JOB_STATES, &[view.cluster, &name], count(jobs))?;
    }
    let mut partitions: BTreeMap<&str, u64> =
        view.partitions.iter().flatten().map(|(name, _)| (&**name, 0)).collect();
    for (name, loads) in &tally.partitions {
        let jobs = Phase::ALL.iter().map(|phase| loads.get(*phase).jobs).sum();
        partitions.insert(name, jobs);
    }
    for (name, jobs) in partitions {
        leaf.put(&metric::M_PARTITIONS, &[view.cluster, name], count(jobs))?;
    }
    let hosts: BTreeMap<_, _> = tally.hosts.iter().collect();
    for (host, jobs) in hosts {
        leaf.put(&metric::M_LOGIN_NODES, &[view.cluster, host], count(*jobs))?;
    }
    Ok(())
}
