//! What one user is told in one mail: all findings of a run.

use std::collections::{BTreeMap, BTreeSet};

use steward_common::rule::{Audience, Facts, Finding, Instance, Job, RuleId, Share, Subject};

use crate::evaluate::Judged;
use crate::output::findings::{self, Found};
use crate::output::sheet::{Place, Sheet};

/// A rule with a way of its own to tell people: see `cancel`.
const APART: &str = "cancel-zero-gpu-jobs";

/// All that a user is told at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Who.
    pub user: String,
    /// The first day that was looked at, `YYYY-MM-DD` in the site's zone,
    pub from: String,
    /// and the last.
    pub to: String,
    /// What was found, the most waste first.
    pub items: Vec<Item>,
}

/// One finding of a digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name of the rule's instance.
    pub instance: String,
    /// The rule.
    pub rule: RuleId,
    /// The cluster.
    pub cluster: String,
    /// Which jobs of the user, where the rule says it of a part of them.
    pub part: Option<String>,
    /// Its figures over all jobs: a sheet of one row, with the columns of the rule.
    pub totals: Sheet,
    /// The user's jobs, the worst first, with the columns of the rule.
    pub jobs: Sheet,
    /// Billing hours of no use, where that is known.
    pub billing_hours: Option<f64>,
    /// How often the user has heard of this before.
    pub before: u32,
}

/// A finding that its user could be told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Who.
    pub user: String,
    /// What.
    pub item: Item,
    /// The accounts of the jobs.
    pub accounts: BTreeSet<String>,
    /// How much of the jobs was measured; `None` where the rule needs no measurement.
    pub coverage: Option<f64>,
}

/// What users could be told, in the order of clusters, instances and users. A rule that speaks of
/// single jobs, or of several parts of a user's jobs, is one candidate for each user.
#[must_use]
pub fn candidates(judged: &[Judged], instances: &[Instance]) -> Vec<Candidate> {
    let mut all = Vec::new();
    for judged in judged {
        let facts = &judged.gathered.facts;
        for (instance, judgement) in instances.iter().zip(&judged.judgements) {
            let Some(judgement) = judgement else { continue };
            if instance.rule.id().as_str() == APART {
                continue;
            }
            let mut of_users: BTreeMap<&str, Vec<(Subject, Finding)>> = BTreeMap::new();
            for (subject, finding) in &judgement.findings {
                if finding.audience == Audience::User {
                    let user = facts.names.text(findings::owner(subject));
                    of_users.entry(user).or_default().push((*subject, finding.clone()));
                }
            }
            let told = of_users.into_iter();
            all.extend(told.map(|(user, found)| candidate(facts, instance, user, &found)));
        }
    }
    all
}

fn candidate(
    facts: &Facts,
    instance: &Instance,
    user: &str,
    found: &[(Subject, Finding)],
) -> Candidate {
    let found = Found { facts, findings: found };
    let jobs: Vec<&Job> = found
        .findings
        .iter()
        .flat_map(|(subject, finding)| {
            let owner = findings::owner(subject);
            finding.hits.iter().filter_map(move |hit| facts.job(owner, hit.job))
        })
        .collect();
    let item = Item {
        instance: instance.name.clone(),
        rule: instance.rule.id(),
        cluster: facts.cluster.as_str().to_owned(),
        part: None,
        totals: own(findings::sheet(instance, &[found])),
        jobs: own(findings::jobs(instance, &[found])),
        billing_hours: found.findings.iter().map(|(_, finding)| finding.billing_hours()).sum(),
        before: 0,
    };
    let accounts = jobs.iter().map(|job| facts.names.text(job.account).to_owned()).collect();
    Candidate { user: user.to_owned(), item, accounts, coverage: coverage(&jobs) }
}

/// A sheet that is about one user does not name him.
fn own(mut sheet: Sheet) -> Sheet {
    for column in &mut sheet.columns {
        if column.key == "user" {
            column.place = Place::Program;
        }
    }
    sheet
}

/// The share of these jobs, by their hours, that was measured; of several figures of a job the one
/// that was seen the least counts.
fn coverage(jobs: &[&Job]) -> Option<f64> {
    let (mut seen, mut held) = (0.0, 0.0);
    for job in jobs {
        let usage = &job.usage;
        let figures: [Option<Share>; 4] = [
            usage.cpu_seconds.as_ref().map(|figure| figure.coverage),
            usage.peak_memory.as_ref().map(|figure| figure.coverage),
            usage.gpus.as_ref().map(|figure| figure.coverage),
            usage.work.as_ref().map(|figure| figure.coverage),
        ];
        let least = figures.into_iter().flatten().map(Share::get).reduce(f64::min);
        if let Some(least) = least {
            seen += least * job.hours();
            held += job.hours();
        }
    }
    (held > 0.0).then(|| seen / held)
}
