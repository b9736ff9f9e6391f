//! What rules found, as sheets: a line for each finding, or for each job.
//!
//! Columns follow from the figures of the findings, so a new rule needs nothing here. For programs
//! the unit stands in the key: shares end in `_percent`, amounts of data in `_gib`, lengths of time
//! in `_hours`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use steward_common::intern::Name;
use steward_common::rule::{
    Audience, Facts, Figures, Finding, Hit, Instance, Job, JobKey, Missing, Part, Subject, Value,
};

use super::sheet::{Cell, Chart, Column, Place, Sheet, Tone, always, drop, hide, program};

/// How many jobs of a finding are named.
const NAMED: usize = 4;

/// What a rule found on one cluster.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The cluster.
    pub facts: &'a Facts,
    /// What was found there.
    pub findings: &'a [(Subject, Finding)],
}

/// A line for each finding; what wasted the most billing hours first.
#[must_use]
pub fn sheet(instance: &Instance, found: &[Found<'_>]) -> Sheet {
    let mut all: Vec<(&Facts, &Subject, &Finding)> = found
        .iter()
        .flat_map(|one| one.findings.iter().map(|(subject, finding)| (one.facts, subject, finding)))
        .collect();
    let first = |finding: &Finding| finding.figures.iter().find_map(|(_, value)| value.number());
    all.sort_by(|(_, _, a), (_, _, b)| {
        let order = |of: fn(&Finding) -> Option<f64>| {
            of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0))
        };
        order(Finding::billing_hours)
            .then_with(|| first(b).unwrap_or(-1.0).total_cmp(&first(a).unwrap_or(-1.0)))
    });
    let of_jobs = all.iter().any(|(_, subject, _)| matches!(subject, Subject::Job { .. }));
    let of_parts = all
        .iter()
        .any(|(_, subject, _)| matches!(subject, Subject::User { part, .. } if *part != Part::All));
    let figures = Shape::of(all.iter().map(|(facts, _, finding)| (*facts, &finding.figures)));
    let counted = figures.has("jobs") || of_jobs;
    let mut columns = vec![always("user", "User")];
    columns.extend(of_jobs.then(|| always("job", "Job")));
    columns.extend(of_parts.then(|| always("part", "Part")));
    columns.push(cluster_column(found));
    columns.extend(figures.columns());
    columns.push(always("billing_hours_wasted", "Billing h wasted"));
    columns.push(if counted { program("found_jobs") } else { drop(1, "found_jobs", "Jobs") });
    columns.push(if of_jobs { program("job_ids") } else { drop(2, "job_ids", "Job ids") });
    columns.push(program("audience"));
    let rows = all.iter().map(|(facts, subject, finding)| {
        let mut row = vec![Cell::text(facts.names.text(owner(subject)))];
        if of_jobs {
            row.push(match subject {
                Subject::Job { job, .. } => Cell::text(shown(facts, owner(subject), *job)),
                Subject::User { .. } => Cell::Missing,
            });
        }
        if of_parts {
            row.push(part(facts, subject));
        }
        row.push(Cell::text(facts.cluster.as_str()));
        row.extend(figures.cells(facts, &finding.figures));
        row.push(Cell::number(finding.billing_hours()));
        row.push(Cell::Count(finding.hits.len() as u64));
        row.push(Cell::text(ids(facts, owner(subject), finding)));
        row.push(Cell::text(audience(finding.audience)));
        row
    });
    finish(instance, "findings", columns, rows.collect())
}

