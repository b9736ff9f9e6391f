//! What rules found: the whole of an evaluation with every figure as JSON, and what it comes to as
//! tables.
//!
//! Amounts are in base units, which the keys name: `…_bytes`, `…_seconds`; shares are from 0 to 1.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use steward_common::rule::{
    Audience, Facts, Figure as Measured, Figures, Finding, Hit, Instance, Job, JobKey, Missing,
    Part, Subject, Value as Figure,
};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::findings::{self, Found, audience};
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide};
use crate::evaluate::{Judged, Judgement, Trouble};

/// All of it, a finding a line: it is put together piece by piece, because a million jobs have many.
#[must_use]
pub fn json(
    judged: &[Judged],
    instances: &[Instance],
    troubles: &[Trouble],
    notes: &[&str],
    notices: &Value,
    window: Window,
    zone: &TimeZone,
) -> String {
    let (from, to) = (moment(window.from(), zone), moment(window.to(), zone));
    let troubles: Value = troubles.iter().map(trouble).collect();
    let mut out = format!(
        "{{\"schema\":1,\"from\":{from},\"to\":{to},\"notes\":{},\"troubles\":{troubles},\"notices\":{notices},\"clusters\":",
        json!(notes)
    );
    list(&mut out, judged, |out, judged| cluster(out, judged, instances));
    out.push_str("}\n");
    out
}

/// A list of things that are written one after the other.
fn list<T>(
    out: &mut String,
    all: impl IntoIterator<Item = T>,
    mut one: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (place, item) in all.into_iter().enumerate() {
        out.push_str(if place == 0 { "\n" } else { ",\n" });
        one(out, item);
    }
    out.push(']');
}

/// A list of values.
fn values(out: &mut String, all: impl IntoIterator<Item = Value>) {
    list(out, all, |out, value| out.push_str(&value.to_string()));
}

/// A rule's line of the overview.
struct Line<'a> {
    cluster: &'a str,
    name: &'a str,
    told: [u64; 3],
    fine: u64,
    unknown: u64,
    waste: Option<f64>,
}

impl<'a> Line<'a> {
    fn new(cluster: &'a str, instance: &'a Instance, judgement: &Judgement) -> Line<'a> {
        let of = |audience| {
            let there = judgement.findings.iter().filter(|(_, found)| found.audience == audience);
            there.count() as u64
        };
        let (users, administrators) = (of(Audience::User), of(Audience::Administrators));
        let waste = judgement.findings.iter().filter_map(|(_, found)| found.billing_hours());
        Line {
            cluster,
            name: &instance.name,
            told: [users, administrators, judgement.found - users - administrators],
            fine: judgement.fine,
            unknown: judgement.unknown_count,
            waste: waste.reduce(|a, b| a + b),
        }
    }
}

/// What it comes to, for people.
#[must_use]
pub fn document(
    judged: &[Judged],
    instances: &[Instance],
    troubles: &[Trouble],
    notes: &[&str],
    window: Window,
    zone: &TimeZone,
) -> Document {
    let lines: Vec<Line<'_>> = judged
        .iter()
        .flat_map(|judged| {
            let cluster = judged.gathered.facts.cluster.as_str();
            instances.iter().zip(&judged.judgements).filter_map(move |(instance, judgement)| {
                Some(Line::new(cluster, instance, judgement.as_ref()?))
            })
        })
        .collect();
    let fields: &[Field<Line<'_>>] = &[
        (always("name", "Rule"), |line| Cell::text(line.name)),
        (drop(3, "cluster", "Cluster"), |line| Cell::text(line.cluster)),
        (always("users", "Users told"), |line| Cell::Count(line.told[0])),
        (drop(2, "administrators", "Admins told"), |line| Cell::Count(line.told[1])),
        (drop(2, "advice", "Advice"), |line| Cell::Count(line.told[2])),
        (drop(1, "fine", "Fine"), |line| Cell::Count(line.fine)),
        (always("no_data", "Unknown"), |line| Cell::Count(line.unknown)),
        (hide(1, "billing_hours_wasted", "Billing h"), |line| Cell::number(line.waste)),
    ];
    let mut overview = Sheet::new("rules", "Rules", fields, &lines);
    overview.top = 0;
    let jobs: usize = judged.iter().map(|judged| judged.gathered.facts.jobs().len()).sum();
    let text = |time| moment(time, zone).as_str().unwrap_or_default().to_owned();
    let mut headline =
        vec![format!("{jobs} jobs from {} to {}", text(window.from()), text(window.to()))];
    headline.extend(notes.iter().map(|note| (*note).to_owned()));
    headline.extend(troubles.iter().map(|trouble| format!("Not known: {trouble}")));
    Document {
        title: "Evaluation of rules".to_owned(),
        headline,
        facts: Vec::new(),
        sheets: [overview, unknown(judged, instances)]
            .into_iter()
            .chain(found(judged, instances))
            .collect(),
    }
}

