//! Who is told what in a run, and who is not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steward_common::time::Timestamp;

use super::digest::{Candidate, Digest};
use super::restraint::{Held, Restraint};
use crate::store::notices::Notice;

/// A finding that nobody is told of in this run.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldBack {
    /// Whose.
    pub user: String,
    /// The rule's instance.
    pub instance: String,
    /// Where.
    pub cluster: String,
    /// Why.
    pub why: Held,
}

/// A digest that is to be sent, with what the store must know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What the user is told.
    pub digest: Digest,
    /// For each item: the how manieth time it is.
    pub steps: Vec<u32>,
    /// For each item: for how long nobody hears of it again.
    pub quiet: Vec<Duration>,
    /// For each item: the accounts of its jobs.
    pub accounts: Vec<BTreeSet<String>>,
}

impl Planned {
    /// What the store is to remember.
    pub fn notices(&self, message: &str, at: Timestamp) -> Vec<(Notice, Duration)> {
        let items = self.digest.items.iter().zip(&self.steps).zip(&self.quiet);
        items
            .map(|((item, step), quiet)| {
                let notice = Notice {
                    instance: item.instance.clone(),
                    rule: item.rule.as_str().to_owned(),
                    user: self.digest.user.clone(),
                    cluster: item.cluster.clone(),
                    at,
                    step: *step,
                    jobs: Some(item.jobs.rows.len() as u64),
                    wasted: item.billing_hours,
                    message: message.to_owned(),
                };
                (notice, *quiet)
            })
            .collect()
    }

    /// Its items, each held back for the same reason.
    pub fn held(self, why: Held) -> impl Iterator<Item = HeldBack> {
        let user = self.digest.user;
        self.digest.items.into_iter().map(move |item| HeldBack {
            user: user.clone(),
            instance: item.instance,
            cluster: item.cluster,
            why: why.clone(),
        })
    }
}

/// What a run would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Who is told, the most waste first.
    pub planned: Vec<Planned>,
    /// Who is not.
    pub held: Vec<HeldBack>,
}

/// Decides on every candidate. `from` and `to` are the days that were looked at.
#[must_use]
pub fn plan(candidates: Vec<Candidate>, restraint: &Restraint<'_>, from: &str, to: &str) -> Plan {
    let mut held = Vec::new();
    let mut of_users: BTreeMap<String, Planned> = BTreeMap::new();
    for mut candidate in candidates {
        if let Some(why) = restraint.against(&candidate) {
            let Candidate { user, item, .. } = candidate;
            held.push(HeldBack { user, instance: item.instance, cluster: item.cluster, why });
            continue;
        }
        let memory = restraint.config.ladder.memory.0;
        let before = restraint.history.before(&candidate, memory, restraint.now);
        candidate.item.before = before;
        let planned = of_users.entry(candidate.user.clone()).or_insert_with(|| Planned {
            digest: Digest {
                user: candidate.user.clone(),
                from: from.to_owned(),
                to: to.to_owned(),
                items: Vec::new(),
            },
            steps: Vec::new(),
            quiet: Vec::new(),
            accounts: Vec::new(),
        });
        planned.steps.push(before.saturating_add(1));
        planned.quiet.push(restraint.quiet(&candidate.item.instance));
        planned.accounts.push(candidate.accounts);
        planned.digest.items.push(candidate.item);
    }
    let mut planned: Vec<Planned> = of_users.into_values().collect();
    planned.iter_mut().for_each(sort);
    planned.sort_by(|a, b| waste(b).total_cmp(&waste(a)));
    let most = restraint.config.most;
    let late = planned.split_off(most.min(planned.len()));
    held.extend(late.into_iter().flat_map(|late| late.held(Held::Most(most))));
    Plan { planned, held }
}

fn waste(planned: &Planned) -> f64 {
    planned.digest.items.iter().filter_map(|item| item.billing_hours).sum()
}

/// The most waste first.
fn sort(planned: &mut Planned) {
    let mut order: Vec<usize> = (0..planned.digest.items.len()).collect();
    let items = &planned.digest.items;
    let waste =
        |place: &usize| items.get(*place).and_then(|item| item.billing_hours).unwrap_or(-1.0);
    order.sort_by(|a, b| waste(b).total_cmp(&waste(a)));
    planned.digest.items = pick(&planned.digest.items, &order);
    planned.steps = pick(&planned.steps, &order);
    planned.quiet = pick(&planned.quiet, &order);
    planned.accounts = pick(&planned.accounts, &order);
}

fn pick<T: Clone>(of: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|place| of.get(*place).cloned()).collect()
}