/// A line for each job that was found; what wasted the most billing hours first.
#[must_use]
pub fn jobs(instance: &Instance, found: &[Found<'_>]) -> Sheet {
    let mut all: Vec<(&Facts, Name, &Hit, &Figures)> = Vec::new();
    for one in found {
        for (subject, finding) in one.findings {
            // Findings about a single job have their figures to themselves.
            let own = |hit: &Hit| hit.figures.iter().next().is_some();
            all.extend(finding.hits.iter().map(|hit| {
                (
                    one.facts,
                    owner(subject),
                    hit,
                    if own(hit) { &hit.figures } else { &finding.figures },
                )
            }));
        }
    }
    // The worst first, whoever's they are: people see the top.
    let waste = |hit: &Hit| hit.billing_hours.unwrap_or(-1.0);
    all.sort_by(|(_, _, a, _), (_, _, b, _)| waste(b).total_cmp(&waste(a)));
    let figures = Shape::of(all.iter().map(|(facts, _, _, figures)| (*facts, *figures)));
    let mut columns = vec![always("user", "User"), always("job", "Job"), cluster_column(found)];
    columns.push(drop(2, "partition", "Partition"));
    columns.push(drop(3, "state", "State"));
    columns.push(drop(30, "name", "Name"));
    columns.extend(figures.columns());
    columns.push(hide(1, "wasted_percent", "Wasted %"));
    columns.push(always("billing_hours_wasted", "Billing h wasted"));
    columns.push(program("submit_timestamp_seconds"));
    let rows = all.iter().map(|(facts, user, hit, of_hit)| {
        let job = facts.job(*user, hit.job);
        let text = |name: fn(&Job) -> Name| {
            job.map_or(Cell::Missing, |job| Cell::text(facts.names.text(name(job))))
        };
        let mut row = vec![text(|job| job.user), Cell::text(shown(facts, *user, hit.job))];
        row.push(Cell::text(facts.cluster.as_str()));
        row.push(text(|job| job.partition));
        row.push(job.map_or(Cell::Missing, |job| Cell::text(job.state.name())));
        row.push(text(|job| job.name));
        row.extend(figures.cells(facts, of_hit));
        row.push(Cell::share(hit.wasted.map(|wasted| wasted.get())));
        row.push(Cell::number(hit.billing_hours));
        row.push(Cell::Number(hit.job.submit.get() as f64));
        row
    });
    finish(instance, "jobs", columns, rows.collect())
}

/// Why too little is known of some, the most frequent reason first; `None` if enough is known of all.
#[must_use]
pub fn lacks<'a>(unknown: impl IntoIterator<Item = &'a (Subject, Missing)>) -> Option<String> {
    let mut reasons: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (_, missing) in unknown {
        *reasons.entry(lack(*missing)).or_default() += 1;
    }
    let mut reasons: Vec<(&str, u64)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let said: Vec<String> =
        reasons.into_iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn lack(missing: Missing) -> &'static str {
    match missing {
        Missing::Unmeasured => "nobody measured it",
        Missing::Coverage { .. } => "too little of it was seen",
        Missing::MoreThanHeld => "more was used than was held",
        Missing::Held => "what was held is not known",
        Missing::Hardware => "what the nodes have is not known",
        Missing::TimeLimit => "there is no time limit, or it is not known",
    }
}

fn finish(
    instance: &Instance,
    name: &'static str,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
) -> Sheet {
    let none: [&(); 0] = [];
    let mut sheet = Sheet::new(name, instance.name.clone(), &[], none);
    (sheet.columns, sheet.rows) = (columns, rows);
    let chart =
        Chart { title: "Billing hours wasted", key: "billing_hours_wasted", tone: Tone::Waste };
    // Bars have the names of users, and a user has one of them.
    let mut users = HashSet::new();
    let apart = sheet.rows.iter().all(|row| match row.first() {
        Some(Cell::Text(user)) => users.insert(user.clone()),
        _ => false,
    });
    sheet.charts = if apart { vec![chart] } else { Vec::new() };
    sheet.notes.extend(instance.rule.doc().lines().next().map(str::to_owned));
    sheet
}

