//! Brings together what is known of the jobs of a time.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use steward_common::cluster::{Base, CurrentJob, Flag, Node, Question, Snapshot};
use steward_common::id::{ClusterName, JobId, NodeName};
use steward_common::intern::Names;
use steward_common::rule::{Facts, Gathering, Hardware, Job, JobKey};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::agents::Agents;
use super::gpus::Gpus;
use super::question::Oracle;
use super::{Trouble, Troubles, current};
use crate::archive::manifest::Manifest;
use crate::archive::{Archive, Day};
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::snapshot;
use crate::source::jobstats;
use crate::source::promql;

/// What slurmctld is asked for.
const WANTED: [Question; 3] = [Question::Nodes, Question::Partitions, Question::Jobs];

/// How far back running jobs are followed.
const REACH: Duration = Duration::from_secs(32 * 86_400);

/// A snapshot that is older says nothing about this moment.
const FRESH: Duration = Duration::from_secs(600);

/// How many jobs that cannot be judged are named.
const NAMED: usize = 20;

/// Where everything comes from.
pub struct Sources<'a> {
    /// Settings.
    pub config: &'a Config,
    /// Ended jobs.
    pub archive: &'a Archive,
    /// Clusters as they are; empty if slurmctld was not asked.
    pub snapshots: &'a [Arc<Snapshot>],
    /// The present.
    pub now: Timestamp,
    /// Whether Prometheus is asked.
    pub measured: bool,
}

/// What is known of a cluster.
#[derive(Debug)]
pub struct Gathered {
    /// Its jobs that hold or held something.
    pub facts: Facts,
    /// The cluster as it is, if slurmctld was asked and answered.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Nodes that should have an agent and of which none has spoken lately; `None` if nobody was
    /// asked.
    pub silent: Option<Vec<NodeName>>,
}

impl Gathered {
    /// Jobs that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &CurrentJob> {
        let jobs = self.snapshot.as_ref().and_then(|snapshot| snapshot.jobs.as_ref());
        jobs.into_iter().flat_map(|seen| seen.what.iter()).filter(|job| job.state.is_pending())
    }
}

/// Asks slurmctld of every cluster that is wanted, or of all that are configured.
#[must_use]
pub fn snapshots(
    config: &Arc<Config>,
    only: &[ClusterName],
    shutdown: &Shutdown,
    troubles: &mut Vec<Trouble>,
) -> Vec<Arc<Snapshot>> {
    let wanted = if only.is_empty() { config.slurm.clusters.as_slice() } else { only };
    let mut names: Vec<Option<ClusterName>> = wanted.iter().cloned().map(Some).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut all = Vec::new();
    for name in names {
        match snapshot::part(config, name.clone(), &WANTED, shutdown) {
            Ok(snapshot) => all.push(Arc::new(snapshot)),
            Err(error) => {
                let why = format!("{error:#}; running jobs and hardware are not known");
                Troubles::of(name.as_ref(), troubles).add("slurmctld", why);
            }
        }
    }
    all
}

/// Which runs are taken of those that the archive has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Those that ended. What runs is what slurmctld says: rules judge no run by what was true of it
    /// at the last collection.
    Ended,
    /// Also those that had not ended when they were collected, as they were then, unless slurmctld
    /// says more of them: sums of hours are to have all hours.
    All,
}

/// Everything that is known of the jobs of a window, cluster by cluster: of those named, or of all
/// that have jobs.
///
/// # Errors
/// If the archive cannot be read.
pub fn gather(
    sources: &Sources<'_>,
    window: Window,
    only: &[ClusterName],
    troubles: &mut Vec<Trouble>,
) -> anyhow::Result<Vec<Gathered>> {
    gather_runs(sources, window, only, Runs::Ended, troubles)
}

/// The same, of more runs.
///
/// # Errors
/// If the archive cannot be read.
pub fn gather_runs(
    sources: &Sources<'_>,
    window: Window,
    only: &[ClusterName],
    runs: Runs,
    troubles: &mut Vec<Trouble>,
) -> anyhow::Result<Vec<Gathered>> {
    let oracle = oracle(sources, troubles);
    let clusters = clusters(sources, window, only, runs, troubles)?;
    let mut all = Vec::new();
    for cluster in clusters {
        all.push(one(sources, window, cluster, runs, oracle.as_ref(), troubles)?);
    }
    Ok(all)
}

fn oracle(sources: &Sources<'_>, troubles: &mut Vec<Trouble>) -> Option<Oracle> {
    if !sources.measured {
        return None;
    }
    // A site without one has decided so: that is no trouble, and `config check` warns of it.
    let url = sources.config.prometheus.url.as_deref()?;
    let mut troubles = Troubles::of(None, troubles);
    Oracle::new(url, sources.config.prometheus.timeout.0)
        .map_err(|error| troubles.add("Prometheus", format!("{error:#}")))
        .ok()
}

