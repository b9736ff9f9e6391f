//! Collecting: what sacct knows and the archive does not yet have, of one cluster, as one change.
//!
//! The parts of the plan are asked for side by side, each into files of its own. Then jobs whose
//! rows could not be cut, and runs that were open and have vanished, are asked for by number. Then
//! runs of one job are ranked. Then it all counts at once, or, if anything failed, not at all.

pub mod ask;
pub mod counts;
pub mod gather;
pub mod measure;
pub mod mend;
pub mod numbers;
pub mod plan;
pub mod run;
pub mod site;
#[cfg(test)]
mod tests;
pub mod unread;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use roaring::RoaringBitmap;
use steward_common::slurm::sacct::Layout;
use steward_common::time::Timestamp;
use tempfile::NamedTempFile;

use crate::archive::lock::Lock;
use crate::archive::manifest::{Cluster, Forgotten, Last};
use crate::archive::read::{RunKey, RunSet, Table};
use crate::archive::{Archive, ArchiveError, Change, Day, Part, ranks};
use crate::keep::retention::{Dropped, Retention};
use crate::source::slurm::command::CommandError;
use crate::source::slurm::sacct::{Failure, Sacct, Stop};
use counts::Counts;
use gather::{Broken, Gather, Gathered};
use measure::Agents;
use plan::{Terms, Unit};
use unread::Unread;

/// How long to wait before a failed call is made again, the first time; then twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// What went wrong with a collection. Nothing of it counts then, unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// sacct.
    #[error(transparent)]
    Slurm(#[from] CommandError),
    /// There is no such cluster.
    #[error(
        "slurmdbd knows no cluster {cluster}, only {known}: see slurm.clusters in steward.toml"
    )]
    NoCluster {
        /// The cluster.
        cluster: String,
        /// Those that there are.
        known: String,
    },
}

impl CollectError {
    fn of(failure: Failure<CollectError>) -> CollectError {
        match failure {
            Failure::Call(error) => CollectError::Slurm(error),
            Failure::Visit(error) => error,
        }
    }

    /// Whether all was kept, and only what comes after failed.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self, CollectError::Archive(ArchiveError::Kept { .. }))
    }

    /// Whether it was us who stopped it.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, CollectError::Slurm(CommandError::Stopped))
    }
}

/// How to collect.
#[derive(Clone)]
pub struct Request {
    /// The cluster's name.
    pub cluster: String,
    /// How it is asked.
    pub sacct: Sacct,
    /// For when.
    pub terms: Terms,
    /// Calls at a time.
    pub parallel: usize,
    /// How often a failed call is made again.
    pub retries: u32,
    /// Whether rows are kept as sacct gave them.
    pub raw: bool,
    /// Who knows what agents measured.
    pub agents: Option<Arc<Agents>>,
    /// How long layers are kept.
    pub retention: Retention,
    /// Who knows which clusters there are, where this one was named.
    pub sacctmgr: Option<Vec<String>>,
    /// Says whether to stop.
    pub stop: Stop,
}

/// What all parts of a collection share.
pub struct Context {
    archive: Archive,
    cluster: String,
    entry: Cluster,
    forgotten: Vec<Forgotten>,
    generation: u64,
    now: Timestamp,
    sacct: Sacct,
    keeps_raw: bool,
    agents: Option<Arc<Agents>>,
    /// Runs that had not ended when they were last collected.
    open: RunSet,
}

impl Context {
    /// The file of a part, if the archive has it.
    fn table(&self, part: Part) -> Result<Option<Table>, ArchiveError> {
        let entry = match part {
            Part::Day(day) => self.entry.days.get(&day).copied(),
            Part::Open => self.entry.open,
        };
        let Some(entry) = entry else { return Ok(None) };
        let table = self.archive.open(&self.cluster, part, entry)?;
        table.map(Some).ok_or_else(|| self.archive.missing(&self.cluster, part))
    }

