//! The archive as a whole: how it is opened, read consistently and changed all at once.
//!
//! A change is a generation. Its files are written to `staging/G` (raw ones to their place, where
//! their names say G), then the manifest that names them replaces the old one, and that is the
//! change. Then they are moved to their places. Whoever dies in between leaves either files that
//! the manifest does not name, which the next writer deletes, or files that it names and that are
//! not yet moved, which readers find in staging and the next writer moves.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::day::Day;
use super::lock::Lock;
use super::manifest::{self, Entry, Manifest, Writer};
use super::read::Table;
use super::shelf::{Before, Item, Shelf};
use super::{ArchiveError, STAGING, forgotten};

/// How often a reader begins anew because a writer was quicker.
const TRIES: usize = 20;

/// Minutes after which another machine that is changing the archive is taken for dead.
const CLAIM: i64 = 120;

/// What to do about a manifest that is lost or damaged.
const REMEDY: &str = "put the right one back from a backup, or delete it: then `steward archive \
                      rebuild` makes it anew";

/// A part of `processed` of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Runs that ended on this UTC day.
    Day(Day),
    /// Runs that have not ended.
    Open,
}

impl Part {
    /// The name of its file.
    #[must_use]
    pub fn name(self, cluster: &str) -> String {
        match self {
            Part::Day(day) => format!("processed/cluster={cluster}/{day}.parquet"),
            Part::Open => format!("processed/cluster={cluster}/open.parquet"),
        }
    }
}

/// An archive.
#[derive(Clone)]
pub struct Archive {
    shelf: Arc<dyn Shelf>,
    lock: PathBuf,
}

impl Archive {
    /// The archive on this shelf. Who changes it holds the lock at this path.
    #[must_use]
    pub fn new(shelf: Arc<dyn Shelf>, lock: PathBuf) -> Archive {
        Archive { shelf, lock }
    }

