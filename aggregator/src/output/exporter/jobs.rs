//! The queue: by state and reason, by partition, account and user.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use steward_common::cluster::tally::{self, ByName, Loads, Phase};
use steward_common::metric::MetricDef;
use steward_common::metric::cluster as metric;
use steward_common::slurm::state::JobState;

use super::View;
use super::leaf::{Leaf, count};

/// `steward_jobs` and `steward_jobs_pending`.
pub fn jobs(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(tally) = &view.tally else { return Ok(()) };
    let known = JobState::all();
    let mut states: BTreeMap<&str, u64> = known.iter().map(|state| (state.name(), 0)).collect();
    states.extend(tally.states.iter().map(|(state, jobs)| (state.as_str(), *jobs)));
    for (state, jobs) in states {
        let state = state.to_ascii_lowercase();
        leaf.put(&metric::JOBS, &[view.cluster, &state], count(jobs))?;
    }
    let (reasons, cut) = tally::top_counts(&tally.reasons, view.settings.limits.reasons);
    for (reason, jobs) in reasons {
        leaf.put(&metric::JOBS_PENDING, &[view.cluster, reason], count(jobs))?;
    }
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "reason"], count(cut))
}

/// The metrics of somebody's jobs.
struct Group {
    jobs: &'static MetricDef,
    cpus: &'static MetricDef,
    gpus: &'static MetricDef,
    memory: Option<&'static MetricDef>,
}

fn group(
    view: &View<'_>,
    leaf: &mut Leaf,
    defs: &Group,
    names: BTreeMap<&str, Loads>,
) -> fmt::Result {
    for (name, loads) in names {
        for phase in Phase::ALL {
            let load = loads.get(phase);
            let labels = [view.cluster, name, phase.name()];
            leaf.put(defs.jobs, &labels, count(load.jobs))?;
            leaf.put(defs.cpus, &labels, count(load.cpus))?;
            leaf.put(defs.gpus, &labels, count(load.gpus))?;
            if let Some(memory) = defs.memory {
                leaf.put(memory, &labels, count(load.memory))?;
            }
        }
    }
    Ok(())
}

/// `steward_partition_jobs`, and what they hold and ask for.
pub fn partitions(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(tally) = &view.tally else { return Ok(()) };
    let mut all = tally.partitions.clone();
    let known = view.snapshot.partitions.iter().flat_map(|seen| seen.what.iter());
    for partition in known {
        all.entry(Arc::clone(&partition.name)).or_default();
    }
    let (names, cut) = tally::top(&all, view.settings.limits.partitions);
    let defs = Group {
        jobs: &metric::PARTITION_JOBS,
        cpus: &metric::PARTITION_JOB_CPUS,
        gpus: &metric::PARTITION_JOB_GPUS,
        memory: None,
    };
    group(view, leaf, &defs, names)?;
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "partition"], count(cut))
}

/// Accounts with their jobs, and those that have none.
pub fn all_accounts(view: &View<'_>) -> Option<ByName> {
    let mut all = view.tally.as_ref()?.accounts.clone();
    for share in view.snapshot.shares.iter().flat_map(|seen| seen.what.iter()) {
        if share.user.is_none() && share.depth > 0 {
            all.entry(Arc::clone(&share.account)).or_default();
        }
    }
    Some(all)
}

/// `steward_account_…`.
pub fn accounts(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(all) = all_accounts(view) else { return Ok(()) };
    let (names, cut) = tally::top(&all, view.settings.limits.accounts);
    let defs = Group {
        jobs: &metric::ACCOUNT_JOBS,
        cpus: &metric::ACCOUNT_CPUS,
        gpus: &metric::ACCOUNT_GPUS,
        memory: Some(&metric::ACCOUNT_MEMORY),
    };
    group(view, leaf, &defs, names)?;
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "account"], count(cut))
}

/// `steward_user_…`.
pub fn users(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(tally) = &view.tally else { return Ok(()) };
    let (names, cut) = tally::top(&tally.users, view.settings.limits.users);
    let defs = Group {
        jobs: &metric::USER_JOBS,
        cpus: &metric::USER_CPUS,
        gpus: &metric::USER_GPUS,
        memory: Some(&metric::USER_MEMORY),
    };
    group(view, leaf, &defs, names)?;
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "user"], count(cut))
}
