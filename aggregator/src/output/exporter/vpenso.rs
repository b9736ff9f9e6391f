//! vpenso's names. Every node is counted once and every state has a name; zeros are exported.

use std::collections::BTreeMap;
use std::fmt;

use steward_common::cluster::tally::{self, Phase};
use steward_common::cluster::{Base, Scheduler, Sums};
use steward_common::metric::MetricDef;
use steward_common::metric::compatible as metric;

use super::View;
use super::jobs::all_accounts;
use super::leaf::{Leaf, count};

/// All of them.
pub fn vpenso(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    cpus(view, leaf)?;
    gpus(view, leaf)?;
    nodes(view, leaf)?;
    queue(view, leaf)?;
    people(view, leaf)?;
    scheduler(view, leaf)
}

/// The four figures of sinfo's `%C`.
fn four(
    leaf: &mut Leaf,
    defs: [&'static MetricDef; 4],
    labels: &[&str],
    sums: &Sums,
) -> fmt::Result {
    for (def, value) in defs.into_iter().zip(sums.sinfo_cpus()) {
        leaf.put(def, labels, count(value))?;
    }
    Ok(())
}

fn cpus(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let (Some(sums), Some(partitions)) = (&view.sums, &view.partitions) else { return Ok(()) };
    let defs =
        [&metric::V_CPUS_ALLOC, &metric::V_CPUS_IDLE, &metric::V_CPUS_OTHER, &metric::V_CPUS_TOTAL];
    four(leaf, defs, &[view.cluster], sums)?;
    let defs = [
        &metric::V_PARTITION_CPUS_ALLOCATED,
        &metric::V_PARTITION_CPUS_IDLE,
        &metric::V_PARTITION_CPUS_OTHER,
        &metric::V_PARTITION_CPUS_TOTAL,
    ];
    for (name, sums) in partitions.iter().take(view.settings.limits.partitions) {
        four(leaf, defs, &[view.cluster, name], sums)?;
    }
    Ok(())
}

fn gpus(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(nodes) = &view.snapshot.nodes else { return Ok(()) };
    let (mut alloc, mut idle, mut total) = (0u64, 0u64, 0u64);
    for node in nodes.what.iter() {
        let split = node.split();
        for (_, split) in split.gres.iter().filter(|(stock, _)| stock.is_gpu()) {
            alloc += split.allocated;
            total += split.total();
            if !node.is_drained() && node.state.base != Base::Down {
                idle += split.total() - split.allocated;
            }
        }
    }
    for (def, value) in [
        (&metric::V_GPUS_ALLOC, alloc),
        (&metric::V_GPUS_IDLE, idle),
        (&metric::V_GPUS_OTHER, total - alloc - idle),
        (&metric::V_GPUS_TOTAL, total),
    ] {
        leaf.put(def, &[view.cluster], count(value))?;
    }
    if total > 0 {
        leaf.put(&metric::V_GPUS_UTILIZATION, &[view.cluster], count(alloc) / count(total))?;
    }
    Ok(())
}

/// The metric in which a node counts by sinfo's word for it.
fn of_word(word: &str) -> &'static MetricDef {
    match word {
        "allocated" => &metric::V_NODES_ALLOC,
        "completing" => &metric::V_NODES_COMP,
        "drained" | "draining" => &metric::V_NODES_DRAIN,
        "error" | "inval" => &metric::V_NODES_ERR,
        "fail" | "failing" => &metric::V_NODES_FAIL,
        "idle" | "planned" => &metric::V_NODES_IDLE,
        "maint" | "reboot" => &metric::V_NODES_MAINT,
        "mixed" => &metric::V_NODES_MIX,
        "reserved" | "blocked" => &metric::V_NODES_RESV,
        _ => &metric::V_NODES_DOWN,
    }
}

