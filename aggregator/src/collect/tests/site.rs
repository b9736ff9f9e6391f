//! A site with an archive, and a sacct that says what a test wants.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steward_common::time::Timestamp;
use tempfile::NamedTempFile;

use crate::archive::cells::{texts, whole};
use crate::archive::raw::Form;
use crate::archive::raw_read::RawTable;
use crate::archive::shelf::{Directory, Item, Shelf};
use crate::archive::{Archive, ArchiveError, Part};
use crate::collect::plan::Terms;
use crate::collect::{self, CollectError, Collected, Request, Watch};
use crate::keep::retention::Retention;
use crate::source::slurm::sacct::Sacct;

/// Answers from files beside it, in which `~` is a delimiter and `@` the end of a time: `window` for
/// a stretch of time, `jobs` and `bare` for jobs by number with and without users' texts, `json`.
/// By number it fails if there is a file `fail`. What it is asked for is added to `calls`.
pub(super) const SACCT: &str = r#"#!/bin/sh
cd "${0%/*}" || exit 1
case "$*" in
*--helpformat*) echo JobIDRaw JobID User State Submit Start End JobName; exit ;;
*--json*) answer=json ;;
*--jobs=*JobName*|*JobName*--jobs=*) answer=jobs ;;
*--jobs=*) answer=bare ;;
*) answer=window ;;
esac
echo "$answer $*" >>calls
[ $answer = window ] || [ ! -e fail ] || { echo busy >&2; exit 1; }
[ -e $answer ] || exit 0
sed "s/~/$(printf '\037')/g; s/@/${SLURM_TIME_FORMAT#%s}/g" $answer
"#;

pub(super) struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

/// A directory that keeps in mind which files were opened.
pub(super) struct Told(Directory, Mutex<Vec<String>>, pub(super) Mutex<Option<Fault>>);

/// What goes wrong.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Files cannot be moved.
    Rename,
    /// The manifest is put in its place, but nobody hears of it.
    Manifest,
}

impl Told {
    fn fails(&self, fault: Fault, name: &str) -> Result<(), ArchiveError> {
        if *self.2.lock().unwrap() != Some(fault) {
            return Ok(());
        }
        let source = std::io::Error::other("the disk is gone");
        Err(ArchiveError::File { path: PathBuf::from(name), source })
    }
}

impl Shelf for Told {
    fn address(&self, name: &str) -> PathBuf {
        self.0.address(name)
    }

    fn scratch(&self) -> Result<NamedTempFile, ArchiveError> {
        self.0.scratch()
    }

    fn put(&self, file: NamedTempFile, name: &str) -> Result<(), ArchiveError> {
        self.0.put(file, name)?;
        if name == "manifest.json" { self.fails(Fault::Manifest, name) } else { Ok(()) }
    }

    fn open(&self, name: &str) -> Result<Option<File>, ArchiveError> {
        self.1.lock().unwrap().push(name.to_owned());
        self.0.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), ArchiveError> {
        self.fails(Fault::Rename, from)?;
        self.0.rename(from, to)
    }

    fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        self.0.delete(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<Item>, ArchiveError> {
        self.0.list(prefix)
    }
}

pub(super) struct Site(tempfile::TempDir, pub(super) Arc<Told>);

impl Site {
    pub(super) fn new() -> Site {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Directory::new(&directory.path().join("archive"));
        let site = Site(directory, Arc::new(Told(shelf, Mutex::default(), Mutex::default())));
        site.write("sacct", SACCT);
        site
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(super) fn archive(&self) -> Archive {
        let shelf = Arc::clone(&self.1);
        Archive::new(shelf, self.path("lock"))
    }

    /// The days whose files were opened since the last look.
    pub(super) fn opened(&self) -> BTreeSet<String> {
        let opened = std::mem::take(&mut *self.1.1.lock().unwrap());
        let days = opened.iter().filter_map(|name| name.strip_prefix("processed/cluster=c1/"));
        days.filter(|name| !name.starts_with("open")).map(str::to_owned).collect()
    }

    pub(super) fn request(&self, now: i64) -> Request {
        // By the shell: a file just written may be open for writing in a child of another test.
        let argv = ["sh".to_owned(), self.path("sacct").display().to_string()];
        let hour = Duration::from_secs(3600);
        Request {
            cluster: "c1".to_owned(),
            sacct: Sacct::new(&argv, None, 10 * hour, Arc::new(|| false)),
            terms: Terms {
                now: Timestamp::new(now),
                since: Timestamp::new(0),
                overlap: hour,
                grace: hour,
            },
            parallel: 1,
            retries: 0,
            raw: true,
            agents: None,
            retention: Retention::default(),
            sacctmgr: None,
            stop: Arc::new(|| false),
        }
    }

    pub(super) fn collect(&self, now: i64) -> Collected {
        self.collect_as(&self.request(now))
    }

    pub(super) fn collect_as(&self, request: &Request) -> Collected {
        self.try_collect(request).unwrap()
    }

    pub(super) fn try_collect(&self, request: &Request) -> Result<Collected, CollectError> {
        let archive = self.archive();
        // A process that another test is about to start may have it for a moment.
        let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
        collect::run(&archive, lock, request, &Unwatched).map(|(collected, _)| collected)
    }

    /// How often each question was asked since the last look.
    pub(super) fn calls(&self, of: &str) -> usize {
        let calls = fs::read_to_string(self.path("calls")).unwrap();
        calls.lines().filter(|line| line.starts_with(of)).count()
    }

    /// Every run: its number, name and state, and whether it is open.
    pub(super) fn runs(&self) -> Vec<(i64, String, String, bool)> {
        let archive = self.archive();
        let manifest = archive.manifest().unwrap();
        let cluster = &manifest.clusters["c1"];
        let days = cluster.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
        let mut runs = Vec::new();
        for (part, entry) in days.chain(cluster.open.map(|entry| (Part::Open, entry))) {
            let table = archive.open("c1", part, entry).unwrap().unwrap();
            for batch in table.batches(None, false).unwrap() {
                let batch = batch.unwrap();
                let names = texts(&batch, "job_name").zip(texts(&batch, "state"));
                for (job, (name, state)) in whole(&batch, "job_id_raw").zip(names) {
                    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                    runs.push((job.unwrap(), text(name), text(state), part == Part::Open));
                }
            }
        }
        runs.sort();
        runs
    }

    /// The forms of all raw rows.
    pub(super) fn forms(&self) -> Vec<&'static str> {
        self.raw().into_iter().map(|(form, _)| form.name()).collect()
    }

    /// Texts that are kept because they could not be read, in order.
    pub(super) fn malformed(&self) -> Vec<String> {
        let raw = self.raw().into_iter().filter(|(form, _)| *form == Form::Malformed);
        let mut texts: Vec<String> = raw.map(|(_, text)| text).collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.clone()));
        texts
    }

    fn raw(&self) -> Vec<(Form, String)> {
        let archive = self.archive();
        let mut all = Vec::new();
        for file in archive.raw_files("c1", u64::MAX).unwrap() {
            let table = RawTable::open(&archive, &file).unwrap();
            table
                .rows::<ArchiveError>(|row| {
                    all.push((row.form, String::from_utf8_lossy(row.text).into_owned()));
                    Ok(())
                })
                .unwrap();
        }
        all
    }
}
