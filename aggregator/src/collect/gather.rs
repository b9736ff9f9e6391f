//! One part of a collection: sacct's answer for the windows of a day becomes a raw file and the
//! parts of `processed` it belongs to.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use steward_common::job::{AgentUse, Run};
use steward_common::slurm::sacct::{Draft, Layout, Oddity};
use steward_common::time::Timestamp;
use steward_common::window::Window;
use tempfile::NamedTempFile;

use super::counts::Counts;
use super::measure::Measurements;
use super::numbers::Numbers;
use super::unread::{Added, Unread};
use super::{CollectError, Context, run};
use crate::archive::column::Stored;
use crate::archive::manifest::Forgotten;
use crate::archive::part::PartWriter;
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::read::{RunKey, RunSet, Table};
use crate::archive::{ArchiveError, Day, Part, agent};
use crate::source::slurm::lines::{Job, Piece};

/// Odd values of which an example is kept.
pub(super) const EXAMPLES: usize = 5;

/// Files that a part of a collection has written.
pub struct Gathered {
    /// Files of `processed`: their rows.
    pub parts: BTreeMap<Part, (NamedTempFile, u64)>,
    /// The raw file, if there is anything new.
    pub raw: Option<NamedTempFile>,
    /// The numbers of jobs with a run that is new or has changed.
    pub jobs: RoaringBitmap,
    /// Jobs whose rows could not be cut, to be asked for again.
    pub broken: Vec<Broken>,
    /// Runs that were open before and have not been seen to be open now.
    pub unseen: Vec<RunKey>,
    /// Runs that were open before and have ended.
    pub ended: Vec<RunKey>,
    /// The earliest start of an open run.
    pub open_since: Option<Timestamp>,
    /// Texts that could not be read.
    pub unread: Unread,
    /// What was seen.
    pub counts: Counts,
    /// Examples of what could not be read.
    pub examples: Vec<String>,
}

/// A job whose rows could not be cut.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Broken {
    /// Its number.
    pub job: u32,
    /// When it was submitted; `None` if its own row is missing.
    pub submit: Option<Timestamp>,
    /// The rows as they came.
    pub bytes: Vec<u8>,
    /// Parts of them that are no rows, unless a text of the job has them.
    pub doubt: Vec<Vec<u8>>,
}

/// A part of a collection while it goes on.
pub struct Gather<'c> {
    context: &'c Context,
    layout: &'c Layout,
    /// The jobs that may come; `None` if any may.
    asked: Option<RoaringBitmap>,
    parts: BTreeMap<Part, PartWriter>,
    raw: RawWriter<NamedTempFile>,
    measurements: Measurements<'c>,
    jobs: Numbers,
    ended: Vec<RunKey>,
    broken: Vec<Broken>,
    open_since: Option<Timestamp>,
    unread: Unread,
    counts: Counts,
    examples: Vec<String>,
}