fn nodes(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(nodes) = &view.snapshot.nodes else { return Ok(()) };
    let words = [
        "allocated",
        "completing",
        "down",
        "drained",
        "error",
        "fail",
        "idle",
        "maint",
        "mixed",
        "reserved",
    ];
    let mut counts: BTreeMap<&str, (&'static MetricDef, u64)> =
        words.iter().map(|word| (of_word(word).name, (of_word(word), 0))).collect();
    for node in nodes.what.iter() {
        let def = of_word(node.state.sinfo_word());
        counts.entry(def.name).or_insert((def, 0)).1 += 1;
    }
    for (def, nodes) in counts.into_values() {
        leaf.put(def, &[view.cluster], count(nodes))?;
    }
    Ok(())
}

fn queue(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(tally) = &view.tally else { return Ok(()) };
    let state = |name: &str| tally.states.get(name).copied().unwrap_or(0);
    for (def, jobs) in [
        (&metric::V_QUEUE_PENDING, state("PENDING")),
        (&metric::V_QUEUE_PENDING_DEPENDENCY, tally.dependent),
        (&metric::V_QUEUE_RUNNING, state("RUNNING")),
        (&metric::V_QUEUE_SUSPENDED, state("SUSPENDED")),
        (&metric::V_QUEUE_CANCELLED, state("CANCELLED")),
        (&metric::V_QUEUE_COMPLETING, state("COMPLETING")),
        (&metric::V_QUEUE_COMPLETED, state("COMPLETED")),
        (&metric::V_QUEUE_CONFIGURING, state("CONFIGURING")),
        (&metric::V_QUEUE_FAILED, state("FAILED")),
        (&metric::V_QUEUE_TIMEOUT, state("TIMEOUT")),
        (&metric::V_QUEUE_PREEMPTED, state("PREEMPTED")),
        (&metric::V_QUEUE_NODE_FAIL, state("NODE_FAIL")),
    ] {
        leaf.put(def, &[view.cluster], count(jobs))?;
    }
    let (partitions, _) = tally::top(&tally.partitions, view.settings.limits.partitions);
    let known = view.partitions.iter().flatten().map(|(name, _)| (&**name, 0));
    let mut pending: BTreeMap<&str, u64> = known.take(view.settings.limits.partitions).collect();
    for (name, loads) in partitions {
        pending.insert(name, loads.get(Phase::Pending).jobs);
    }
    for (name, jobs) in pending {
        leaf.put(&metric::V_PARTITION_JOBS_PENDING, &[view.cluster, name], count(jobs))?;
    }
    Ok(())
}

fn people(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let (Some(accounts), Some(tally)) = (all_accounts(view), &view.tally) else { return Ok(()) };
    let limits = &view.settings.limits;
    let of_accounts: [&'static MetricDef; 4] = [
        &metric::V_ACCOUNT_JOBS_PENDING,
        &metric::V_ACCOUNT_JOBS_RUNNING,
        &metric::V_ACCOUNT_CPUS_RUNNING,
        &metric::V_ACCOUNT_JOBS_SUSPENDED,
    ];
    let of_users: [&'static MetricDef; 4] = [
        &metric::V_USER_JOBS_PENDING,
        &metric::V_USER_JOBS_RUNNING,
        &metric::V_USER_CPUS_RUNNING,
        &metric::V_USER_JOBS_SUSPENDED,
    ];
    for (defs, all, most) in
        [(of_accounts, &accounts, limits.accounts), (of_users, &tally.users, limits.users)]
    {
        for (name, loads) in tally::top(all, most).0 {
            let figures = [
                loads.get(Phase::Pending).jobs,
                loads.get(Phase::Running).jobs,
                loads.get(Phase::Running).cpus,
                loads.get(Phase::Suspended).jobs,
            ];
            for (def, value) in defs.into_iter().zip(figures) {
                leaf.put(def, &[view.cluster, name], count(value))?;
            }
        }
    }
    // An account that stands in the tree twice has one series.
    let shares = view.snapshot.shares.iter().flat_map(|seen| seen.what.iter());
    let fairshare: BTreeMap<&str, f64> = shares
        .filter(|share| share.user.is_none())
        .filter_map(|share| Some((&*share.account, share.fairshare?)))
        .collect();
    for (account, value) in fairshare {
        leaf.put(&metric::V_ACCOUNT_FAIRSHARE, &[view.cluster, account], value)?;
    }
    Ok(())
}

/// A metric with the figure that it shows.
type Figure = (&'static MetricDef, fn(&Scheduler) -> Option<u64>);

const SCHEDULER: &[Figure] = &[
    (&metric::V_SCHEDULER_THREADS, |all| all.threads),
    (&metric::V_SCHEDULER_QUEUE_SIZE, |all| all.agent_queue),
    (&metric::V_SCHEDULER_DBD_QUEUE_SIZE, |all| all.dbd_queue),
    (&metric::V_SCHEDULER_LAST_CYCLE, |all| all.last_cycle),
    (&metric::V_SCHEDULER_MEAN_CYCLE, |all| all.mean_cycle),
    (&metric::V_SCHEDULER_CYCLE_PER_MINUTE, |all| all.cycles_per_minute),
    (&metric::V_SCHEDULER_BACKFILL_LAST_CYCLE, |all| all.backfill_last_cycle),
    (&metric::V_SCHEDULER_BACKFILL_MEAN_CYCLE, |all| all.backfill_mean_cycle),
    (&metric::V_SCHEDULER_BACKFILL_DEPTH_MEAN, |all| all.backfill_mean_depth),
    (&metric::V_SCHEDULER_BACKFILLED_JOBS_SINCE_START_TOTAL, |all| all.backfilled_since_start),
    (&metric::V_SCHEDULER_BACKFILLED_JOBS_SINCE_CYCLE_TOTAL, |all| all.backfilled_since_reset),
    (&metric::V_SCHEDULER_BACKFILLED_HETEROGENEOUS_TOTAL, |all| all.backfilled_het),
];

fn scheduler(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(seen) = &view.snapshot.scheduler else { return Ok(()) };
    for (def, figure) in SCHEDULER {
        if let Some(value) = figure(&seen.what) {
            leaf.put(def, &[view.cluster], count(value))?;
        }
    }
    Ok(())
}