    /// The right to change it; waits at most this long for another writer, and says so.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn lock(&self, patience: Duration, waiting: impl FnOnce()) -> Result<Lock, ArchiveError> {
        let busy = || ArchiveError::Busy { path: self.lock.clone() };
        self.lock_unless(patience, &|| false, waiting)?.ok_or_else(busy)
    }

    /// The same; `None` if `stop` said so while it waited.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn lock_unless(
        &self,
        patience: Duration,
        stop: &dyn Fn() -> bool,
        waiting: impl FnOnce(),
    ) -> Result<Option<Lock>, ArchiveError> {
        Lock::take(&self.lock, patience, stop, waiting)
    }

    /// Where its files are.
    #[must_use]
    pub fn shelf(&self) -> &dyn Shelf {
        &*self.shelf
    }

    /// What it holds; an archive that is not there yet holds nothing.
    ///
    /// # Errors
    /// If the manifest cannot be read or is of a later version.
    pub fn manifest(&self) -> Result<Manifest, ArchiveError> {
        Ok(self.stamped()?.0)
    }

    /// The same with what stands in its place.
    fn stamped(&self) -> Result<(Manifest, Before), ArchiveError> {
        let path = self.shelf.address(manifest::NAME);
        let Some((mut file, stamp)) = self.shelf.open_stamped(manifest::NAME)? else {
            let forgotten = forgotten::read(&*self.shelf)?;
            return Ok((Manifest { forgotten, ..Manifest::default() }, Before::Nothing));
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(super::shelf::at(&path))?;
        let read: Manifest = serde_json::from_str(&text).map_err(|error| {
            ArchiveError::Manifest { path: path.clone(), why: format!("{error}; {REMEDY}") }
        })?;
        if read.schema > manifest::SCHEMA {
            let why = format!(
                "it has version {} and this program knows {}; use a newer steward",
                read.schema,
                manifest::SCHEMA
            );
            return Err(ArchiveError::Manifest { path, why });
        }
        Ok((read, Before::File(stamp)))
    }

    /// The file of a part, as this manifest means it. `None` if a later generation has replaced it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(
        &self,
        cluster: &str,
        part: Part,
        entry: Entry,
    ) -> Result<Option<Table>, ArchiveError> {
        Ok(self.find(cluster, part, entry)?.map(|(_, table)| table))
    }

    /// The same with the name under which it stands at the moment.
    pub(super) fn find(
        &self,
        cluster: &str,
        part: Part,
        entry: Entry,
    ) -> Result<Option<(String, Table)>, ArchiveError> {
        let name = part.name(cluster);
        // While its writer moves it, the file is in one place or the other, or just went from
        // staging to its place between the two looks.
        for name in [&name, &staged(entry.generation, entry.mark, &name), &name] {
            if let Some(file) = self.shelf.open(name)? {
                let table = Table::new(file, &self.shelf.address(name))?;
                if table.generation() == Some(entry.generation) {
                    return Ok(Some((name.clone(), table)));
                }
            }
        }
        Ok(None)
    }

    /// Reads with `read` what one manifest names. If a writer was quicker, reads again.
    ///
    /// # Errors
    /// If `read` fails, or writers are always quicker.
    pub fn consistently<T, E: From<ArchiveError>>(
        &self,
        mut read: impl FnMut(&Manifest) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        for _ in 0..TRIES {
            if let Some(answer) = read(&self.manifest()?)? {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(self.incomplete().into())
    }

    /// All raw files of a cluster that count, oldest generation first.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn raw_files(&self, cluster: &str, upto: u64) -> Result<Vec<RawFile>, ArchiveError> {
        let items = self.shelf.list(&format!("raw/cluster={cluster}"))?;
        let mut files: Vec<RawFile> = items.into_iter().filter_map(RawFile::of).collect();
        files.retain(|file| file.generation <= upto);
        files.sort_by(|a, b| (a.generation, &a.item.name).cmp(&(b.generation, &b.item.name)));
        Ok(files)
    }

    /// The clusters of which it holds anything.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn clusters(&self, manifest: &Manifest) -> Result<Vec<String>, ArchiveError> {
        let mut names: Vec<String> = manifest.clusters.keys().cloned().collect();
        for item in self.shelf.list("raw")? {
            let cluster = item.name.strip_prefix("raw/cluster=").and_then(|at| at.split_once('/'));
            names.extend(cluster.map(|(cluster, _)| cluster.to_owned()));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Begins a change. Tidies up after a writer that died.
    ///
    /// # Errors
    /// If the archive cannot be read or tidied.
    pub fn change(&self, lock: Lock) -> Result<Change, ArchiveError> {
        let (manifest, before) = self.stamped()?;
        self.must_match(&manifest)?;
        self.change_from(lock, manifest, before)
    }

    /// Refuses a manifest that is missing or old while there are files of a later one.
    ///
    /// # Errors
    /// If it is; says what to do.
    pub fn must_match(&self, manifest: &Manifest) -> Result<(), ArchiveError> {
        // What a writer that died leaves is of the next generation. What is later is of a manifest
        // that is gone, and is not to be taken for rubbish.
        let latest = self.latest()?;
        let orphaned = manifest.generation == 0 && !self.shelf.list("processed")?.is_empty();
        if latest > manifest.generation + 1 || orphaned {
            let path = self.shelf.address(manifest::NAME);
            let why = format!(
                "it is missing or old (generation {}), for there are rows of generation {latest}; \
                 {REMEDY}",
                manifest.generation
            );
            return Err(ArchiveError::Manifest { path, why });
        }
        Ok(())
    }

    /// The latest generation of which there are rows.
    pub(super) fn latest(&self) -> Result<u64, ArchiveError> {
        let items = self.shelf.list("raw")?.into_iter();
        Ok(items.filter_map(RawFile::of).map(|file| file.generation).max().unwrap_or(0))
    }

    pub(super) fn change_from(
        &self,
        lock: Lock,
        manifest: Manifest,
        before: Before,
    ) -> Result<Change, ArchiveError> {
        let mut change =
            Change { archive: self.clone(), manifest, before, staged: Vec::new(), lock };
        change.claim()?;
        change.tidy()?;
        change.manifest.generation += 1;
        change.manifest.mark = change.manifest.writer.as_ref().map_or(0, Writer::mark);
        Ok(change)
    }
}

/// A raw file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// The file.
    pub item: Item,
    /// The generation in which it was written.
    pub generation: u64,
    /// The UTC day on which sacct was asked.
    pub day: Day,
}

