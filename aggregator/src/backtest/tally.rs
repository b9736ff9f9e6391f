//! What is kept of each step.

use std::collections::{BTreeMap, BTreeSet};

use steward_common::rule::{Audience, Finding, Instance, JobKey, Missing, Subject};
use steward_common::window::Window;

use crate::evaluate::Judged;

/// Whom it is about: cluster, user and instance.
type About = (String, String, String);

/// All that came of it.
#[derive(Debug, Default)]
pub struct Backtest {
    /// The steps, the oldest first.
    pub steps: Vec<Step>,
    told: BTreeMap<(About, Audience), Record>,
    unknown: BTreeMap<About, BTreeSet<usize>>,
    reasons: BTreeMap<(String, String, &'static str), (u64, BTreeSet<String>)>,
    /// What failed while the rest went on.
    pub troubles: BTreeSet<String>,
    /// Findings that are advice and too many to be kept.
    pub uncounted: u64,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The time that was looked at.
    pub window: Window,
    /// Whether the archive holds all of it.
    pub covered: bool,
    /// Jobs that were looked at.
    pub jobs: u64,
    /// Users who would have been told.
    pub users: u64,
    /// Users of whom only administrators would have been told.
    pub admins: u64,
    /// Users with nothing but advice.
    pub advice: u64,
    /// Users or jobs of which too little was known.
    pub unknown: u64,
}

#[derive(Debug, Default)]
struct Record {
    steps: BTreeSet<usize>,
    /// A job is counted once, however many steps it is in.
    jobs: BTreeMap<JobKey, Option<f64>>,
}

/// A user who would have been told by a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The cluster.
    pub cluster: String,
    /// The user.
    pub user: String,
    /// The instance.
    pub rule: String,
    /// Who would have heard of it.
    pub audience: Audience,
    /// The places of the steps.
    pub steps: Vec<usize>,
    /// The places of the steps at which too little was known of the user.
    pub unknown: Vec<usize>,
    /// Different jobs that it was about.
    pub jobs: u64,
    /// Billing hours of them that were of no use; `None` unless they are known of every job.
    pub billing_hours: Option<f64>,
}

/// How often too little was known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The cluster.
    pub cluster: String,
    /// The instance.
    pub rule: String,
    /// Why.
    pub why: &'static str,
    /// How often, over all steps.
    pub times: u64,
    /// Of whom, as far as they are named.
    pub users: Vec<String>,
}

/// A step that is being judged.
pub(super) struct Open<'a> {
    backtest: &'a mut Backtest,
    window: Window,
    covered: bool,
    best: BTreeMap<(String, String), Audience>,
    unknown: u64,
}

impl Backtest {
    pub(super) fn step(&mut self, window: Window, covered: bool) -> Open<'_> {
        Open { backtest: self, window, covered, best: BTreeMap::new(), unknown: 0 }
    }

    /// Who would have been told: users first, the most often first.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        let mut told: Vec<Told> = self
            .told
            .iter()
            .map(|((about, audience), record)| {
                let (cluster, user, rule) = about.clone();
                let unknown = self.unknown.get(about).into_iter().flatten().copied();
                Told {
                    cluster,
                    user,
                    rule,
                    audience: *audience,
                    steps: record.steps.iter().copied().collect(),
                    unknown: unknown.collect(),
                    jobs: record.jobs.len() as u64,
                    billing_hours: record.jobs.values().copied().sum(),
                }
            })
            .collect();
        told.sort_by_key(|one| {
            (std::cmp::Reverse(one.audience), std::cmp::Reverse(one.steps.len()))
        });
        told
    }

    /// What could not be judged.
    #[must_use]
    pub fn unknown(&self) -> Vec<Unknown> {
        let all = self.reasons.iter().map(|((cluster, rule, why), (times, users))| Unknown {
            cluster: cluster.clone(),
            rule: rule.clone(),
            why,
            times: *times,
            users: users.iter().cloned().collect(),
        });
        all.collect()
    }
}

impl Open<'_> {
    /// Counts what the rules say of a cluster; of one user only, if one is named.
    pub fn add(&mut self, judged: &Judged, instances: &[Instance], only: Option<&str>) {
        let facts = &judged.gathered.facts;
        let place = self.backtest.steps.len();
        let wanted = |subject: &Subject| {
            let name = match subject {
                Subject::User { user, .. } | Subject::Job { user, .. } => facts.names.text(*user),
            };
            only.is_none_or(|only| only == name).then(|| name.to_owned())
        };
        for (instance, judgement) in instances.iter().zip(&judged.judgements) {
            let Some(judgement) = judgement else { continue };
            let about = |user: String| (facts.cluster.to_string(), user, instance.name.clone());
            for (subject, finding) in &judgement.findings {
                if let Some(user) = wanted(subject) {
                    self.tell(about(user), place, finding);
                }
            }
            let (mut named, mut mine) = (0, 0);
            for (subject, missing) in &judgement.unknown {
                named += 1;
                let Some(user) = wanted(subject) else { continue };
                mine += 1;
                let (cluster, user, rule) = about(user);
                let reason = (cluster.clone(), rule.clone(), reason(*missing));
                let (times, users) = self.backtest.reasons.entry(reason).or_default();
                *times += 1;
                users.insert(user.clone());
                self.backtest.unknown.entry((cluster, user, rule)).or_default().insert(place);
            }
            // Beyond a thousand they are counted, not named.
            let more = judgement.unknown_count.saturating_sub(named);
            if only.is_none() && more > 0 {
                let (cluster, _, rule) = about(String::new());
                let reason = (cluster, rule, "more, not named");
                self.backtest.reasons.entry(reason).or_default().0 += more;
                mine += more;
            }
            self.unknown += mine;
            let kept = judgement.findings.len() as u64;
            self.backtest.uncounted += judgement.found.saturating_sub(kept);
        }
    }

    fn tell(&mut self, about: About, place: usize, finding: &Finding) {
        let person = (about.0.clone(), about.1.clone());
        let best = self.best.entry(person).or_insert(finding.audience);
        *best = finding.audience.max(*best);
        let record = self.backtest.told.entry((about, finding.audience)).or_default();
        record.steps.insert(place);
        record.jobs.extend(finding.hits.iter().map(|hit| (hit.job, hit.billing_hours)));
    }

    /// Ends the step.
    pub fn close(self, jobs: u64) {
        let count = |audience: Audience| {
            self.best.values().filter(|best| **best == audience).count() as u64
        };
        let step = Step {
            window: self.window,
            covered: self.covered,
            jobs,
            users: count(Audience::User),
            admins: count(Audience::Administrators),
            advice: count(Audience::Advice),
            unknown: self.unknown,
        };
        self.backtest.steps.push(step);
    }
}

/// Why nothing can be said, in a few words.
fn reason(missing: Missing) -> &'static str {
    match missing {
        Missing::Unmeasured => "nobody measured it",
        Missing::Coverage { .. } => "too little of it was measured",
        Missing::MoreThanHeld => "more was used than was held",
        Missing::Held => "the accounting does not say what was held",
        Missing::Hardware => "what its nodes have is not in the archive",
        Missing::TimeLimit => "its time limit is not in the archive, or there is none",
    }
}