/// Why rules could say nothing of some, and of how many.
fn unknown(judged: &[Judged], instances: &[Instance]) -> Sheet {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for one in judged {
        for (instance, judgement) in instances.iter().zip(&one.judgements) {
            let Some(judgement) = judgement else { continue };
            for (_, missing) in &judgement.unknown {
                *counts.entry((&instance.name, why(*missing))).or_default() += 1;
            }
            let named = judgement.unknown.len() as u64;
            let more = judgement.unknown_count - named;
            if more > 0 {
                *counts.entry((&instance.name, "not looked into: there are many")).or_default() +=
                    more;
            }
        }
    }
    let rows: Vec<((&str, &str), u64)> = counts.into_iter().collect();
    let fields: &[Field<((&str, &str), u64)>] = &[
        (always("rule", "Rule"), |row| Cell::text(row.0.0)),
        (always("why", "Why nothing is said"), |row| Cell::text(row.0.1)),
        (always("count", "Users or jobs"), |row| Cell::Count(row.1)),
    ];
    let mut sheet = Sheet::new("unknown", "Unknown", fields, &rows);
    sheet.top = 0;
    sheet
}

/// A table for each rule that found something to tell. Advice on single jobs is shown where no more
/// than one rule was asked for: there is too much of it.
fn found(judged: &[Judged], instances: &[Instance]) -> impl Iterator<Item = Sheet> {
    let alone = instances.len() == 1;
    instances.iter().enumerate().filter_map(move |(place, instance)| {
        let each = judged.iter().filter_map(|judged| {
            let findings = &judged.judgements.get(place)?.as_ref()?.findings;
            Some(Found { facts: &judged.gathered.facts, findings })
        });
        let each: Vec<Found<'_>> = each.collect();
        let told = |one: &Found<'_>| {
            one.findings.iter().any(|(_, finding)| alone || finding.audience != Audience::Advice)
        };
        let mut sheet = each.iter().any(told).then(|| findings::sheet(instance, &each))?;
        sheet.name = instance.name.clone().into();
        Some(sheet)
    })
}

fn trouble(trouble: &Trouble) -> Value {
    let cluster = trouble.cluster.as_ref().map(ToString::to_string);
    json!({ "cluster": cluster, "what": trouble.what, "why": trouble.why })
}

/// A moment as people of the site read it, with its distance from UTC.
fn moment(time: Timestamp, zone: &TimeZone) -> Value {
    let moment = jiff::Timestamp::from_second(time.get()).ok();
    let text = moment.map(|moment| moment.to_zoned(zone.clone()));
    json!(text.map(|zoned| zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()))
}

fn cluster(out: &mut String, judged: &Judged, instances: &[Instance]) {
    let facts = &judged.gathered.facts;
    let silent = judged.gathered.silent.as_ref();
    let silent = silent.map(|nodes| nodes.iter().map(ToString::to_string).collect::<Vec<_>>());
    let (name, jobs, silent) = (json!(facts.cluster.as_str()), facts.jobs().len(), json!(silent));
    out.push_str(&format!(
        "{{\"cluster\":{name},\"jobs\":{jobs},\"nodes_without_agent\":{silent},\"rules\":"
    ));
    let judgements = instances.iter().zip(&judged.judgements);
    let told = judgements.filter_map(|(instance, judgement)| Some((instance, judgement.as_ref()?)));
    list(out, told, |out, (instance, judgement)| rule(out, facts, instance, judgement));
    out.push('}');
}

fn rule(out: &mut String, facts: &Facts, instance: &Instance, judgement: &Judgement) {
    let (name, id) = (json!(instance.name), json!(instance.rule.id().as_str()));
    let Judgement { found, fine, not_applicable, unknown_count, .. } = judgement;
    out.push_str(&format!(
        "{{\"name\":{name},\"rule\":{id},\"found\":{found},\"fine\":{fine},\
         \"not_applicable\":{not_applicable},\"no_data\":{unknown_count},\"findings\":"
    ));
    values(out, judgement.findings.iter().map(|(subject, found)| finding(facts, *subject, found)));
    out.push_str(",\"unknown\":");
    values(out, judgement.unknown.iter().map(|(subject, why)| lacking(facts, *subject, *why)));
    out.push('}');
}

