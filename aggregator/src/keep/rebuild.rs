//! `processed` made anew from `raw`, as one change.
//!
//! First the key columns of all raw files say which version of each run counts. Then the parts of
//! `processed` are written one after the other, from the raw files that have versions for them.
//! What `raw` does not have, because it was let go or never kept, stays as it stands.

use std::collections::{BTreeMap, HashMap, HashSet};

use roaring::RoaringBitmap;
use steward_common::job::{AgentUse, Run};
use steward_common::slurm::sacct::{Layout, Row, row};
use steward_common::time::Timestamp;

use super::retention::{Dropped, Retention};
use super::winners::{self, PROCESSED, Place, Winners};
use super::{KeepError, import};
use crate::archive::cells::times;
use crate::archive::column::Stored;
use crate::archive::lock::Lock;
use crate::archive::manifest::{self, Cluster, Forgotten};
use crate::archive::processed::ProcessedWriter;
use crate::archive::raw::Form;
use crate::archive::raw_read::{RawTable, Version};
use crate::archive::read::{RunKey, Table};
use crate::archive::store::RawFile;
use crate::archive::{Archive, ArchiveError, Change, Part, agent, carry, ranks, stand_in};
use crate::collect::Watch;
use crate::collect::mend::Mended;
use crate::collect::run::{assemble, attach, digest};
use crate::source::slurm::lines::text_of;

/// What is rebuilt, and how.
pub struct Order<'a> {
    /// Only this cluster.
    pub cluster: Option<&'a str>,
    /// Now.
    pub now: Timestamp,
    /// How long layers are kept.
    pub retention: Retention,
    /// Says whether to stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// What came of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    /// The cluster.
    pub cluster: String,
    /// Runs that were read from `raw`.
    pub runs: u64,
    /// Runs that `raw` does not have, and that stay as they were.
    pub carried: u64,
    /// Runs that should be in `raw` and cannot be read.
    pub unreadable: u64,
    /// Days that have runs.
    pub days: usize,
    /// What went because it was old.
    pub dropped: Dropped,
}

/// Rebuilds one cluster, or all. The lock comes back.
///
/// # Errors
/// If anything fails; then the archive is as it was.
pub fn run(
    archive: &Archive,
    lock: Lock,
    order: &Order<'_>,
    watch: &dyn Watch,
) -> Result<(Vec<Rebuilt>, Lock), KeepError> {
    let mut change = archive.change_or_recover(lock)?;
    change.manifest.schema = manifest::SCHEMA;
    let mut done = Vec::new();
    for cluster in archive.clusters(&change.manifest)? {
        if order.cluster.is_none_or(|only| only == cluster) {
            done.push(self::cluster(archive, &cluster, order, &mut change, watch)?);
        }
    }
    let lock = change.commit()?;
    for one in &mut done {
        let dropped = order.retention.drop_raw(archive, &one.cluster, order.now);
        one.dropped.files = dropped.map_err(ArchiveError::after_change)?;
    }
    Ok((done, lock))
}

/// Rebuilds a cluster as part of a change.
///
/// # Errors
/// If anything fails.
pub fn cluster(
    archive: &Archive,
    cluster: &str,
    order: &Order<'_>,
    change: &mut Change,
    watch: &dyn Watch,
) -> Result<Rebuilt, KeepError> {
    Rebuild::new(archive, cluster, order, change)?.run(change, watch)
}

/// A cluster while it is rebuilt.
struct Rebuild<'a> {
    archive: &'a Archive,
    cluster: &'a str,
    order: &'a Order<'a>,
    forgotten: Vec<Forgotten>,
    files: Vec<RawFile>,
    /// `processed` as it is.
    parts: BTreeMap<Part, Table>,
    /// Of runs that have not ended: their digests, and when they were last seen.
    seen: HashMap<RunKey, (i32, Timestamp)>,
    /// When open runs were last asked for.
    last: Option<Timestamp>,
    /// Runs that are not the first of their jobs.
    ranks: HashMap<RunKey, u32>,
    /// Where the newest measurements of agents stand, in the order of jobs and submission.
    agents: Vec<Place>,
    /// Jobs of which a run was left out.
    thinned: RoaringBitmap,
    done: Rebuilt,
}

