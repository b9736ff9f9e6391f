//! `steward report`: from what is known of jobs to the tables of a report or of a rule.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use steward_common::cluster;
use steward_common::id::ClusterName;
use steward_common::report::{self, Ask, Needs, Prices, REPORTS, Report, View};
use steward_common::rule::{Gathering, Hardware, Instance};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::archive::Archive;
use crate::command::BadInput;
use crate::config::{Config, Cost};
use crate::evaluate::{
    Gathered, Judged, Judgement, Runs, Sources, Trouble, Troubles, gather, gather_runs, judge,
};
use crate::output::findings::{self, Found};
use crate::output::number::counted;
use crate::output::plain;
use crate::output::sheet::{Cell, Document, Field, Sheet, always, program};
use crate::output::tables;
use crate::shutdown::Shutdown;

/// Between two columns of a list, and what its second one has at least.
const GAP: usize = 2;
const LEAST: usize = 20;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// A report, a rule or an instance of one.
    pub name: String,
    /// The time.
    pub window: Window,
    /// The present.
    pub now: Timestamp,
    /// These clusters, or all.
    pub clusters: Vec<ClusterName>,
    /// Jobs in these partitions, or all.
    pub partitions: Vec<String>,
    /// How long jobs of the queue must have waited.
    pub waited: Duration,
    /// Of a rule: a line for each job.
    pub jobs: bool,
    /// Whether slurmctld and Prometheus are asked.
    pub live: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[error("No jobs from {from} to {to}{only}; `steward collect` brings jobs into the archive")]
pub struct NoJobs {
    from: String,
    to: String,
    only: String,
}

/// What a name stands for.
enum Subject {
    Report(&'static Report),
    Rule(Box<Instance>),
}

/// Everything that a report is made with.
pub struct Desk<'a> {
    /// Settings.
    pub config: &'a Arc<Config>,
    /// Ended jobs.
    pub archive: &'a Archive,
    /// The time zone of times in sentences.
    pub zone: TimeZone,
    /// When to stop.
    pub shutdown: &'a Shutdown,
}