/// The clusters that were asked, and those of which the archive has jobs of that time.
fn clusters(
    sources: &Sources<'_>,
    window: Window,
    only: &[ClusterName],
    runs: Runs,
    troubles: &mut Vec<Trouble>,
) -> anyhow::Result<BTreeSet<ClusterName>> {
    let manifest = sources.archive.manifest()?;
    tell_unknown(sources, &manifest, only, troubles);
    let held = |(_, entry): &(&String, &crate::archive::manifest::Cluster)| {
        entry.days.range(Day::of(window.from())..).next().is_some()
            || (runs == Runs::All && entry.open.is_some())
    };
    let archived = manifest.clusters.iter().filter(held).filter_map(|(name, _)| name.parse().ok());
    let asked = sources.snapshots.iter().map(|snapshot| snapshot.cluster.clone());
    let mut clusters: BTreeSet<ClusterName> = archived.chain(asked).collect();
    clusters.retain(|name| only.is_empty() || only.contains(name));
    Ok(clusters)
}

/// An archive without anything, and clusters of which nobody knows anything, are no clusters
/// without jobs.
fn tell_unknown(
    sources: &Sources<'_>,
    manifest: &Manifest,
    only: &[ClusterName],
    troubles: &mut Vec<Trouble>,
) {
    if manifest.clusters.is_empty() {
        let why = "nothing was collected yet, or it is not there; `steward collect` fills it";
        Troubles::of(None, troubles).add("archive", why);
    }
    let is_seen = |name: &ClusterName| {
        let of = |one: &&Arc<Snapshot>| one.cluster == *name && one.jobs.is_some();
        sources.snapshots.iter().any(|one| of(&one))
    };
    for name in only {
        if !manifest.clusters.contains_key(name.as_str()) && !is_seen(name) {
            let all: Vec<&str> = manifest.clusters.keys().map(String::as_str).collect();
            let why = format!("nothing is known of it; the archive has: {}", all.join(", "));
            Troubles::of(Some(name), troubles).add("cluster", why);
        }
    }
}

fn one(
    sources: &Sources<'_>,
    window: Window,
    cluster: ClusterName,
    runs: Runs,
    oracle: Option<&Oracle>,
    list: &mut Vec<Trouble>,
) -> anyhow::Result<Gathered> {
    let name = cluster.clone();
    let mut troubles = Troubles::of(Some(&name), list);
    let snapshot = sources.snapshots.iter().find(|snapshot| snapshot.cluster == cluster).cloned();
    let hardware = snapshot.as_deref().map(hardware).unwrap_or_default();
    // Jobs that run at this moment belong to a window that ends now.
    let is_now = sources.now.since(window.to()).is_some_and(|ago| ago < Duration::from_secs(60));
    let running =
        if is_now { running(snapshot.as_deref(), sources.now, &mut troubles) } else { &[] };
    let known = (runs == Runs::All).then(|| keys(running));
    let (mut gathering, refused) =
        sources.archive.consistently(|manifest| -> anyhow::Result<_> {
            let empty = Gathering::new(cluster.clone(), window, sources.now, hardware.clone());
            archived(sources, manifest, &cluster, window, empty, known.as_ref())
        })?;
    refused.tell(&mut troubles);
    add_running(sources, &mut gathering, running, &mut troubles);
    let mut silent = None;
    if let Some(oracle) = oracle {
        measure(sources, &cluster, window, is_now, oracle, &mut gathering, &mut troubles);
        if let (true, Some(snapshot)) = (is_now, &snapshot) {
            silent = silent_nodes(oracle, snapshot, sources.now, &mut troubles);
        }
    }
    Ok(Gathered { facts: gathering.finish(), snapshot, silent })
}

fn hardware(snapshot: &Snapshot) -> Hardware {
    let nodes = snapshot.nodes.as_ref().map_or(&[][..], |seen| &seen.what);
    let partitions = snapshot.partitions.as_ref().map_or(&[][..], |seen| &seen.what);
    Hardware::new(nodes, partitions)
}