impl<'c> Gather<'c> {
    /// Begins. Where only jobs that were `asked` for may come, little need be known of the days to
    /// which they are added, and they may be of many days.
    ///
    /// # Errors
    /// If nothing can be written.
    pub fn new(
        context: &'c Context,
        layout: &'c Layout,
        asked: Option<RoaringBitmap>,
    ) -> Result<Gather<'c>, ArchiveError> {
        let file = context.archive.shelf().scratch()?;
        let raw = RawWriter::new(file, context.generation, &layout.names(), context.now)?;
        let agents = context.agents.as_deref();
        let measurements = Measurements::new(agents, &context.cluster, context.now);
        Ok(Gather {
            context,
            layout,
            asked,
            parts: BTreeMap::new(),
            raw,
            measurements,
            jobs: Numbers::default(),
            ended: Vec::new(),
            broken: Vec::new(),
            open_since: None,
            unread: Unread::default(),
            counts: Counts::default(),
            examples: Vec::new(),
        })
    }

    /// What all parts of the collection share.
    #[must_use]
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// The fields of the rows that come.
    #[must_use]
    pub fn layout(&self) -> &'c Layout {
        self.layout
    }

    /// Makes ready for what ended in a window.
    pub fn begin(&mut self, window: Window) {
        self.measurements.load(window);
    }

    /// Begins the part of what has not ended: it is written anew each time, even if nothing is open.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn begin_open(&mut self) -> Result<(), ArchiveError> {
        self.part(Part::Open).map(drop)
    }

    /// Whether this run, which ended then or has not, has come before in this part of the collection.
    #[must_use]
    pub fn has_taken(&self, key: RunKey, end: Option<Timestamp>) -> bool {
        self.parts.get(&part_at(end)).is_some_and(|writer| writer.has_taken(key))
    }

    /// Takes a job of the answer, or leaves it.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn piece(
        &mut self,
        piece: Piece<'_>,
        wanted: impl Fn(&Run<'_>) -> bool,
    ) -> Result<(), CollectError> {
        match piece {
            Piece::Whole(job) => self.job(job, wanted),
            Piece::Broken { id, submit, bytes, doubt } => {
                match id.and_then(|id| id.parse().ok()) {
                    // Asked for a part of an array, sacct tells of the others, too.
                    Some(job) if self.asked.as_ref().is_some_and(|jobs| !jobs.contains(job)) => {}
                    Some(job) => {
                        let submit = submit.and_then(|at| Timestamp::from_slurm(at).ok().flatten());
                        let doubt = doubt.into_iter().map(<[u8]>::to_vec).collect();
                        let bytes = bytes.into_owned();
                        self.broken.push(Broken { job, submit, bytes, doubt });
                    }
                    None => self.stray(None, &bytes)?,
                }
                Ok(())
            }
            Piece::Stray { id, bytes } => self.stray(id.and_then(|id| id.parse().ok()), bytes),
        }
    }

    fn job(&mut self, job: Job<'_>, wanted: impl Fn(&Run<'_>) -> bool) -> Result<(), CollectError> {
        let context = self.context;
        let mut rows = job.rows();
        let Some(own) = rows.next() else { return Ok(()) };
        // Stays where it is made: a draft is large.
        let mut draft = Draft::new(&own);
        let draft = match &mut draft {
            Ok(draft) => draft,
            Err(oddity) => {
                let id = own.id().0;
                self.example(id, oddity);
                self.malformed(id.parse().ok(), &job.bytes())?;
                return Ok(());
            }
        };
        // What the own row says decides, before the others are read.
        let run = draft.run();
        if !wanted(run) || context.is_forgotten(&run.user, run.submit) {
            return Ok(());
        }
        let (run, oddities) = run::complete(draft, rows, &context.cluster);
        let digest = run::digest(&job.bytes());
        let count = 1 + u64::from(run.steps.unwrap_or(0));
        self.counts.rows += count;
        let is_measured = self.measure(run, digest)?;
        if !self.keep(run, digest, is_measured)? {
            return Ok(());
        }
        for oddity in oddities {
            self.counts.odd += 1;
            self.example(&run.shown_id, oddity);
        }
        if !self.context.keeps_raw {
            return Ok(());
        }
        let (number, submit) = (Some(run.job.get()), Some(run.submit));
        let end = run.end.filter(|_| run.ended);
        let key = Key { job: number, submit, end, step: None };
        self.raw.push_run(key, job.answer(), job.rows(), job.may_have_separators())?;
        Ok(())
    }

    /// Adds what was measured of a run: what agents say now, or what they said before if that was
    /// more, as when Prometheus does not answer; and its GPU time, whichever knows it. Whether any of
    /// it is new.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn measure(&mut self, run: &mut Run<'_>, digest: i32) -> Result<bool, ArchiveError> {
        let now = self.measurements.of(run);
        let key = (run.job.get(), run.submit);
        let before = match part_of(run) {
            part @ Part::Day(_) => self.part(part)?.measured_before(key, digest, now.as_ref())?,
            Part::Open => None,
        };
        let coverage = |agent: &Option<AgentUse>| agent.as_ref().and_then(|agent| agent.coverage);
        let gpus = |agent: &Option<AgentUse>| agent.as_ref().and_then(|agent| agent.gpu_seconds);
        let (gpus_now, gpus_before) = (gpus(&now), gpus(&before));
        let is_more = now.is_some() && coverage(&now) >= coverage(&before);
        let is_new = is_more || (gpus_now.is_some() && gpus_before.is_none());
        if let Some(mut agent) = if is_more { now } else { before.or(now) } {
            agent.gpu_seconds = agent.gpu_seconds.or(gpus_now).or(gpus_before);
            run::attach(run, agent);
        }
        Ok(is_new)
    }

    /// Whether the archive has the run as one that has ended.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn has_ended_before(&mut self, run: &Run<'_>) -> Result<bool, ArchiveError> {
        match part_of(run) {
            part @ Part::Day(_) => Ok(self.part(part)?.knows((run.job.get(), run.submit))),
            Part::Open => Ok(false),
        }
    }

    /// The jobs whose rows could not be cut so far.
    pub fn take_broken(&mut self) -> Vec<Broken> {
        std::mem::take(&mut self.broken)
    }

    /// Puts a run where it belongs; whether it was new or its rows have changed. `is_measured` says
    /// that what agents measured of it is new.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(
        &mut self,
        run: &Run<'_>,
        digest: i32,
        is_measured: bool,
    ) -> Result<bool, CollectError> {
        let part = part_of(run);
        let key = (run.job.get(), run.submit);
        let collected = self.context.now;
        if part != Part::Open && self.context.open.contains(&key) {
            self.ended.push(key);
        }
        let writer = self.part(part)?;
        // What has not ended is written anew each time, but its rows only if they have changed.
        let known = writer.has(key, digest);
        let seen_better = writer.is_seen_better(key, run.agent.as_ref());
        if known && !seen_better && part != Part::Open {
            return Ok(false);
        }
        if !writer.push(key, &Stored { run, collected, digest })? {
            return Ok(false);
        }
        if part == Part::Open {
            self.open_since(run.start);
        }
        if let Some(agent) = run.agent.as_ref().filter(|_| is_measured) {
            self.measured(run, agent)?;
        }
        if !known || seen_better {
            // Its rank is found anew.
            self.jobs.add(run.job.get());
        }
        if !known {
            self.counts.runs += 1;
        }
        Ok(!known)
    }

    /// Keeps what agents measured of a run as it is.
    fn measured(&mut self, run: &Run<'_>, agent: &AgentUse) -> Result<(), ArchiveError> {
        self.counts.measured += 1;
        if !self.context.keeps_raw {
            return Ok(());
        }
        let end = run.end.filter(|_| run.ended);
        let key = Key { job: Some(run.job.get()), submit: Some(run.submit), end, step: None };
        match agent::write(agent) {
            Ok(text) => self.raw.push(key, Form::Agent, text.as_bytes()),
            // Numbers and names; they can always be written.
            Err(_) => Ok(()),
        }
    }

    /// Keeps text that is no row, and shows it, unless it was kept before or is about somebody who
    /// is forgotten.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn stray(&mut self, job: Option<u32>, bytes: &[u8]) -> Result<(), CollectError> {
        if self.malformed(job, bytes)? && self.examples.len() < EXAMPLES {
            let text = String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes)).into_owned();
            self.examples.push(format!("text that is no row: {text:?}"));
        }
        Ok(())
    }

    /// Keeps rows of a job that could not be cut, and whose texts sacct does not tell otherwise, and
    /// shows them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn uncut(&mut self, job: u32, bytes: &[u8]) -> Result<(), CollectError> {
        if self.malformed(Some(job), bytes)? && self.examples.len() < EXAMPLES {
            let text = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
            let why = "archived without the users' texts, which sacct does not give as JSON";
            self.examples.push(format!("job {job}: {why}: {text:?}"));
        }
        Ok(())
    }

    /// Keeps rows that cannot be read, unless they were kept before or are about somebody who is
    /// forgotten; whether they are new.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn malformed(&mut self, job: Option<u32>, bytes: &[u8]) -> Result<bool, CollectError> {
        let context = self.context;
        if Forgotten::is_named(&context.forgotten, &context.cluster, bytes) {
            return Ok(false);
        }
        match self.unread.add(&context.entry, job, bytes) {
            Added::Known => Ok(false),
            Added::Held => Ok(true),
            Added::Full => {
                let key = Key { job, submit: None, end: None, step: None };
                self.push_raw(key, Form::Malformed, bytes)?;
                Ok(true)
            }
        }
    }

    /// Keeps a row that was put together again.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn mended(&mut self, key: Key<'_>, text: &[u8]) -> Result<(), CollectError> {
        self.push_raw(key, Form::Mended, text)
    }

    fn push_raw(&mut self, key: Key<'_>, form: Form, text: &[u8]) -> Result<(), CollectError> {
        if self.context.keeps_raw {
            self.raw.push(key, form, text)?;
        }
        Ok(())
    }

    fn example(&mut self, id: &str, oddity: &Oddity) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(format!("job {id}: {}: {}", oddity.field.name(), oddity.error));
        }
    }

    fn part(&mut self, part: Part) -> Result<&mut PartWriter, ArchiveError> {
        use std::collections::btree_map::Entry;

        match self.parts.entry(part) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let existing = self.context.table(part)?;
                let (shelf, generation) = (self.context.archive.shelf(), self.context.generation);
                let asked = self.asked.as_ref();
                Ok(entry.insert(PartWriter::new(shelf, generation, existing, asked)?))
            }
        }
    }

    /// Keeps open runs of which sacct says nothing as they were.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn carry(&mut self, from: &Table, runs: &RunSet) -> Result<(), ArchiveError> {
        let since = self.part(Part::Open)?.carry(from, runs)?;
        self.open_since(since);
        Ok(())
    }

    /// An open run began then.
    fn open_since(&mut self, start: Option<Timestamp>) {
        self.open_since = match (self.open_since, start) {
            (Some(since), Some(start)) => Some(since.min(start)),
            (since, start) => since.or(start),
        };
    }

    /// Writes the files. If all that is open was asked for, runs that were open before and are
    /// not now do not stay: they are given back, to be asked for by number.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn finish(self, all_open: bool) -> Result<Gathered, ArchiveError> {
        let mut parts = BTreeMap::new();
        let mut unseen = Vec::new();
        for (part, writer) in self.parts {
            if part == Part::Open && all_open {
                unseen.extend(writer.unseen());
                parts.insert(part, writer.finish(|_| false)?);
            } else if writer.has_new() {
                parts.insert(part, writer.finish(|_| true)?);
            }
        }
        let raw = if self.raw.rows() > 0 { Some(self.raw.finish()?) } else { None };
        Ok(Gathered {
            parts,
            raw,
            jobs: self.jobs.all(),
            broken: self.broken,
            unseen,
            ended: self.ended,
            open_since: self.open_since,
            unread: self.unread,
            counts: self.counts,
            examples: self.examples,
        })
    }
}

/// The part of `processed` a run belongs to.
fn part_of(run: &Run<'_>) -> Part {
    part_at(run.end.filter(|_| run.ended))
}

/// The part of `processed` for what ended then, or has not ended.
fn part_at(end: Option<Timestamp>) -> Part {
    end.map_or(Part::Open, |end| Part::Day(Day::of(end)))
}