    fn is_forgotten(&self, user: &str, submit: Timestamp) -> bool {
        Forgotten::holds(&self.forgotten, &self.cluster, user, submit)
    }
}

/// Something that shows how far a collection is.
pub trait Watch: Sync {
    /// There are this many parts.
    fn begin(&self, parts: usize);
    /// A part is done; so many rows have been read in all.
    fn part_done(&self, rows: u64);
}

/// What a collection did.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The cluster.
    pub cluster: String,
    /// Rows that sacct gave and that were looked at.
    pub rows: u64,
    /// Runs that were new or had changed.
    pub runs: u64,
    /// Texts that could not be read and are new.
    pub malformed: u64,
    /// Whether they are kept, as all rows are.
    pub keeps_raw: bool,
    /// Values that could not be read; their runs stand without them.
    pub odd: u64,
    /// Runs to which agents' figures were added.
    pub measured: u64,
    /// Whether Prometheus, asked for them, did not answer.
    pub is_deaf: bool,
    /// Examples of what could not be read.
    pub examples: Vec<String>,
    /// Days that were asked for.
    pub days: usize,
    /// What went because it was old.
    pub dropped: Dropped,
}

/// Collects. The lock comes back for the next cluster.
///
/// # Errors
/// If anything fails; then the archive is as it was.
pub fn run(
    archive: &Archive,
    lock: Lock,
    request: &Request,
    watch: &dyn Watch,
) -> Result<(Collected, Lock), CollectError> {
    let layout = retried(request, || Ok(request.sacct.layout()?))?;
    let mut change = archive.change(lock)?;
    let is_first = !change.manifest.clusters.contains_key(&request.cluster);
    let mut collected = match fill(archive, &mut change, &layout, request, watch) {
        Err(CollectError::Archive(error)) => return Err(change.explain(error).into()),
        collected => collected?,
    };
    if let (true, Some(sacctmgr)) = (is_first && collected.rows == 0, &request.sacctmgr) {
        site::is_known(sacctmgr, &request.cluster, &request.stop)?;
    }
    let now = request.terms.now;
    let lock = change.commit()?;
    let dropped = request.retention.drop_raw(archive, &request.cluster, now);
    collected.dropped.files = dropped.map_err(ArchiveError::after_change)?;
    Ok((collected, lock))
}

/// Puts what is new into the change.
fn fill(
    archive: &Archive,
    change: &mut Change,
    layout: &Layout,
    request: &Request,
    watch: &dyn Watch,
) -> Result<Collected, CollectError> {
    let entry = change.manifest.clusters.get(&request.cluster).cloned().unwrap_or_default();
    let units = plan::units(&entry, request.terms);
    watch.begin(units.len());
    let mut context = Context {
        archive: archive.clone(),
        cluster: request.cluster.clone(),
        entry,
        forgotten: change.manifest.forgotten.clone(),
        generation: change.generation(),
        now: request.terms.now,
        sacct: request.sacct.clone(),
        keeps_raw: request.raw,
        agents: request.agents.clone(),
        open: RunSet::default(),
    };
    if let Some(table) = context.table(Part::Open)? {
        context.open = table.runs(None)?.keys().collect();
    }
    let mut total = Total::default();
    for gathered in all(&context, layout, &units, request, watch)? {
        total.add(change, &context, gathered)?;
    }
    let waiting = mend::mend(&mut context, request, layout, change, &mut total)?;
    if let Some(raw) = total.unread.write(&context, &layout.names())? {
        total.put_raw(change, &context, raw)?;
    }
    ranks::rank(change, &context.cluster, &total.jobs)?;
    let Counts { rows, runs, odd, measured } = total.counts;
    let entry = change.manifest.clusters.entry(request.cluster.clone()).or_default();
    let mut collected = Collected {
        cluster: request.cluster.clone(),
        rows,
        runs,
        malformed: entry.enter_unread(total.unread.digests()),
        keeps_raw: request.raw,
        odd,
        measured,
        is_deaf: request.agents.as_ref().is_some_and(|agents| agents.is_deaf()),
        examples: total.examples,
        days: units.len(),
        dropped: Dropped::default(),
    };
    plan::enter(entry, &units, request.terms);
    entry.waiting = waiting;
    entry.open_since = total.open_since.map(Timestamp::get);
    entry.malformed += collected.malformed;
    entry.last = Some(Last {
        at: request.terms.now.get(),
        runs: collected.runs,
        malformed: collected.malformed,
    });
    let now = request.terms.now;
    collected.dropped.days = request.retention.drop_days(change, &request.cluster, now);
    Ok(collected)
}