/// For people only where there are several.
fn cluster_column(found: &[Found<'_>]) -> Column {
    if found.len() > 1 { drop(4, "cluster", "Cluster") } else { program("cluster") }
}

fn part(facts: &Facts, subject: &Subject) -> Cell {
    match subject {
        Subject::User { part: Part::Partition(name) | Part::JobName(name), .. } => {
            Cell::text(facts.names.text(*name))
        }
        _ => Cell::Missing,
    }
}

/// Who hears of a finding, in a word.
#[must_use]
pub fn audience(audience: Audience) -> &'static str {
    match audience {
        Audience::Advice => "advice",
        Audience::Administrators => "administrators",
        Audience::User => "user",
    }
}

/// The first ids, and how many more there are.
fn ids(facts: &Facts, user: Name, finding: &Finding) -> String {
    let named: Vec<String> =
        finding.hits.iter().take(NAMED).map(|hit| shown(facts, user, hit.job)).collect();
    match finding.hits.len().saturating_sub(NAMED) {
        0 => named.join(","),
        more => format!("{} +{more}", named.join(",")),
    }
}

/// Whose a finding is.
#[must_use]
pub fn owner(subject: &Subject) -> Name {
    let (Subject::User { user, .. } | Subject::Job { user, .. }) = subject;
    *user
}

/// The number of a job as people know it.
fn shown(facts: &Facts, user: Name, key: JobKey) -> String {
    facts.job(user, key).map_or_else(|| key.id.to_string(), Job::shown_id)
}

/// The figures that findings have, in the order in which they came up, each with its kind.
struct Shape(Vec<(&'static str, Value)>);

impl Shape {
    fn of<'a>(all: impl Iterator<Item = (&'a Facts, &'a Figures)>) -> Shape {
        let mut shape: Vec<(&'static str, Value)> = Vec::new();
        for (_, figures) in all {
            for (at, (key, value)) in figures.iter().enumerate() {
                if !shape.iter().any(|(known, _)| *known == key) {
                    shape.insert(at.min(shape.len()), (key, value));
                }
            }
        }
        Shape(shape)
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == key)
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        self.0.iter().zip(10u8..).map(|((key, kind), rank)| {
            let place = if rank < 12 { Place::Always } else { Place::Drop(rank) };
            let (key, head) = heading(key, *kind);
            Column { key: key.into(), head, place, may_hide: false }
        })
    }

    fn cells(&self, facts: &Facts, figures: &Figures) -> impl Iterator<Item = Cell> {
        self.0.iter().map(|(key, _)| figures.get(key).map_or(Cell::Missing, |v| cell(facts, v)))
    }
}

/// The key with its unit, and the head.
fn heading(key: &str, kind: Value) -> (String, Cow<'static, str>) {
    let (ending, unit) = match kind {
        Value::Share(_) => ("_percent", " %"),
        Value::Bytes(_) => ("_gib", ", GiB"),
        Value::Time(_) => ("_hours", ", h"),
        Value::Count(_) | Value::Number(_) | Value::Word(_) | Value::Name(_) => ("", ""),
    };
    let mut head = String::new();
    for word in key.split('_') {
        if !head.is_empty() {
            head.push(' ');
        }
        match word {
            "cpu" | "gpu" => head += &word.to_uppercase(),
            "cpus" => head += "CPUs",
            "gpus" => head += "GPUs",
            "gib" => head += "GiB",
            "mib" => head += "MiB",
            word if head.is_empty() => {
                let mut chars = word.chars();
                head.extend(chars.next().map(|first| first.to_ascii_uppercase()));
                head += chars.as_str();
            }
            word => head += word,
        }
    }
    (format!("{key}{ending}"), (head + unit).into())
}

fn cell(facts: &Facts, value: Value) -> Cell {
    match value {
        Value::Count(count) => Cell::Count(count),
        Value::Number(number) => Cell::number(Some(number)),
        Value::Share(share) => Cell::share(Some(share)),
        Value::Bytes(bytes) => Cell::Number(bytes.gib()),
        Value::Time(time) => Cell::Number(time.as_secs_f64() / 3600.0),
        Value::Word(word) => Cell::text(word),
        Value::Name(name) => Cell::text(facts.names.text(name)),
    }
}

#[cfg(test)]
mod tests;
