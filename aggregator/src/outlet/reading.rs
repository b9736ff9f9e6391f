//! What an evaluation says to others: what it found, and of what it is sure that it is not there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use steward_common::rule::{Audience, Facts, Finding, Instance, Job, Part, Subject};

use crate::evaluate::{Judged, Judgement, Trouble};
use crate::output::findings::{self, Found as Shown};
use crate::output::json;
use crate::output::number;
use crate::output::plain::visible;
use crate::output::sheet::{Cell, Place};
use crate::store::alerts::AlertKey;

/// A finding that others are told of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// What makes it the same in the next run.
    pub(super) key: AlertKey,
    /// What is told of it: `labels` and `annotations` for an Alertmanager, `what` for webhooks.
    pub(super) told: Value,
}

/// What an evaluation found of one cluster, or could not find out.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cluster {
    /// Whether something could not be asked, so that what was not found may be there all the same.
    troubled: bool,
    /// By instance: of whom too little is known, by user and part; `None` if of too many to name.
    unknown: BTreeMap<String, Option<BTreeSet<(String, String)>>>,
}

/// What an evaluation says to others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub(super) found: Vec<Found>,
    clusters: BTreeMap<String, Cluster>,
    /// The instances that were looked at.
    looked: BTreeSet<String>,
}

impl Reading {
    /// Of what was judged. Advice is for the page of a job and is told nobody.
    #[must_use]
    pub fn of(judged: &[Judged], instances: &[Instance], troubles: &[Trouble]) -> Reading {
        let mut reading = Reading {
            looked: instances.iter().map(|instance| instance.name.clone()).collect(),
            ..Reading::default()
        };
        for one in judged {
            let facts = &one.gathered.facts;
            let mut cluster = Cluster {
                troubled: troubles.iter().any(|trouble| is_about(trouble, facts)),
                ..Cluster::default()
            };
            for (instance, judgement) in instances.iter().zip(&one.judgements) {
                let Some(judgement) = judgement else { continue };
                reading.found.extend(
                    judgement
                        .findings
                        .iter()
                        .filter(|(_, finding)| finding.audience != Audience::Advice)
                        .map(|(subject, finding)| found(facts, instance, subject, finding)),
                );
                cluster.unknown.insert(instance.name.clone(), unknown(facts, judgement));
            }
            reading.clusters.insert(facts.cluster.as_str().to_owned(), cluster);
        }
        reading.found.sort_by(|a, b| a.key.cmp(&b.key));
        reading.found.dedup_by(|a, b| a.key == b.key);
        reading
    }

    /// Whether it is sure that this does not hold any more, given that it was not found. A cluster
    /// that was not asked in full, and a verdict for want of figures, say nothing.
    pub(super) fn is_gone(&self, key: &AlertKey) -> bool {
        if !self.looked.contains(&key.instance) {
            return false;
        }
        let Some(cluster) = self.clusters.get(&key.cluster) else { return false };
        if cluster.troubled {
            return false;
        }
        match cluster.unknown.get(&key.instance) {
            // The rule is not about this cluster any more.
            None => true,
            Some(None) => false,
            Some(Some(unknown)) => {
                let is_unknown =
                    |part: &str| unknown.contains(&(key.user.clone(), part.to_owned()));
                !is_unknown(&key.part) && !is_unknown("")
            }
        }
    }
}

/// Whether a trouble means that something of the cluster may be missing. What a node's agent did not
/// say makes verdicts that say so.
fn is_about(trouble: &Trouble, facts: &Facts) -> bool {
    let of_node = trouble.what.starts_with("node ");
    trouble.cluster.as_ref().is_none_or(|name| *name == facts.cluster) && !of_node
}

fn unknown(facts: &Facts, judgement: &Judgement) -> Option<BTreeSet<(String, String)>> {
    let all = judgement.unknown_count <= judgement.unknown.len() as u64;
    let one = |subject: &Subject| (owner(facts, subject).to_owned(), part(facts, subject));
    all.then(|| judgement.unknown.iter().map(|(subject, _)| one(subject)).collect())
}

