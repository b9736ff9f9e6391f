//! What rules say of what was gathered.

use std::collections::BTreeMap;

use steward_common::rule::{
    self, Audience, Finding, Instance, Missing, Portfolio, Scope, Subject, Verdict,
};

use super::Gathered;

/// How many findings are kept of a rule that only advises on single jobs: those with the most waste.
const ADVICE: usize = 1000;

/// How many subjects of which too little is known are named, by rule.
const UNKNOWN: usize = 1000;

/// What a rule says of a cluster.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What it found, in the order of users and jobs.
    pub findings: Vec<(Subject, Finding)>,
    /// How many findings there were; more than are kept if they are advice on many jobs.
    pub found: u64,
    /// Of whom too little is known, and why; a thousand at most.
    pub unknown: Vec<(Subject, Missing)>,
    /// How many they are.
    pub unknown_count: u64,
    /// Of how many it says that all is well.
    pub fine: u64,
    /// To how many it does not apply.
    pub not_applicable: u64,
}

/// A cluster with what each rule says of it, in the order of the instances.
#[derive(Debug)]
pub struct Judged {
    /// What was known.
    pub gathered: Gathered,
    /// What each instance says; `None` for one that is not about this cluster.
    pub judgements: Vec<Option<Judgement>>,
}

/// Applies every rule.
#[must_use]
pub fn judge(gathered: Gathered, instances: &[Instance]) -> Judged {
    let cluster = gathered.facts.cluster.as_str();
    let about = |instance: &Instance| {
        let clusters = &instance.scope.clusters;
        clusters.is_empty() || clusters.iter().any(|name| name == cluster)
    };
    let mut judgements: Vec<Option<Judgement>> = instances.iter().map(|_| None).collect();
    // Choosing the jobs costs as much as judging them, so it is done once for all of a scope.
    let mut scopes: Vec<&Scope> = Vec::new();
    for instance in instances.iter().filter(|instance| about(instance)) {
        if !scopes.contains(&&instance.scope) {
            scopes.push(&instance.scope);
        }
    }
    for scope in scopes {
        let portfolio = Portfolio::new(&gathered.facts, scope);
        for (instance, judgement) in instances.iter().zip(&mut judgements) {
            if instance.scope == *scope && about(instance) {
                *judgement = Some(apply(&portfolio, instance));
            }
        }
    }
    Judged { gathered, judgements }
}

fn apply(portfolio: &Portfolio<'_>, instance: &Instance) -> Judgement {
    let mut judgement = Judgement::default();
    let mut advice = Advice::default();
    rule::judge(&*instance.rule, portfolio, |subject, verdict| match verdict {
        Verdict::Fine => judgement.fine += 1,
        Verdict::NotApplicable(_) => judgement.not_applicable += 1,
        Verdict::NoData(missing) => {
            judgement.unknown_count += 1;
            if judgement.unknown.len() < UNKNOWN {
                judgement.unknown.push((subject, missing));
            }
        }
        Verdict::Finding(finding) => {
            judgement.found += 1;
            if finding.audience == Audience::Advice {
                advice.keep(subject, finding);
            } else {
                judgement.findings.push((subject, finding));
            }
        }
    });
    judgement.findings.extend(advice.into_findings());
    judgement
}

/// The findings with the most waste, by waste and order of arrival.
#[derive(Default)]
struct Advice {
    kept: BTreeMap<(u64, std::cmp::Reverse<u64>), (Subject, Finding)>,
    next: u64,
}

impl Advice {
    fn keep(&mut self, subject: Subject, finding: Finding) {
        // Hours are not negative, and numbers that are not have bits in their order.
        let waste = finding.billing_hours().unwrap_or(0.0).max(0.0).to_bits();
        let key = (waste, std::cmp::Reverse(self.next));
        self.next += 1;
        if self.kept.len() >= ADVICE {
            if self.kept.first_key_value().is_some_and(|(least, _)| *least >= key) {
                return;
            }
            self.kept.pop_first();
        }
        self.kept.insert(key, (subject, finding));
    }

    /// In the order of arrival.
    fn into_findings(self) -> impl Iterator<Item = (Subject, Finding)> {
        let mut kept: Vec<_> = self.kept.into_iter().collect();
        kept.sort_by_key(|((_, arrival), _)| std::cmp::Reverse(*arrival));
        kept.into_iter().map(|(_, found)| found)
    }
}
