//! Reservations, licences, shares and limits of accounts.

use std::fmt;

use steward_common::metric::MetricDef;
use steward_common::metric::cluster as metric;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;

use super::View;
use super::leaf::{Leaf, count, flag};

#[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
fn seconds(moment: Timestamp) -> f64 {
    moment.get() as f64
}

/// A metric that is absent where there is no figure.
fn some(
    leaf: &mut Leaf,
    def: &'static MetricDef,
    labels: &[&str],
    value: Option<f64>,
) -> fmt::Result {
    value.map_or(Ok(()), |value| leaf.put(def, labels, value))
}

/// `steward_reservation_…`.
pub fn reservations(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let now = view.snapshot.taken_at;
    for one in view.snapshot.reservations.iter().flat_map(|seen| seen.what.iter()) {
        let labels = [view.cluster, &*one.name];
        leaf.put(&metric::RESERVATION_ACTIVE, &labels, flag(one.is_active(now)))?;
        some(leaf, &metric::RESERVATION_START, &labels, one.start.map(seconds))?;
        some(leaf, &metric::RESERVATION_END, &labels, one.end.map(seconds))?;
        some(leaf, &metric::RESERVATION_NODES, &labels, one.node_count.map(count))?;
        some(leaf, &metric::RESERVATION_CORES, &labels, one.core_count.map(count))?;
    }
    Ok(())
}

/// `steward_licences`.
pub fn licences(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    for one in view.snapshot.licences.iter().flat_map(|seen| seen.what.iter()) {
        for (class, value) in [("free", one.free()), ("reserved", one.reserved), ("used", one.used)]
        {
            leaf.put(&metric::LICENCES, &[view.cluster, &one.name, class], count(value))?;
        }
    }
    Ok(())
}

/// `steward_fairshare…`: all accounts, and as many users as may be. Associations for one partition
/// only would be the same series twice, and are left out.
pub fn fairshare(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let mut users = 0;
    let mut cut = 0;
    for one in view.snapshot.shares.iter().flat_map(|seen| seen.what.iter()) {
        if one.partition.is_some() {
            continue;
        }
        if one.user.is_some() {
            users += 1;
            if users > view.settings.limits.users {
                cut += 1;
                continue;
            }
        }
        let labels = [view.cluster, &*one.account, one.user.as_deref().unwrap_or("")];
        some(leaf, &metric::FAIRSHARE, &labels, one.fairshare)?;
        some(leaf, &metric::FAIRSHARE_LEVEL, &labels, one.level)?;
        some(leaf, &metric::FAIRSHARE_SHARES, &labels, one.raw_shares.map(count))?;
        some(leaf, &metric::FAIRSHARE_USAGE, &labels, one.raw_usage)?;
        some(leaf, &metric::FAIRSHARE_EFFECTIVE_USAGE, &labels, one.effective_usage)?;
    }
    leaf.put(&metric::SERIES_CUT, &[view.cluster, "fairshare"], count(cut))
}

/// `steward_account_limit_…`.
pub fn limits(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    for one in view.snapshot.limits.iter().flat_map(|seen| seen.what.iter()) {
        let labels = [view.cluster, &*one.account];
        let memory = one.memory.map(Bytes::get);
        for (def, value) in [
            (&metric::ACCOUNT_LIMIT_CPUS, one.cpus),
            (&metric::ACCOUNT_LIMIT_MEMORY, memory),
            (&metric::ACCOUNT_LIMIT_RUNNING, one.running),
            (&metric::ACCOUNT_LIMIT_SUBMITTED, one.submitted),
        ] {
            some(leaf, def, &labels, value.map(count))?;
        }
    }
    Ok(())
}