/// Whom or what something is about.
fn about(facts: &Facts, subject: Subject) -> Map<String, Value> {
    let text = |name| json!(facts.names.text(name));
    let pair = |key: &str, value: Value| (key.to_owned(), value);
    let (user, more) = match subject {
        Subject::User { user, part: Part::All } => (user, None),
        Subject::User { user, part: Part::Partition(name) } => {
            (user, Some(pair("partition", text(name))))
        }
        Subject::User { user, part: Part::JobName(name) } => {
            (user, Some(pair("job_name", text(name))))
        }
        Subject::Job { user, job } => (user, Some(pair("job_raw", json!(job.id.get())))),
    };
    [pair("user", text(user))].into_iter().chain(more).collect()
}

fn finding(facts: &Facts, subject: Subject, finding: &Finding) -> Value {
    let mut value = about(facts, subject);
    let user = match subject {
        Subject::User { user, .. } | Subject::Job { user, .. } => user,
    };
    let jobs: Vec<Value> =
        finding.hits.iter().map(|hit| job(facts, facts.job(user, hit.job), hit)).collect();
    let told = audience(finding.audience);
    value.insert("told".to_owned(), json!(told));
    value.insert("billing_hours_wasted".to_owned(), json!(finding.billing_hours()));
    value.insert("figures".to_owned(), figures(facts, &finding.figures));
    value.insert("jobs".to_owned(), json!(jobs));
    Value::Object(value)
}

fn job(facts: &Facts, job: Option<&Job>, hit: &Hit) -> Value {
    let text = |name| facts.names.text(name);
    let JobKey { id, submit } = hit.job;
    json!({
        "job": job.map_or_else(|| id.to_string(), Job::shown_id),
        "job_raw": id.get(),
        "submit_time": submit.get(),
        "job_name": job.map(|job| text(job.name)),
        "account": job.map(|job| text(job.account)),
        "partition": job.map(|job| text(job.partition)),
        "state": job.map(|job| job.state.name()),
        "measured": job.map(measured),
        "wasted": hit.wasted.map(steward_common::rule::Share::get),
        "billing_hours_wasted": hit.billing_hours,
        "figures": figures(facts, &hit.figures),
    })
}

/// Who measured what of a job, and how much of it he saw.
fn measured(job: &Job) -> Value {
    fn entry<T>(figure: Option<&Measured<T>>) -> Option<Value> {
        let Measured { origin, coverage, .. } = figure?;
        Some(json!({ "by": origin.name(), "coverage": coverage.get() }))
    }
    let usage = &job.usage;
    let all = [
        ("cpu", entry(usage.cpu_seconds.as_ref())),
        ("memory", entry(usage.peak_memory.as_ref())),
        ("nodes", entry(usage.nodes.as_deref())),
        ("gpus", entry(usage.gpus.as_deref())),
        ("processes", entry(usage.work.as_deref())),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn figures(facts: &Facts, figures: &Figures) -> Value {
    let entry = |(key, value): (&str, Figure)| {
        let unit = match value {
            Figure::Bytes(_) => "_bytes",
            Figure::Time(_) => "_seconds",
            _ => "",
        };
        let unit = if key.ends_with(unit) { "" } else { unit };
        let value = match value {
            Figure::Count(count) => json!(count),
            Figure::Number(number) | Figure::Share(number) => json!(number),
            Figure::Bytes(bytes) => json!(bytes.get()),
            Figure::Time(time) => json!(time.as_secs_f64()),
            Figure::Word(word) => json!(word),
            Figure::Name(name) => json!(facts.names.text(name)),
        };
        (format!("{key}{unit}"), value)
    };
    Value::Object(figures.iter().map(entry).collect())
}

fn lacking(facts: &Facts, subject: Subject, missing: Missing) -> Value {
    let mut value = about(facts, subject);
    value.insert("why".to_owned(), json!(why(missing)));
    if let Missing::Coverage { found, needed } = missing {
        value.insert("coverage".to_owned(), json!(found.get()));
        value.insert("coverage_needed".to_owned(), json!(needed.get()));
    }
    Value::Object(value)
}

/// Why nothing can be said, in words.
#[must_use]
pub fn why(missing: Missing) -> &'static str {
    match missing {
        Missing::Unmeasured => "nobody measured it",
        Missing::Coverage { .. } => "too little of it was seen",
        Missing::MoreThanHeld => "the figures contradict one another",
        Missing::Held => "Slurm does not say what was held",
        Missing::Hardware => "what its nodes have is not known",
        Missing::TimeLimit => "how long it may run is not known",
    }
}
