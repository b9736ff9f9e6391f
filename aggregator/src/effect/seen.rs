//! What one user wasted in a window, and in all windows before or after.

use std::collections::{BTreeMap, BTreeSet};

use steward_common::rule::{self, Instance, Portfolio, Subject, Verdict, Why};

use crate::evaluate::Gathered;

/// What was wasted: of what jobs held, the share that was of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waste {
    /// Billing hours; `None` where Slurm bills nothing, or does not say.
    pub billing: Option<f64>,
    /// CPU-hours.
    pub cpu_hours: f64,
    /// GPU-hours.
    pub gpu_hours: f64,
}

/// What a rule said of a user in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Whether there were jobs of the kind that it is about.
    jobs: bool,
    /// Whether too little was known of some of them.
    no_data: bool,
    /// Whether something was found.
    found: bool,
    /// Whether a finding had no billing hours.
    unbilled: bool,
    billing: f64,
    cpu_hours: f64,
    gpu_hours: f64,
}

/// By instance, cluster and user.
pub(super) type All = BTreeMap<(String, String, String), Seen>;

/// What these rules say of everybody.
pub(super) fn look(gathered: &[Gathered], instances: &[Instance], wanted: &BTreeSet<&str>) -> All {
    let mut all = All::new();
    for one in gathered {
        let facts = &one.facts;
        let cluster = facts.cluster.as_str();
        let about = |instance: &&Instance| {
            let clusters = &instance.scope.clusters;
            wanted.contains(instance.name.as_str())
                && (clusters.is_empty() || clusters.iter().any(|name| name == cluster))
        };
        for instance in instances.iter().filter(about) {
            let portfolio = Portfolio::new(facts, &instance.scope);
            rule::judge(&*instance.rule, &portfolio, |subject, verdict| {
                let (Subject::User { user, .. } | Subject::Job { user, .. }) = subject;
                let name = facts.names.text(user).to_owned();
                let key = (instance.name.clone(), cluster.to_owned(), name);
                let seen = all.entry(key).or_default();
                match verdict {
                    Verdict::NotApplicable(Why::NoSuchJobs) => {}
                    Verdict::Fine | Verdict::NotApplicable(_) => seen.jobs = true,
                    Verdict::NoData(_) => (seen.jobs, seen.no_data) = (true, true),
                    Verdict::Finding(finding) => {
                        (seen.jobs, seen.found) = (true, true);
                        for hit in &finding.hits {
                            let share = hit.wasted.map_or(0.0, |share| share.get());
                            if let Some(job) = facts.job(user, hit.job) {
                                seen.cpu_hours += share * job.cpu_hours();
                                seen.gpu_hours += share * job.gpu_hours();
                            }
                        }
                        match finding.billing_hours() {
                            Some(hours) => seen.billing += hours,
                            None => seen.unbilled = true,
                        }
                    }
                }
            });
        }
    }
    all
}

/// All windows before, or all after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Days of a window.
    each: u16,
    /// Windows.
    pub windows: u32,
    /// Those that the archive has.
    pub archived: u32,
    /// Those of which enough is known.
    pub known: u32,
    /// Those with jobs, of these.
    pub with_jobs: u32,
    /// Those in which there was nothing to tell, of these: less was wasted than the rule minds, and how
    /// much it does not say.
    pub within: u32,
    unbilled: bool,
    billing: f64,
    cpu_hours: f64,
    gpu_hours: f64,
}

impl Side {
    pub(super) fn new(each: u16) -> Side {
        Side {
            each,
            windows: 0,
            archived: 0,
            known: 0,
            with_jobs: 0,
            within: 0,
            unbilled: false,
            billing: 0.0,
            cpu_hours: 0.0,
            gpu_hours: 0.0,
        }
    }

    /// One more window; `None` if the archive does not have it.
    pub(super) fn add(&mut self, seen: Option<Seen>) {
        self.windows += 1;
        let Some(seen) = seen else { return };
        self.archived += 1;
        // What was wasted in part of it only would look like less.
        if seen.no_data {
            return;
        }
        self.known += 1;
        self.with_jobs += u32::from(seen.jobs);
        self.within += u32::from(seen.jobs && !seen.found);
        self.unbilled |= seen.unbilled;
        self.billing += seen.billing;
        self.cpu_hours += seen.cpu_hours;
        self.gpu_hours += seen.gpu_hours;
    }

    /// The days of which enough is known.
    #[must_use]
    pub fn days(&self) -> f64 {
        f64::from(self.known) * f64::from(self.each)
    }

    /// What was wasted in a day, as far as it was found; `None` if nothing is known.
    #[must_use]
    pub fn per_day(&self) -> Option<Waste> {
        let days = self.days();
        (self.known > 0).then(|| Waste {
            billing: (!self.unbilled).then_some(self.billing / days),
            cpu_hours: self.cpu_hours / days,
            gpu_hours: self.gpu_hours / days,
        })
    }
}