/// What the parts add up to.
#[derive(Default)]
pub struct Total {
    jobs: RoaringBitmap,
    broken: Vec<Broken>,
    unseen: Vec<RunKey>,
    ended: Vec<RunKey>,
    open_since: Option<Timestamp>,
    unread: Unread,
    counts: Counts,
    examples: Vec<String>,
    raw_files: usize,
}

impl Total {
    fn add(
        &mut self,
        change: &mut Change,
        context: &Context,
        gathered: Gathered,
    ) -> Result<(), ArchiveError> {
        for (part, (file, rows)) in gathered.parts {
            change.stage_part(&context.cluster, part, file, rows)?;
        }
        if let Some(raw) = gathered.raw {
            self.put_raw(change, context, raw)?;
        }
        self.jobs |= gathered.jobs;
        self.broken.extend(gathered.broken);
        self.unseen.extend(gathered.unseen);
        self.ended.extend(gathered.ended);
        self.open_since = match (self.open_since, gathered.open_since) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.unread.merge(gathered.unread);
        self.counts.add(gathered.counts);
        for example in gathered.examples {
            // Each day may tell of the same.
            if !self.examples.contains(&example) && self.examples.len() < gather::EXAMPLES {
                self.examples.push(example);
            }
        }
        Ok(())
    }

    fn put_raw(
        &mut self,
        change: &Change,
        context: &Context,
        file: NamedTempFile,
    ) -> Result<(), ArchiveError> {
        let what = format!("{:04}", self.raw_files);
        self.raw_files += 1;
        let name = change.raw_name(&context.cluster, Day::of(context.now), &what);
        context.archive.shelf().put(file, &name)
    }
}

/// Gathers all units, several at a time.
fn all(
    context: &Context,
    layout: &Layout,
    units: &[Unit],
    request: &Request,
    watch: &dyn Watch,
) -> Result<Vec<Gathered>, CollectError> {
    let (next, rows) = (AtomicUsize::new(0), AtomicU64::new(0));
    let done: Mutex<Vec<(usize, Gathered)>> = Mutex::new(Vec::new());
    let failed: Mutex<Option<CollectError>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..request.parallel.clamp(1, units.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(place) else { return };
                    if failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                        return;
                    }
                    let gathered = retried(request, || {
                        let mut gather = Gather::new(context, layout, None)?;
                        ask::unit(&mut gather, unit)?;
                        Ok(gather.finish(true)?)
                    });
                    match gathered {
                        Ok(gathered) => {
                            let new = gathered.counts.rows;
                            let rows = rows.fetch_add(new, Ordering::Relaxed) + new;
                            done.lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push((place, gathered));
                            watch.part_done(rows);
                        }
                        Err(error) => {
                            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                            failed.get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, gathered)| gathered).collect())
}

/// Does it again, with longer and longer pauses, if the database was busy.
fn retried<T>(
    request: &Request,
    mut call: impl FnMut() -> Result<T, CollectError>,
) -> Result<T, CollectError> {
    let mut pause = PAUSE;
    for _ in 0..request.retries {
        match call() {
            Err(CollectError::Slurm(error)) if error.is_passing() => {
                tracing::warn!(%error, seconds = pause.as_secs(), "sacct is asked again");
                request.sacct.pause(pause)?;
                pause *= 2;
            }
            result => return result,
        }
    }
    call()
}