/// The jobs of the queue, unless what is known of it is too old. Whatever slurmctld did not answer
/// is a trouble.
fn running<'a>(
    snapshot: Option<&'a Snapshot>,
    now: Timestamp,
    troubles: &mut Troubles<'_>,
) -> &'a [CurrentJob] {
    let Some(snapshot) = snapshot else { return &[] };
    for question in WANTED {
        if let Some(why) = snapshot.asked.get(&question).and_then(|asked| asked.error.as_ref()) {
            let what = question.name();
            troubles.add(format!("slurmctld ({what})"), why);
        }
    }
    let Some(seen) = &snapshot.jobs else { return &[] };
    match now.since(seen.at) {
        Some(age) if age > FRESH => {
            let why = format!(
                "last answered {} min ago; running jobs are not judged",
                age.as_secs() / 60
            );
            troubles.add("slurmctld (jobs)", why);
            &[]
        }
        _ => &seen.what,
    }
}

/// Jobs of which something could not be read.
#[derive(Default)]
struct Refused {
    named: Vec<(JobId, String)>,
    count: usize,
}

impl Refused {
    fn add(&mut self, job: JobId, why: String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((job, why));
        }
    }

    fn tell(&self, troubles: &mut Troubles<'_>) {
        for (job, why) in &self.named {
            troubles.add(format!("job {job}"), why);
        }
        if self.count > self.named.len() {
            let more = self.count - self.named.len();
            troubles.add("jobs", format!("{more} more could not be read in full"));
        }
    }
}

/// A job of a partition that was renamed since counts for it under the new name.
fn rename(job: &mut Job, names: &mut Names, renamed: &BTreeMap<String, String>) {
    if !renamed.is_empty()
        && let Some(new) = renamed.get(names.text(job.partition))
    {
        job.partition = names.intern(new);
    }
}

/// Which runs these are.
fn keys(queue: &[CurrentJob]) -> HashSet<JobKey> {
    let key = |job: &CurrentJob| Some(JobKey { id: job.id, submit: job.submitted? });
    queue.iter().filter(|job| !job.state.is_pending()).filter_map(key).collect()
}

/// Gathers jobs that have ended by now, and, with `known`, those that have not ended and are not
/// known; `None` if a writer was quicker. Where "now" is a moment of the past, a job that ended
/// later had used nothing that is known by then.
fn archived(
    sources: &Sources<'_>,
    manifest: &Manifest,
    cluster: &ClusterName,
    window: Window,
    mut gathering: Gathering,
    known: Option<&HashSet<JobKey>>,
) -> anyhow::Result<Option<(Gathering, Refused)>> {
    let mut reader = jobstats::Reader::default();
    let mut refused = Refused::default();
    let mut take = |mut job: Job, comment: &str, gathering: &mut Gathering| {
        let id = job.key.id;
        if job.end.is_some_and(|end| end > sources.now) {
            return;
        }
        rename(&mut job, gathering.names(), &sources.config.evaluate.renamed_partitions);
        let comment = if jobstats::says_more(&job) { comment } else { "" };
        let read = reader.read(comment).and_then(|summary| match summary {
            Some(summary) => summary.add_to(&mut job, gathering.names()),
            None => Ok(()),
        });
        if let Err(error) = read {
            refused.add(id, error.to_string());
        }
        if let Err(error) = gathering.push(job) {
            refused.add(id, format!("is not judged: {error}"));
        }
    };
    let (archive, name) = (sources.archive, cluster.as_str());
    let mut all = archive.ended(manifest, name, window, &mut gathering, &mut take)?;
    if let Some(known) = known {
        let mut new = |job: Job, comment: &str, gathering: &mut Gathering| {
            if !known.contains(&job.key) {
                take(job, comment, gathering);
            }
        };
        all &= archive.unended(manifest, name, window, &mut gathering, &mut new)?;
    }
    Ok(all.then_some((gathering, refused)))
}

fn add_running(
    sources: &Sources<'_>,
    gathering: &mut Gathering,
    queue: &[CurrentJob],
    troubles: &mut Troubles<'_>,
) {
    // Slurm's database may say already that a job has ended which is being cleaned up.
    let current = keys(queue);
    let (jobs, _) = gathering.jobs_and_names();
    let archived: HashSet<JobKey> =
        jobs.iter().map(|job| job.key).filter(|key| current.contains(key)).collect();
    for record in queue {
        let key = record.submitted.map(|submit| JobKey { id: record.id, submit });
        if key.is_some_and(|key| archived.contains(&key)) {
            continue;
        }
        let Some(mut job) = current::job(record, sources.now, gathering.names()) else { continue };
        rename(&mut job, gathering.names(), &sources.config.evaluate.renamed_partitions);
        if let Err(error) = gathering.push(job) {
            troubles.add(format!("job {}", record.id), format!("is not judged: {error}"));
        }
    }
}