impl RawFile {
    fn of(item: Item) -> Option<RawFile> {
        let mut parts = item.name.rsplit('/');
        let generation = parts.next()?.split('-').next()?.parse().ok()?;
        let day = parts.next()?.strip_prefix("date=")?.parse().ok()?;
        Some(RawFile { item, generation, day })
    }
}

pub(super) fn staged(generation: u64, mark: u32, name: &str) -> String {
    match mark {
        0 => format!("{STAGING}/{generation}/{name}"),
        mark => format!("{STAGING}/{generation}-{mark:08x}/{name}"),
    }
}

/// A change that is being made. Nothing of it counts before [`Change::commit`].
pub struct Change {
    archive: Archive,
    /// What the archive will hold.
    pub manifest: Manifest,
    /// What stands in the manifest's place.
    before: Before,
    /// Files that are in staging, by the name of their place.
    staged: Vec<String>,
    lock: Lock,
}

impl Change {
    /// The archive.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The generation that is being made.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// The name of a raw file of this generation.
    #[must_use]
    pub fn raw_name(&self, cluster: &str, asked: Day, what: &str) -> String {
        let (generation, mark) = (self.generation(), self.manifest.mark);
        let mark = if mark == 0 { String::new() } else { format!("{mark:08x}-") };
        format!("raw/cluster={cluster}/date={asked}/{generation:08}-{mark}{what}.parquet")
    }