impl<'a> Rebuild<'a> {
    fn new(
        archive: &'a Archive,
        cluster: &'a str,
        order: &'a Order<'a>,
        change: &Change,
    ) -> Result<Rebuild<'a>, ArchiveError> {
        let entry = change.manifest.clusters.get(cluster).cloned().unwrap_or_default();
        let parts = existing(archive, cluster, &entry)?;
        let seen = parts.get(&Part::Open).map_or(Ok(HashMap::new()), carry::seen)?;
        Ok(Rebuild {
            archive,
            cluster,
            order,
            forgotten: change.manifest.forgotten.clone(),
            files: archive.raw_files(cluster, change.generation())?,
            parts,
            seen,
            last: entry.last.map(|last| Timestamp::new(last.at)),
            ranks: HashMap::new(),
            agents: Vec::new(),
            thinned: RoaringBitmap::new(),
            done: Rebuilt { cluster: cluster.to_owned(), ..Rebuilt::default() },
        })
    }

    fn run(mut self, change: &mut Change, watch: &dyn Watch) -> Result<Rebuilt, KeepError> {
        let mut places = self.places()?;
        self.ranks = winners::ranks(&places);
        winners::by_part(&mut places);
        let parts: Vec<&[Place]> = places.chunk_by(|one, next| one.part() == next.part()).collect();
        watch.begin(parts.len());
        let entry = change.manifest.clusters.entry(self.cluster.to_owned()).or_default();
        entry.days.clear();
        let had_open = entry.open.take().is_some();
        for places in parts {
            let Some(part) = places.first().map(Place::part) else { continue };
            match part {
                Part::Day(day) if self.order.retention.drops_day(day, self.order.now) => {
                    self.done.dropped.days += 1;
                }
                _ => self.part(change, part, places)?,
            }
            watch.part_done(self.done.runs);
        }
        let entry = change.manifest.clusters.get(self.cluster);
        if had_open && entry.is_none_or(|entry| entry.open.is_none()) {
            self.part(change, Part::Open, &[])?;
        }
        ranks::rank(change, self.cluster, &self.thinned)?;
        Ok(self.done)
    }

    /// Of every run where the version that counts stands.
    fn places(&mut self) -> Result<Vec<Place>, KeepError> {
        let (mut runs, mut agents) = (Winners::default(), Winners::default());
        let mut collected = Vec::new();
        for file in &self.files {
            self.may_go_on()?;
            let number = runs.file(file.generation);
            agents.file(file.generation);
            let table = RawTable::open(self.archive, file)?;
            collected.push(latest(table.table())?);
            table.versions(|place, row| {
                let Some(run) = row.run() else { return };
                let place = Place::new(run, row.key.end, number, place);
                if row.form == Form::Agent {
                    agents.add(place);
                } else {
                    runs.add(place);
                }
            })?;
        }
        self.agents = agents.finish();
        let mut places = runs.finish();
        self.add_processed(&mut places, &collected)?;
        Ok(places)
    }

    /// Adds the runs that stand in `processed` only, or were collected after the version that `raw`
    /// has of them: rows were not kept then. `collected` is of the raw files.
    fn add_processed(
        &self,
        places: &mut Vec<Place>,
        collected: &[Option<Timestamp>],
    ) -> Result<(), KeepError> {
        let time = |place: &Place| {
            let file = usize::try_from(place.file).ok()?;
            collected.get(file).copied().flatten()
        };
        let raw = places.len();
        for (part, table) in &self.parts {
            self.may_go_on()?;
            let end = match part {
                Part::Day(day) => Some(day.start()),
                Part::Open => None,
            };
            for (run, (_, at)) in carry::seen(table)? {
                let new = Place::new(run, end, PROCESSED, 0);
                let kept = places.get(..raw).unwrap_or_default();
                let Ok(known) = kept.binary_search_by_key(&run, Place::run) else {
                    places.push(new);
                    continue;
                };
                let agent = self.agents.binary_search_by_key(&run, Place::run).ok();
                let agent = agent.and_then(|agent| self.agents.get(agent)).and_then(time);
                if let Some(place) = places.get_mut(known) {
                    // Of an open run `processed` has the last look, whether or not it has changed:
                    // that shows when its rows are read.
                    let both_open = place.part() == Part::Open && *part == Part::Open;
                    if !both_open && Some(at) > time(place).max(agent) {
                        *place = new;
                    }
                }
            }
        }
        places.sort_unstable_by_key(Place::run);
        Ok(())
    }

    fn may_go_on(&self) -> Result<(), KeepError> {
        if (self.order.stop)() { Err(KeepError::Stopped) } else { Ok(()) }
    }

    fn table(&self, file: u32) -> Result<Option<RawTable>, ArchiveError> {
        let file = usize::try_from(file).ok().and_then(|file| self.files.get(file));
        file.map(|file| RawTable::open(self.archive, file)).transpose()
    }

    /// Writes a part.
    fn part(&mut self, change: &mut Change, part: Part, all: &[Place]) -> Result<(), KeepError> {
        let scratch = self.archive.shelf().scratch()?;
        let has_stand_ins = all.last().is_some_and(|place| stand_in::is(place.run().0));
        let mut writing = Writing {
            part,
            writer: ProcessedWriter::new(scratch, change.generation())?,
            agents: self.agents_of(all)?,
            shown: has_stand_ins.then(HashSet::new),
            as_they_stand: HashSet::new(),
        };
        for places in all.chunk_by(|one, next| one.file == next.file && one.row <= next.row) {
            self.may_go_on()?;
            let Some(file) = places.first().map(|place| place.file) else { continue };
            if file == PROCESSED {
                let runs: HashSet<RunKey> = places.iter().map(Place::run).collect();
                self.carry(&runs, &mut writing)?;
            } else if let Some(table) = self.table(file)? {
                let rows: Vec<u32> = places.iter().map(|place| place.row).collect();
                table.read(&rows, |version| self.version(table.layout(), version, &mut writing))?;
            }
        }
        let runs = std::mem::take(&mut writing.as_they_stand);
        if !runs.is_empty() {
            self.carry(&runs, &mut writing)?;
        }
        let rows = writing.writer.rows();
        if rows == 0 && part != Part::Open {
            return Ok(());
        }
        self.done.days += usize::from(part != Part::Open);
        Ok(change.stage_part(self.cluster, part, writing.writer.finish()?, rows)?)
    }

    /// Writes runs that stand in `processed` only.
    fn carry(&mut self, runs: &HashSet<RunKey>, to: &mut Writing) -> Result<(), KeepError> {
        let Some(table) = self.parts.get(&to.part) else { return Ok(()) };
        let before = to.writer.rows();
        carry::carry(table, &mut to.writer, |key, user| {
            if !runs.contains(&key) {
                return false;
            }
            let forgotten = Forgotten::holds(&self.forgotten, self.cluster, user, key.1);
            if forgotten {
                self.thinned.insert(key.0);
            }
            !forgotten
        })?;
        self.done.carried += to.writer.rows() - before;
        Ok(())
    }

    /// Writes a run.
    fn version(
        &mut self,
        layout: Option<&Layout>,
        version: &Version,
        to: &mut Writing,
    ) -> Result<(), KeepError> {
        let cluster = self.cluster;
        let read = with_run(version, layout, cluster, |mut run, digest| {
            if Forgotten::holds(&self.forgotten, cluster, &run.user, run.submit) {
                self.thinned.insert(run.job.get());
                return Ok(());
            }
            if to.is_double(&run) {
                return Ok(());
            }
            if to.part == Part::Open
                && self
                    .seen
                    .get(&version.run)
                    .is_some_and(|(same, at)| *same != digest && *at > version.collected)
            {
                to.as_they_stand.insert(version.run);
                return Ok(());
            }
            run.restart = self.ranks.get(&version.run).copied().unwrap_or(0);
            // `raw` has the time of the version; the archive that of the last look at the run.
            let mut collected = match (to.part, self.seen.get(&version.run)) {
                (Part::Open, Some((same, at))) if *same == digest => *at,
                (Part::Open, _) => self.last.unwrap_or(version.collected),
                (Part::Day(_), _) => version.collected,
            };
            if let Some((agent, at)) = to.agents.remove(&version.run) {
                attach(&mut run, agent);
                collected = collected.max(at);
            }
            self.done.runs += 1;
            to.writer.push(&Stored { run: &run, collected, digest })
        });
        match read {
            Some(written) => Ok(written?),
            None => {
                self.done.unreadable += 1;
                to.as_they_stand.insert(version.run);
                Ok(())
            }
        }
    }

    /// What agents measured of these runs.
    fn agents_of(&self, places: &[Place]) -> Result<Measured, KeepError> {
        let mut found = HashMap::new();
        if self.agents.is_empty() {
            return Ok(found);
        }
        let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for place in places {
            let at = self.agents.binary_search_by_key(&place.run(), Place::run);
            if let Some(agent) = at.ok().and_then(|at| self.agents.get(at)) {
                wanted.entry(agent.file).or_default().push(agent.row);
            }
        }
        for (file, mut rows) in wanted {
            rows.sort_unstable();
            let Some(table) = self.table(file)? else { continue };
            table.read::<KeepError>(&rows, |version| {
                let text = version.rows().next().and_then(|row| version.text().get(row));
                match text.map(agent::read) {
                    Some(Ok(agent)) => {
                        found.insert(version.run, (agent, version.collected));
                    }
                    _ => tracing::warn!(job = version.run.0, "what agents said cannot be read"),
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// What agents measured of runs, and when that was asked for.
type Measured = HashMap<RunKey, (AgentUse, Timestamp)>;

/// A part while it is written.
struct Writing {
    part: Part,
    writer: ProcessedWriter<tempfile::NamedTempFile>,
    agents: Measured,
    /// If it has runs under numbers that are not their own: those that came under their own.
    shown: Option<HashSet<u64>>,
    /// Runs that are taken from `processed` although `raw` has them: what it has is older, or cannot
    /// be read.
    as_they_stand: HashSet<RunKey>,
}

impl Writing {
    /// Whether the run has come under its own number already.
    fn is_double(&mut self, run: &Run<'_>) -> bool {
        let Some(shown) = &mut self.shown else { return false };
        let name = stand_in::shown(&run.shown_id, run.submit);
        if stand_in::is(run.job.get()) {
            return shown.contains(&name);
        }
        shown.insert(name);
        false
    }
}

/// When the last row of a raw file was collected.
fn latest(table: &Table) -> Result<Option<Timestamp>, ArchiveError> {
    let mut latest = None;
    for batch in table.batches(Some(&["collected_at"]), false)? {
        latest = latest.max(times(&batch?, "collected_at").flatten().max());
    }
    Ok(latest)
}

/// The files of `processed`, except those that are lost or damaged: what is in them is what is to
/// be made anew.
fn existing(
    archive: &Archive,
    cluster: &str,
    entry: &Cluster,
) -> Result<BTreeMap<Part, Table>, ArchiveError> {
    let mut parts = BTreeMap::new();
    let days = entry.days.iter().map(|(day, file)| (Part::Day(*day), *file));
    for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
        match archive.open(cluster, part, file) {
            Ok(Some(table)) => drop(parts.insert(part, table)),
            Ok(None) => {
                let file = part.name(cluster);
                tracing::warn!(file, "a file is missing and is made anew");
            }
            Err(ArchiveError::Content { path, why }) => {
                tracing::warn!(path = %path.display(), why, "a file is damaged and is made anew");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(parts)
}

/// The run of a version, and the digest of its rows; `None` if they cannot be read.
fn with_run<T>(
    version: &Version,
    layout: Option<&Layout>,
    cluster: &str,
    then: impl FnOnce(Run<'_>, i32) -> T,
) -> Option<T> {
    match version.form {
        Form::Plain => {
            let layout = layout?;
            let text = text_of(version.text());
            let rows: Option<Vec<(&str, Vec<u32>)>> = version
                .rows()
                .map(|place| text.get(place).map(|text| (text, row::ends(text))))
                .collect();
            let rows = rows?;
            let rows: Option<Vec<Row<'_>>> =
                rows.iter().map(|(text, ends)| Row::new(layout, text, 0, ends)).collect();
            let (run, _) = assemble(rows?.into_iter(), cluster)?.ok()?;
            Some(then(run, digest(version.text())))
        }
        Form::Mended => {
            let layout = layout?;
            let texts: Option<Vec<Mended>> =
                version.rows().map(|place| Mended::read(version.text().get(place)?)).collect();
            let texts = texts?;
            let (run, _) =
                assemble(texts.iter().filter_map(|text| text.row(layout)), cluster)?.ok()?;
            Some(then(run, Mended::digest(&texts)))
        }
        Form::Import => {
            let text = version.rows().next().and_then(|row| version.text().get(row))?;
            Some(then(import::read(text, cluster)?, digest(version.text())))
        }
        // A version's rows say all again.
        Form::Short | Form::Malformed | Form::Agent => None,
    }
}