impl Desk<'_> {
    /// The report.
    ///
    /// # Errors
    /// If there is no such report, the archive cannot be read, or there are no jobs.
    pub fn document(
        &self,
        question: &Question,
        troubles: &mut Vec<Trouble>,
    ) -> anyhow::Result<Document> {
        match self.find(question)? {
            Subject::Report(report) => self.report(report, question, troubles),
            Subject::Rule(instance) => self.rule(&instance, question, troubles),
        }
    }

    fn find(&self, question: &Question) -> anyhow::Result<Subject> {
        let name = question.name.as_str();
        if let Some(report) = report::find(name) {
            if report.needs == Needs::Queue && !question.live {
                let why = format!("{name} is about the queue of this moment: leave out --no-live");
                return Err(BadInput(why).into());
            }
            return Ok(Subject::Report(report));
        }
        let instances = self.config.rules.instances()?;
        if let Some(instance) = instances.into_iter().find(|instance| instance.name == name) {
            let instance = narrow(instance, &question.partitions).ok_or_else(|| {
                BadInput(format!("{name} is not about jobs in these partitions (rules.{name})"))
            })?;
            return Ok(Subject::Rule(Box::new(instance)));
        }
        let off = self.config.rules.disabled().any(|known| known == name);
        let why = if off {
            format!("{name} is switched off: set rules.{name}.enabled to true")
        } else {
            format!("there is no report or rule {name:?}; `steward report` lists them")
        };
        Err(BadInput(why).into())
    }

    fn gather(
        &self,
        question: &Question,
        needs: Needs,
        troubles: &mut Vec<Trouble>,
    ) -> anyhow::Result<Vec<Gathered>> {
        let snapshots = if question.live {
            gather::snapshots(self.config, &question.clusters, self.shutdown, troubles)
        } else {
            Vec::new()
        };
        let measured = matches!(needs, Needs::Measurements | Needs::Findings)
            && question.live
            && self.config.prometheus.url.is_some();
        let sources = Sources {
            config: self.config,
            archive: self.archive,
            snapshots: &snapshots,
            now: question.now,
            measured,
        };
        // Rules judge running jobs by what is true of them now.
        let runs = if needs == Needs::Findings { Runs::Ended } else { Runs::All };
        gather_runs(&sources, question.window, &question.clusters, runs, troubles)
    }

    /// The queues alone, for which the archive is not read. A queue that is not known is no empty
    /// one.
    fn queues(
        &self,
        question: &Question,
        troubles: &mut Vec<Trouble>,
    ) -> anyhow::Result<Vec<Gathered>> {
        let snapshots = gather::snapshots(self.config, &question.clusters, self.shutdown, troubles);
        let mut queues = Vec::new();
        for snapshot in snapshots {
            let cluster = snapshot.cluster.clone();
            if snapshot.jobs.is_none() {
                let asked = snapshot.asked.get(&cluster::Question::Jobs);
                let why = asked.and_then(|asked| asked.error.as_deref()).unwrap_or("no answer");
                Troubles::of(Some(&cluster), troubles).add("slurmctld (jobs)", why);
                continue;
            }
            let (window, now) = (question.window, question.now);
            let facts = Gathering::new(cluster, window, now, Hardware::default()).finish();
            queues.push(Gathered { facts, snapshot: Some(snapshot), silent: None });
        }
        match troubles.first() {
            Some(trouble) if queues.is_empty() => {
                anyhow::bail!("The queue is not known: {trouble}; `steward doctor` looks into it")
            }
            _ => Ok(queues),
        }
    }

    fn report(
        &self,
        report: &Report,
        question: &Question,
        troubles: &mut Vec<Trouble>,
    ) -> anyhow::Result<Document> {
        let gathered = match report.needs {
            Needs::Queue => self.queues(question, troubles)?,
            needs => self.gather(question, needs, troubles)?,
        };
        let ask = Ask {
            partitions: question.partitions.clone(),
            waited: question.waited,
            prices: prices(&self.config.cost),
            ..Ask::default()
        };
        if report.needs != Needs::Queue {
            self.some_jobs(&gathered, question, &ask)?;
        }
        let mut instances = Vec::new();
        if report.needs == Needs::Findings {
            let all = self.config.rules.instances()?.into_iter();
            instances.extend(all.filter_map(|one| narrow(one, &question.partitions)));
        }
        let judged: Vec<Judged> =
            gathered.into_iter().map(|gathered| judge(gathered, &instances)).collect();
        let views: Vec<View<'_>> = judged.iter().map(|one| view(one, &instances)).collect();
        let tables = (report.make)(&views, &ask);
        let sheets: Vec<Sheet> = tables.into_iter().map(tables::sheet).collect();
        let when = match report.needs {
            Needs::Queue => format!("{}{}", self.clock(question.now), in_brackets(question)),
            _ => self.when(question),
        };
        let mut headline = vec![format!("{}, {when}.", question.name)];
        if sheets.iter().all(|sheet| sheet.rows.is_empty()) {
            headline.push(match report.needs {
                Needs::Queue => {
                    let days = question.waited.as_secs_f64() / 86_400.0;
                    format!("No job has waited for {days} days or more.")
                }
                Needs::Findings => "Rules found no waste.".to_owned(),
                _ => "There is nothing to show.".to_owned(),
            });
        }
        headline.extend(self.unmeasured(question, report.needs));
        Ok(self.finish(question, headline, sheets))
    }

    fn rule(
        &self,
        instance: &Instance,
        question: &Question,
        troubles: &mut Vec<Trouble>,
    ) -> anyhow::Result<Document> {
        let gathered = self.gather(question, Needs::Findings, troubles)?;
        let ask = Ask { partitions: question.partitions.clone(), ..Ask::default() };
        self.some_jobs(&gathered, question, &ask)?;
        let instances = std::slice::from_ref(instance);
        let judged: Vec<Judged> =
            gathered.into_iter().map(|gathered| judge(gathered, instances)).collect();
        let judgements = || judged.iter().flat_map(|one| one.judgements.iter().flatten());
        let found: Vec<Found<'_>> = judged
            .iter()
            .map(|one| {
                let judgement = one.judgements.first().and_then(Option::as_ref);
                let findings = judgement.map_or(&[][..], |judgement| &judgement.findings);
                Found { facts: &one.gathered.facts, findings }
            })
            .collect();
        let sheet = if question.jobs {
            findings::jobs(instance, &found)
        } else {
            findings::sheet(instance, &found)
        };
        let sum = |of: fn(&Judgement) -> u64| judgements().map(of).sum::<u64>();
        let (count, kept) = (sum(|one| one.found), sum(|one| one.findings.len() as u64));
        let mut headline = vec![format!(
            "{}, {}: {} (fine: {}, too little known: {}, not applicable: {}).",
            instance.name,
            self.when(question),
            counted(count, "finding"),
            sum(|one| one.fine),
            sum(|one| one.unknown_count),
            sum(|one| one.not_applicable),
        )];
        if let Some(why) = findings::lacks(judgements().flat_map(|one| &one.unknown)) {
            headline.push(format!("Too little is known because: {why}."));
        }
        if kept < count {
            headline.push(format!("The {kept} with the most waste are listed."));
        }
        headline.extend(self.unmeasured(question, Needs::Findings));
        Ok(self.finish(question, headline, vec![sheet]))
    }

    /// Refuses a window in which nobody held anything.
    fn some_jobs(
        &self,
        gathered: &[Gathered],
        question: &Question,
        ask: &Ask,
    ) -> Result<(), NoJobs> {
        let any = |one: &Gathered| report::held::jobs(&one.facts, ask).next().is_some();
        if gathered.iter().any(any) {
            return Ok(());
        }
        let [from, to] =
            [question.window.from(), question.window.to()].map(|time| self.clock(time));
        Err(NoJobs { from, to, only: in_brackets(question) })
    }

    /// Who is not asked although the report would say more with it.
    fn unmeasured(&self, question: &Question, needs: Needs) -> Option<String> {
        let wanted = matches!(needs, Needs::Measurements | Needs::Findings) && question.live;
        let unset = self.config.prometheus.url.is_none();
        (wanted && unset).then(|| {
            "prometheus.url is not set: what agents and GPU exporters measured is not known."
                .to_owned()
        })
    }

    fn clock(&self, time: Timestamp) -> String {
        jiff::Timestamp::from_second(time.get()).map_or_else(
            |_| time.to_string(),
            |time| time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
        )
    }

    fn when(&self, question: &Question) -> String {
        let [from, to] =
            [question.window.from(), question.window.to()].map(|time| self.clock(time));
        format!("{from} to {to}{}", in_brackets(question))
    }

    fn finish(&self, question: &Question, headline: Vec<String>, sheets: Vec<Sheet>) -> Document {
        let seconds = |time: Timestamp| Cell::Number(time.get() as f64);
        Document {
            title: format!("{}, {}", question.name, self.when(question)),
            headline,
            facts: vec![
                ("report", Cell::text(&question.name)),
                ("from_timestamp_seconds", seconds(question.window.from())),
                ("to_timestamp_seconds", seconds(question.window.to())),
                ("time_zone", Cell::text(self.zone.iana_name().unwrap_or("UTC offset"))),
                ("only", only(question).map_or(Cell::Missing, Cell::text)),
            ],
            sheets,
        }
    }
}