    /// Puts a file into staging.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn stage(&mut self, file: tempfile::NamedTempFile, name: &str) -> Result<(), ArchiveError> {
        self.archive.shelf.put(file, &staged(self.generation(), self.manifest.mark, name))?;
        self.staged.push(name.to_owned());
        Ok(())
    }

    /// Stages the file of a part and enters it in the manifest.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn stage_part(
        &mut self,
        cluster: &str,
        part: Part,
        file: tempfile::NamedTempFile,
        rows: u64,
    ) -> Result<(), ArchiveError> {
        let bytes = file.as_file().metadata().map_err(super::shelf::at(file.path()))?.len();
        let table = file.reopen().map_err(super::shelf::at(file.path()))?;
        let jobs = Table::new(table, file.path())?.job_range();
        let entry =
            Entry { generation: self.generation(), mark: self.manifest.mark, rows, bytes, jobs };
        self.stage(file, &part.name(cluster))?;
        let cluster = self.manifest.clusters.entry(cluster.to_owned()).or_default();
        match part {
            Part::Day(day) => {
                cluster.days.insert(day, entry);
            }
            Part::Open => cluster.open = Some(entry),
        }
        Ok(())
    }

    /// Makes the change count, moves its files to their places, and gives the lock back.
    ///
    /// # Errors
    /// If the manifest cannot be written: then nothing has changed. If a file cannot be moved, it is
    /// [`ArchiveError::Kept`]: then the change counts, and the next writer moves the file.
    pub fn commit(mut self) -> Result<Lock, ArchiveError> {
        self.manifest.writer = None;
        let kept = forgotten::keep(&*self.archive.shelf, &self.manifest.forgotten);
        if let Err(error) = kept.and_then(|()| self.put_manifest()) {
            // It may be there all the same: only the word that it is was lost.
            let is_there = self.archive.manifest().is_ok_and(|found| found == self.manifest);
            match error {
                // A request that had no answer and was made again.
                ArchiveError::Overtaken { .. } if is_there => {}
                error if is_there => return Err(error.after_change()),
                error => {
                    self.take_back();
                    return Err(error);
                }
            }
        }
        self.tidy().map_err(ArchiveError::after_change)?;
        Ok(self.lock)
    }

    /// Says in the manifest that we are writing, where locks do not say it. Whoever wrote before and
    /// still thinks that it may finds another manifest than its own, and cannot put its next one.
    fn claim(&mut self) -> Result<(), ArchiveError> {
        if !self.archive.shelf.is_shared() {
            return Ok(());
        }
        let now = jiff::Timestamp::now();
        let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let nanoseconds = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX);
        // Of our own machine nobody else is writing: we have the lock.
        if let Some(writer) = self.manifest.writer.take().filter(|writer| writer.host != host) {
            let minutes = nanoseconds.saturating_sub(writer.since) / 60_000_000_000;
            if (0..CLAIM).contains(&minutes) {
                let path = self.archive.shelf.address(manifest::NAME);
                let host = writer.host;
                return Err(ArchiveError::Elsewhere { path, host, minutes, limit: CLAIM });
            }
        }
        let process = std::process::id();
        self.manifest.writer = Some(Writer { host, process, since: nanoseconds });
        self.before = match self.put_manifest() {
            Err(ArchiveError::Overtaken { path }) => match self.archive.stamped()? {
                // A request that had no answer and was made again.
                (found, before) if found == self.manifest => before,
                _ => return Err(ArchiveError::Overtaken { path }),
            },
            stamp => Before::File(stamp?),
        };
        Ok(())
    }

    /// Why a change failed: if another machine has begun one meanwhile it has tidied up, and what is
    /// missing is ours.
    #[must_use]
    pub fn explain(&self, error: ArchiveError) -> ArchiveError {
        let is_others = |found: Manifest| found.writer != self.manifest.writer;
        if !self.archive.shelf.is_shared() || !self.archive.manifest().is_ok_and(is_others) {
            return error;
        }
        self.take_back();
        ArchiveError::Overtaken { path: self.archive.shelf.address(manifest::NAME) }
    }

    /// Takes away what we have put where another machine does not look for rubbish: raw files of a
    /// generation that counts, but is not ours.
    fn take_back(&self) {
        let shelf = &self.archive.shelf;
        let begin = format!("{:08}-{:08x}-", self.generation(), self.manifest.mark);
        let is_ours =
            |item: &Item| item.name.rsplit('/').next().is_some_and(|name| name.starts_with(&begin));
        let items = if self.manifest.mark == 0 { Ok(Vec::new()) } else { shelf.list("raw") };
        let gone = items.and_then(|items| {
            items.iter().filter(|item| is_ours(item)).try_for_each(|item| shelf.delete(&item.name))
        });
        if let Err(error) = gone {
            tracing::warn!(%error, "raw rows of a change that does not count stay");
        }
    }

    /// Puts the manifest in the place of the one that was there before.
    fn put_manifest(&self) -> Result<Option<String>, ArchiveError> {
        let shelf = &self.archive.shelf;
        let mut file = shelf.scratch()?;
        let text = serde_json::to_vec_pretty(&self.manifest).map_err(|error| {
            let path = shelf.address(manifest::NAME);
            ArchiveError::Manifest { path, why: error.to_string() }
        })?;
        let path = file.path().to_owned();
        file.write_all(&text).map_err(super::shelf::at(&path))?;
        shelf.replace(file, manifest::NAME, &self.before)
    }

    /// Moves what this generation staged to its place; deletes what no manifest names.
    fn tidy(&self) -> Result<(), ArchiveError> {
        let shelf = &self.archive.shelf;
        let mine = staged(self.generation(), self.manifest.mark, "");
        for item in shelf.list(STAGING)? {
            match item.name.strip_prefix(&mine) {
                Some(place) => {
                    shelf.rename(&item.name, place)?;
                    // Directories of staging that are now empty.
                    shelf.delete(&item.name)?;
                }
                None => shelf.delete(&item.name)?,
            }
        }
        shelf.drop_empty(STAGING);
        for item in shelf.list("raw")? {
            let later =
                RawFile::of(item.clone()).is_some_and(|file| file.generation > self.generation());
            if later {
                shelf.delete(&item.name)?;
            }
        }
        self.drop_unnamed()
    }

    /// Deletes files of `processed` that the manifest no longer names.
    fn drop_unnamed(&self) -> Result<(), ArchiveError> {
        for item in self.archive.shelf.list("processed")? {
            let named = || {
                let (cluster, file) =
                    item.name.strip_prefix("processed/cluster=")?.split_once('/')?;
                let cluster = self.manifest.clusters.get(cluster)?;
                match file.strip_suffix(".parquet")? {
                    "open" => cluster.open,
                    day => cluster.days.get(&day.parse().ok()?).copied(),
                }
            };
            if item.name.ends_with(".parquet") && named().is_none() {
                self.archive.shelf.delete(&item.name)?;
            }
        }
        Ok(())
    }
}