fn owner<'a>(facts: &'a Facts, subject: &Subject) -> &'a str {
    let (Subject::User { user, .. } | Subject::Job { user, .. }) = subject;
    facts.names.text(*user)
}

/// Which of the user's jobs, as a text that is the same in the next run.
fn part(facts: &Facts, subject: &Subject) -> String {
    let text = match subject {
        Subject::User { part: Part::All, .. } => return String::new(),
        Subject::User { part: Part::Partition(name), .. } => {
            format!("partition {}", facts.names.text(*name))
        }
        Subject::User { part: Part::JobName(name), .. } => {
            format!("name {}", facts.names.text(*name))
        }
        Subject::Job { job, .. } => format!("job {} {}", job.id, job.submit.get()),
    };
    // PostgreSQL takes every character but this.
    text.replace('\0', "\u{fffd}")
}

fn found(facts: &Facts, instance: &Instance, subject: &Subject, finding: &Finding) -> Found {
    let user = owner(facts, subject);
    let key = AlertKey {
        cluster: facts.cluster.as_str().to_owned(),
        instance: instance.name.clone(),
        user: user.replace('\0', "\u{fffd}"),
        part: part(facts, subject),
    };
    let rule = instance.rule.id().as_str();
    let mut labels = Map::new();
    let mut label = |name: &str, value: &str| labels.insert(name.to_owned(), json!(value));
    label("alertname", &instance.name);
    label("rule", rule);
    label("cluster", &key.cluster);
    label("user", user);
    label("severity", severity(finding.audience));
    let name = match subject {
        Subject::User { part: Part::All, .. } => None,
        Subject::User { part: Part::Partition(name), .. } => Some(("partition", *name)),
        Subject::User { part: Part::JobName(name), .. } => Some(("job_name", *name)),
        Subject::Job { user, job } => {
            let shown = facts.job(*user, *job).map_or_else(|| job.id.to_string(), Job::shown_id);
            label("job", &shown);
            None
        }
    };
    if let Some((kind, name)) = name {
        label(kind, facts.names.text(name));
    }
    let one = [(*subject, finding.clone())];
    let sheet = findings::sheet(instance, &[Shown { facts, findings: &one }]);
    let title = instance.rule.doc().lines().next().unwrap_or(rule);
    let mut annotations = Map::new();
    let mut annotate =
        |name: &str, value: String| annotations.insert(name.to_owned(), json!(value));
    annotate("summary", visible(&format!("{user} on {}: {title}", key.cluster)));
    annotate("description", description(&sheet.columns, &sheet.rows));
    if let Some(hours) = finding.billing_hours() {
        annotate("billing_hours", number::exact(hours).to_string());
    }
    let mut what = match json::rows(&sheet, None) {
        Value::Array(mut rows) if !rows.is_empty() => rows.swap_remove(0),
        other => other,
    };
    if let Value::Object(what) = &mut what {
        what.insert("instance".to_owned(), json!(instance.name));
        what.insert("rule".to_owned(), json!(rule));
    }
    Found { key, told: json!({ "labels": labels, "annotations": annotations, "what": what }) }
}

fn severity(audience: Audience) -> &'static str {
    if audience == Audience::User { "warning" } else { "info" }
}

/// The figures in a line for people.
fn description(columns: &[crate::output::sheet::Column], rows: &[Vec<Cell>]) -> String {
    let row = rows.first().map(Vec::as_slice).unwrap_or_default();
    let said = columns.iter().zip(row).filter(|(column, _)| column.place != Place::Program);
    let words = said.filter_map(|(column, cell)| {
        let value = match cell {
            Cell::Missing => return None,
            Cell::Text(text) => visible(text),
            Cell::Count(count) => number::grouped(&count.to_string()),
            Cell::Number(value) => number::hours(*value),
            Cell::Share(share) => number::hours(share * 100.0),
        };
        Some(format!("{}: {value}", column.head))
    });
    words.collect::<Vec<_>>().join("; ")
}