/// Adds what Prometheus knows.
fn measure(
    sources: &Sources<'_>,
    cluster: &ClusterName,
    window: Window,
    is_now: bool,
    oracle: &Oracle,
    gathering: &mut Gathering,
    troubles: &mut Troubles<'_>,
) {
    let now = sources.now;
    let (jobs, names) = gathering.jobs_and_names();
    // The highest of anything over all of a running job's time, however long ago it began.
    let oldest = jobs.iter().filter(|job| job.end.is_none()).filter_map(|job| job.start).min();
    let from =
        oldest.map_or(window.from(), |oldest| oldest.min(window.from())).max(now.before(REACH));
    let Some(reach) = Window::new(from.min(window.from()), window.to()) else { return };
    let agents = Agents::ask(oracle, cluster, reach, is_now, troubles);
    // What has no time of its own cannot be told apart between two runs of a job.
    let (mut once, mut again) = (HashSet::new(), HashSet::new());
    for job in jobs.iter() {
        if !once.insert(job.key.id) {
            again.insert(job.key.id);
        }
    }
    let gpus = if jobs.iter().any(|job| job.gpu_count() > 0) {
        match sources.config.gpus.mapping() {
            Ok(Some(mapping)) => Gpus::ask(oracle, &mapping, cluster, reach, is_now, troubles),
            _ => Gpus::default(),
        }
    } else {
        Gpus::default()
    };
    let (mut elsewhen, mut silent): (BTreeMap<String, u64>, BTreeMap<String, u64>) =
        (BTreeMap::new(), BTreeMap::new());
    for job in jobs {
        let odd = agents.add_to(job, names, now);
        for (nodes, counts) in [(odd.elsewhen, &mut elsewhen), (odd.silent, &mut silent)] {
            nodes.into_iter().for_each(|node| *counts.entry(node).or_default() += 1);
        }
        if job.gpu_count() > 0 && !again.contains(&job.key.id) {
            gpus.add_to(job, names, now);
        }
    }
    for (node, jobs) in elsewhen {
        let why = format!(
            "its agent watched {jobs} jobs at another time than Slurm ran them: is its clock right? \
             They are judged without it"
        );
        troubles.add(format!("node {node}"), why);
    }
    for (node, jobs) in silent {
        let why = format!(
            "its agent has said nothing of {jobs} running jobs for a minute or more: does it run? \
             What it saw before counts for that time alone"
        );
        troubles.add(format!("node {node}"), why);
    }
}

/// Nodes that are up and whose agent has not scanned lately.
fn silent_nodes(
    oracle: &Oracle,
    snapshot: &Snapshot,
    now: Timestamp,
    troubles: &mut Troubles<'_>,
) -> Option<Vec<NodeName>> {
    let nodes = snapshot.nodes.as_ref()?;
    let series = oracle
        .ask(promql::heartbeats())
        .map_err(|error| troubles.add("heartbeats of agents", error))
        .ok()?;
    let mut heard: HashSet<&str> = HashSet::new();
    for (labels, value) in &series {
        let lately = now.get() as f64 - value < FRESH.as_secs_f64();
        if lately && super::question::label(labels, "cluster") == snapshot.cluster.as_str() {
            heard.insert(super::question::node(labels));
        }
    }
    let silent =
        nodes.what.iter().filter(|node| is_up(node) && !heard.contains(node.name.as_str()));
    Some(silent.map(|node| node.name.clone()).collect())
}

fn is_up(node: &Node) -> bool {
    let base = matches!(node.state.base, Base::Allocated | Base::Idle | Base::Mixed);
    let off = [Flag::NotResponding, Flag::PoweredDown, Flag::PoweringDown, Flag::PoweringUp];
    base && !node.state.flags().any(|flag| off.contains(&flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v6_a_partition_that_was_renamed_counts_under_its_new_name() {
        let renamed = BTreeMap::from([("datascience".to_owned(), "ds".to_owned())]);
        let mut names = Names::default();
        let now = Timestamp::new(1000);
        let partitions: Vec<String> = ["datascience", "gpu", "datascience"]
            .into_iter()
            .map(|partition| {
                let record = CurrentJob {
                    partition: partition.into(),
                    start: Some(Timestamp::new(10)),
                    submitted: Some(Timestamp::new(5)),
                    state: "RUNNING".into(),
                    ..recorded()
                };
                let mut job = current::job(&record, now, &mut names).unwrap();
                rename(&mut job, &mut names, &renamed);
                names.text(job.partition).to_owned()
            })
            .collect();
        assert_eq!(partitions, ["ds", "gpu", "ds"]);
    }

    fn recorded() -> CurrentJob {
        let text = include_str!("../../../tests/fixtures/snapshot-slurm-22.05/squeue.txt");
        steward_common::cluster::queue::parse(text).unwrap().remove(0)
    }
}
