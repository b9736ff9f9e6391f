//! What an evaluation found, for Prometheus.

use std::fmt;

use steward_common::exposition::{header, line};
use steward_common::metric::{MetricDef, rules};
use steward_common::rule::{Audience, Instance};

use crate::evaluate::{Judged, Judgement, Trouble, coverage};
use crate::output::findings::audience;

/// How many nodes are named.
const NODES: usize = 100;

/// Values of one metric, with their labels.
type Values<'a> = Vec<(Vec<&'a str>, f64)>;

/// A page about the last evaluation.
///
/// # Errors
/// Writing to a string does not fail.
pub fn page(
    judged: &[Judged],
    instances: &[Instance],
    troubles: &[Trouble],
) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let mut put = |def: &MetricDef, values: Values<'_>| -> fmt::Result {
        header(&mut out, def)?;
        values.iter().try_for_each(|(labels, value)| line(&mut out, def, labels, *value))
    };
    let of_clusters = |value: &dyn Fn(&Judged) -> Option<f64>| -> Values<'_> {
        let one = |judged| Some((vec![name(judged)], value(judged)?));
        judged.iter().filter_map(one).collect()
    };
    let of_rules = |value: &dyn Fn(&Judgement) -> Option<f64>| -> Values<'_> {
        let all = judged.iter().flat_map(|judged| {
            let judgements = instances.iter().zip(&judged.judgements);
            judgements.map(move |(instance, judgement)| (judged, instance, judgement))
        });
        all.filter_map(|(judged, instance, judgement)| {
            Some((vec![name(judged), instance.name.as_str()], value(judgement.as_ref()?)?))
        })
        .collect()
    };
    put(&rules::EVALUATE_JOBS, of_clusters(&|one| Some(count(one.gathered.facts.jobs().len()))))?;
    let measured: Vec<_> =
        judged.iter().map(|one| (one, coverage::by_partition(&one.gathered.facts))).collect();
    let measured = measured.iter().flat_map(|(one, shares)| {
        shares.iter().map(|((partition, kind), share)| {
            (vec![name(one), partition.as_str(), kind.name()], *share)
        })
    });
    put(&rules::EVALUATE_MEASURED, measured.collect())?;
    let of_all = troubles.iter().filter(|trouble| trouble.cluster.is_none()).count();
    let mut failed = of_clusters(&|one| {
        let of = |trouble: &&Trouble| trouble.cluster.as_ref() == Some(&one.gathered.facts.cluster);
        Some(count(troubles.iter().filter(of).count()))
    });
    failed.push((vec![""], count(of_all)));
    put(&rules::EVALUATE_TROUBLES, failed)?;
    put(
        &rules::NODES_WITHOUT_AGENT,
        of_clusters(&|one| one.gathered.silent.as_ref().map(|nodes| count(nodes.len()))),
    )?;
    let silent = judged.iter().flat_map(|one| {
        let nodes = one.gathered.silent.iter().flatten().take(NODES);
        nodes.map(|node| (vec![name(one), node.as_str()], 1.0))
    });
    put(&rules::NODE_WITHOUT_AGENT, silent.collect())?;
    put(&rules::RULE_BILLING_HOURS, of_rules(&waste))?;
    let mut findings = Vec::new();
    for told in [Audience::User, Audience::Administrators, Audience::Advice] {
        for (mut labels, value) in of_rules(&|judgement| Some(told_to(judgement, told))) {
            labels.push(audience(told));
            findings.push((labels, value));
        }
    }
    put(&rules::RULE_FINDINGS, findings)?;
    put(&rules::RULE_NO_DATA, of_rules(&|one| Some(one.unknown_count as f64)))?;
    Ok(out)
}

fn name(judged: &Judged) -> &str {
    judged.gathered.facts.cluster.as_str()
}

#[allow(clippy::cast_precision_loss, reason = "counts of things that fit into memory")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Billing hours, where they are known of any finding.
fn waste(judgement: &Judgement) -> Option<f64> {
    let known = judgement.findings.iter().filter_map(|(_, finding)| finding.billing_hours());
    known.reduce(|sum, more| sum + more)
}

fn told_to(judgement: &Judgement, told: Audience) -> f64 {
    let of = |audience| {
        let there = judgement.findings.iter().filter(|(_, found)| found.audience == audience);
        there.count()
    };
    let (users, administrators) = (count(of(Audience::User)), count(of(Audience::Administrators)));
    match told {
        Audience::User => users,
        Audience::Administrators => administrators,
        // Of advice only the worst is kept.
        Audience::Advice => judgement.found as f64 - users - administrators,
    }
}
