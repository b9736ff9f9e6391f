//! What is exported about clusters. It is written once per snapshot; a scrape gets the text.
//!
//! A family is a function from a [`View`] to lines of a [`Leaf`] and stands in [`FAMILIES`] with
//! its switch. To add one: its entries in the catalogue, the function, its line.

mod capacity;
mod constants;
mod jobs;
mod leaf;
mod mila;
mod nodes;
mod rest;
mod scheduler;
mod snapshots;
mod vpenso;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use steward_common::cluster::{Snapshot, Sums, Tally};
use steward_common::id::ClusterName;

use crate::config::Exporter;
use leaf::Leaf;

pub use constants::{Years, constants, years};
pub use snapshots::snapshots;

/// A snapshot with what several families count of it.
struct View<'a> {
    snapshot: &'a Snapshot,
    settings: &'a Exporter,
    /// The name of the cluster, the first label of everything.
    cluster: &'a str,
    sums: Option<Sums>,
    partitions: Option<BTreeMap<Arc<str>, Sums>>,
    tally: Option<Tally>,
}

/// Writes lines.
type Family = fn(&View<'_>, &mut Leaf) -> fmt::Result;

/// Whether a family is switched on.
type Switch = fn(&Exporter) -> bool;

/// Every family, with its switch.
const FAMILIES: &[(Switch, Family)] = &[
    (|settings| settings.families.accounts, jobs::accounts),
    (|settings| settings.families.cluster, capacity::cluster),
    (|settings| settings.families.fairshare, rest::fairshare),
    (|settings| settings.families.jobs, jobs::jobs),
    (|settings| settings.families.licences, rest::licences),
    (|settings| settings.families.limits, rest::limits),
    (|settings| settings.families.nodes, nodes::nodes),
    (|settings| settings.families.partitions, capacity::partitions),
    (|settings| settings.families.partitions, jobs::partitions),
    (|settings| settings.families.reservations, rest::reservations),
    (|settings| settings.families.scheduler, scheduler::scheduler),
    (|settings| settings.families.users, jobs::users),
    (|settings| settings.mila, mila::mila),
    (|settings| settings.vpenso, vpenso::vpenso),
];

fn write(snapshot: &Snapshot, settings: &Exporter) -> Result<Leaf, fmt::Error> {
    let view = View {
        snapshot,
        settings,
        cluster: snapshot.cluster.as_str(),
        sums: snapshot.sums(),
        partitions: snapshot.sums_by_partition(),
        tally: snapshot.jobs.as_ref().map(|jobs| Tally::of(&jobs.what)),
    };
    let mut leaf = Leaf::default();
    for (is_on, family) in FAMILIES {
        if is_on(settings) {
            family(&view, &mut leaf)?;
        }
    }
    Ok(leaf)
}

/// The text that scrapes get, and the leaf of each cluster that it is bound from.
#[derive(Debug)]
pub struct Exhibit {
    settings: Exporter,
    leaves: Mutex<BTreeMap<ClusterName, Leaf>>,
    /// Apart from the leaves, so that nobody waits for the binding of new ones.
    text: Mutex<Bytes>,
}

impl Exhibit {
    /// Nothing yet.
    #[must_use]
    pub fn new(settings: Exporter) -> Self {
        Self { settings, leaves: Mutex::default(), text: Mutex::default() }
    }

    /// Writes a snapshot, in the place of the one of this cluster before.
    ///
    /// # Errors
    /// Never, while memory lasts.
    pub fn show(&self, snapshot: &Snapshot) -> fmt::Result {
        let leaf = write(snapshot, &self.settings)?;
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        leaves.insert(snapshot.cluster.clone(), leaf);
        let text = leaf::bind(&leaves.values().collect::<Vec<_>>())?;
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
        Ok(())
    }

    /// What is exported of the last snapshots; sharing it costs nothing.
    #[must_use]
    pub fn text(&self) -> Bytes {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests;