/// The reports and the rules that hold, a line each. Of lines that do not fit into `width`, what is
/// said is cut, never the name.
///
/// # Errors
/// If the settings of a rule make no sense.
pub fn list(config: &Config, width: Option<usize>) -> anyhow::Result<Document> {
    type Line = (String, &'static str, String);
    let mut lines: Vec<Line> = Vec::new();
    for (name, report) in REPORTS {
        lines.push(((*name).to_owned(), "report", report.about.to_owned()));
    }
    for instance in config.rules.instances()? {
        let about = instance.rule.doc().split_inclusive(". ").next().unwrap_or_default();
        let about = about.lines().next().unwrap_or_default().trim_end_matches(['.', ' ']);
        lines.push((instance.name, "rule", about.to_owned()));
    }
    let longest = lines.iter().map(|line| plain::width(&line.0)).max().unwrap_or(0);
    if let Some(width) = width {
        let room = width.saturating_sub(longest + GAP).max(LEAST);
        lines.iter_mut().for_each(|line| line.2 = plain::cut(&line.2, room));
    }
    let fields: &[Field<Line>] = &[
        (always("name", "Name"), |line| Cell::text(&line.0)),
        (program("kind"), |line| Cell::text(line.1)),
        (always("about", "What it says"), |line| Cell::text(&line.2)),
    ];
    let of = |kind: &'static str| lines.iter().filter(move |line| line.1 == kind);
    let mut reports = Sheet::new("reports", "Reports", fields, of("report"));
    let mut rules = Sheet::new("rules", "Rules, as reports on what they find", fields, of("rule"));
    (reports.top, rules.top) = (0, 0);
    let off: Vec<&str> = config.rules.disabled().collect();
    if !off.is_empty() {
        rules.notes.push(format!("Switched off: {}.", off.join(", ")));
    }
    Ok(Document {
        title: "Reports".to_owned(),
        headline: vec!["steward report NAME makes one of these.".to_owned()],
        facts: Vec::new(),
        sheets: vec![reports, rules],
    })
}

/// Which jobs, if not all.
fn only(question: &Question) -> Option<String> {
    let clusters: Vec<&str> = question.clusters.iter().map(ClusterName::as_str).collect();
    let partitions: Vec<&str> = question.partitions.iter().map(String::as_str).collect();
    let said: Vec<String> = [("cluster", clusters), ("partition", partitions)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(kind, names)| format!("{kind} {}", names.join(" or ")))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn in_brackets(question: &Question) -> String {
    only(question).map_or(String::new(), |only| format!(" ({only})"))
}

/// The instance for jobs in these partitions; `None` if it is about none of them.
fn narrow(mut instance: Instance, partitions: &[String]) -> Option<Instance> {
    let scope = &mut instance.scope;
    if !partitions.is_empty() {
        let own = std::mem::take(&mut scope.partitions);
        let about = |name: &String| {
            (own.is_empty() || own.contains(name)) && !scope.excluded_partitions.contains(name)
        };
        scope.partitions = partitions.iter().filter(|name| about(name)).cloned().collect();
        if scope.partitions.is_empty() {
            return None;
        }
    }
    Some(instance)
}

fn prices(cost: &Cost) -> Prices {
    Prices {
        billing_hour: cost.billing_hour.zip(cost.currency.clone()),
        cpu_watts: cost.cpu_watts,
        gpu_watts: cost.gpu_watts,
    }
}

fn view<'a>(judged: &'a Judged, instances: &'a [Instance]) -> View<'a> {
    let found = instances.iter().zip(&judged.judgements);
    View {
        facts: &judged.gathered.facts,
        waiting: judged.gathered.waiting().collect(),
        found: found
            .filter_map(|(instance, judgement)| {
                Some((instance.name.as_str(), judgement.as_ref()?.findings.as_slice()))
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
