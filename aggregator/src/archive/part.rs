//! A part of `processed` that is being written: new runs first, then those that were there and
//! have not changed.

use std::collections::{HashMap, HashSet};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use roaring::RoaringBitmap;
use steward_common::job::AgentUse;
use steward_common::time::Timestamp;
use tempfile::NamedTempFile;

use super::cells::{times, whole};
use super::column::Stored;
use super::processed::ProcessedWriter;
use super::read::{Known, RunKey, RunList, RunSet, Table};
use super::run_key::Seen;
use super::shelf::Shelf;
use super::{ArchiveError, carry, measured, stand_in};

/// How much more of a run agents must have seen for it to be written anew.
const BETTER: f64 = 0.001;

/// A part while runs come in.
pub struct PartWriter {
    existing: Option<Table>,
    /// Runs that are in the archive.
    known: RunList<Known>,
    writer: ProcessedWriter<NamedTempFile>,
    new: Seen,
    /// What agents measured of runs that are in the archive; read when it is needed.
    measured: Option<HashMap<RunKey, AgentUse>>,
    /// Whether there are runs under numbers that are not their own.
    has_stand_ins: bool,
    /// What may have stood under such a number before it came under its own.
    shown: HashSet<u64>,
}

impl PartWriter {
    /// Begins with what is there. If only runs of certain `jobs` will come, nothing is known of
    /// others.
    ///
    /// # Errors
    /// If that cannot be read, or nothing can be written.
    pub fn new(
        shelf: &dyn Shelf,
        generation: u64,
        existing: Option<Table>,
        jobs: Option<&RoaringBitmap>,
    ) -> Result<PartWriter, ArchiveError> {
        let runs = existing.as_ref().map(|table| table.runs(jobs));
        let known = runs.transpose()?.unwrap_or_default();
        let writer = ProcessedWriter::new(shelf.scratch()?, generation)?;
        let has_stand_ins = known.keys().any(|(job, _)| stand_in::is(job));
        let new = if jobs.is_some() { Seen::default() } else { Seen::of_a_day() };
        let shown = HashSet::new();
        Ok(PartWriter { existing, known, writer, new, measured: None, has_stand_ins, shown })
    }

    /// Whether the archive has this run.
    #[must_use]
    pub fn knows(&self, key: RunKey) -> bool {
        self.known.get(key).is_some()
    }

    /// Whether the archive has this run with these very rows.
    #[must_use]
    pub fn has(&self, key: RunKey, digest: i32) -> bool {
        self.known(key).is_some_and(|known| known.digest == digest)
    }

    /// Whether agents saw more of this run than the archive knows, or its GPU time has come.
    #[must_use]
    pub fn is_seen_better(&self, key: RunKey, agent: Option<&AgentUse>) -> bool {
        let Some(agent) = agent else { return false };
        let known = self.known(key);
        let before = known.and_then(|known| known.coverage).map(f64::from);
        let more = |now: f64| before.is_none_or(|before| now > before + BETTER);
        let gpus = agent.gpu_seconds.is_some() && known.is_some_and(|known| !known.has_gpu_time);
        gpus || agent.coverage.is_some_and(more)
    }

    /// What the archive knows that was measured of a run which is to be written anew: because its
    /// rows have changed, or with what was measured `now`, if that lacks some of it.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn measured_before(
        &mut self,
        key: RunKey,
        digest: i32,
        now: Option<&AgentUse>,
    ) -> Result<Option<AgentUse>, ArchiveError> {
        let less = |known: &Known| {
            let now = |value: fn(&AgentUse) -> Option<f64>| now.and_then(value);
            let coverage = now(|agent| agent.coverage);
            let before = known.coverage.map(f64::from);
            before.is_some_and(|before| coverage.is_none_or(|now| now + BETTER < before))
                || (known.has_gpu_time && now(|agent| agent.gpu_seconds).is_none())
        };
        let is_needed = self.known(key).is_some_and(|known| {
            known.coverage.is_some()
                && (known.digest != digest || (self.is_seen_better(key, now) && less(known)))
        });
        let (true, Some(existing)) = (is_needed, &self.existing) else {
            return Ok(None);
        };
        let measured = match self.measured.take() {
            Some(measured) => measured,
            None => measured::measured(existing)?,
        };
        Ok(self.measured.insert(measured).get(&key).cloned())
    }

    /// Whether the run came in before.
    #[must_use]
    pub fn has_taken(&self, key: RunKey) -> bool {
        self.new.contains(key)
    }

    fn known(&self, key: RunKey) -> Option<&Known> {
        self.known.get(key).filter(|_| !self.new.contains(key))
    }

    /// Adds a run, in place of an older version of it. A run that comes twice stays as it came
    /// first.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, key: RunKey, stored: &Stored<'_>) -> Result<bool, ArchiveError> {
        let is_new = self.new.insert(key);
        if is_new {
            self.writer.push(stored)?;
            if self.has_stand_ins {
                self.shown.insert(stand_in::shown(&stored.run.shown_id, stored.run.submit));
            }
        }
        Ok(is_new)
    }

    /// Adds runs from another file as they stand there; when the first of them started.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn carry(
        &mut self,
        from: &Table,
        runs: &RunSet,
    ) -> Result<Option<Timestamp>, ArchiveError> {
        let mut since: Option<Timestamp> = None;
        for batch in from.batches(None, false)? {
            let batch = batch?;
            let wanted = kept(&batch, |key| runs.contains(&key) && !self.new.contains(key));
            let wanted = filter_record_batch(&batch, &wanted)?;
            since = since.into_iter().chain(times(&wanted, "start_time").flatten()).min();
            self.writer.push_batch(&wanted)?;
        }
        self.new.extend(runs);
        Ok(since)
    }

    /// The runs that were there and have not come again.
    pub fn unseen(&self) -> impl Iterator<Item = RunKey> {
        self.known.keys().filter(|key| !self.new.contains(*key))
    }

    /// Whether anything was added.
    #[must_use]
    pub fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Adds those of the runs that were there, and were not replaced, for which `keep` holds. The
    /// file, and its number of rows.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn finish(
        mut self,
        keep: impl Fn(RunKey) -> bool,
    ) -> Result<(NamedTempFile, u64), ArchiveError> {
        // It is needed no more, and rows that are carried need room.
        self.known = RunList::default();
        if let Some(existing) = &self.existing {
            if self.has_stand_ins && !self.shown.is_empty() {
                carry::shown(existing, |key, id| {
                    if stand_in::is(key.0) && self.shown.contains(&stand_in::shown(id, key.1)) {
                        self.new.insert(key);
                    }
                })?;
            }
            for batch in existing.batches(None, false)? {
                let batch = batch?;
                let kept = kept(&batch, |key| !self.new.contains(key) && keep(key));
                self.writer.push_batch(&filter_record_batch(&batch, &kept)?)?;
            }
        }
        let rows = self.writer.rows();
        Ok((self.writer.finish()?, rows))
    }
}

/// For each row of a batch, whether its run is wanted.
pub fn kept(batch: &RecordBatch, keep: impl Fn(RunKey) -> bool) -> BooleanArray {
    let keys = whole(batch, "job_id_raw").zip(times(batch, "submit_time"));
    keys.map(|(job, submit)| {
        let key = job.and_then(|job| u32::try_from(job).ok()).zip(submit);
        Some(key.is_some_and(&keep))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowWriter;
    use steward_common::id::JobId;
    use steward_common::job::Run;
    use steward_common::slurm::sacct::{Draft, Field, Layout, Row, row};
    use steward_common::unit::Bytes;

    use super::super::cells::real;
    use super::super::processed::properties;
    use super::super::shelf::Directory;
    use super::*;

    fn run(job: u32) -> Run<'static> {
        let known = |field| matches!(field, Field::JobIdRaw | Field::Submit | Field::State);
        let layout: &'static Layout = Box::leak(Box::new(Layout::new(known)));
        let text: &'static str = format!("{job}\u{1f}COMPLETED\u{1f}1\u{1f}{job}").leak();
        let row = Row::new(layout, text, 0, row::ends(text).leak()).unwrap();
        let req_memory = Some(Bytes::new(u64::from(job) << 20));
        Run { shown_id: job.to_string().into(), req_memory, ..Draft::new(&row).unwrap().finish().0 }
    }

    fn stored<'a>(run: &'a Run<'a>) -> Stored<'a> {
        Stored { run, collected: Timestamp::new(5), digest: 1 }
    }

    /// A file of a program that did not know of a column yet.
    fn older(shelf: &Directory, job: u32) -> Table {
        let mut writer = ProcessedWriter::new(shelf.scratch().unwrap(), 1).unwrap();
        writer.push(&stored(&run(job))).unwrap();
        let file = writer.finish().unwrap();
        let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
        let mut batch = table.batches(None, false).unwrap().next().unwrap().unwrap();
        for column in ["energy_joules", "alloc_mem_mb"] {
            batch.remove_column(batch.schema().index_of(column).unwrap());
        }
        let file = shelf.scratch().unwrap();
        let properties = Some(properties(1).unwrap());
        let copy = file.reopen().unwrap();
        let mut writer = ArrowWriter::try_new(copy, batch.schema(), properties).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Table::new(file.reopen().unwrap(), file.path()).unwrap()
    }

    #[test]
    fn as_many_runs_as_are_put_in_are_read_with_what_each_has_and_lacks() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Directory::new(directory.path());
        let first = run(1);
        for count in [1, 63, 64, 65, 128, 200, 16_383, 16_384, 16_385, 16_449] {
            let mut writer = ProcessedWriter::new(shelf.scratch().unwrap(), 1).unwrap();
            let expected: Vec<_> = (1..=count)
                .map(|place: u32| {
                    let cpus = (!place.is_multiple_of(3)).then_some(place % 7);
                    // Of these only a few have one.
                    (
                        Some(i64::from(place)),
                        cpus.map(i64::from),
                        (place % 99 == 70).then_some(place.into()),
                    )
                })
                .collect();
            for (job, cpus, elapsed) in &expected {
                let run = Run {
                    job: JobId::new(u32::try_from(job.unwrap()).unwrap()).unwrap(),
                    cpus: cpus.map(|cpus| u32::try_from(cpus).unwrap()),
                    elapsed: elapsed.map(i64::cast_unsigned),
                    ..first.clone()
                };
                writer.push(&stored(&run)).unwrap();
            }
            let file = writer.finish().unwrap();
            let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
            let columns = ["job_id_raw", "alloc_cpus", "elapsed_seconds"];
            let rows = |column| -> Vec<Option<i64>> {
                let batches = table.batches(Some(&columns), false).unwrap();
                batches
                    .flat_map(|batch| whole(&batch.unwrap(), column).collect::<Vec<_>>())
                    .collect()
            };
            let [jobs, cpus, elapsed] = columns.map(rows);
            let read: Vec<_> = jobs.into_iter().zip(cpus).zip(elapsed).collect();
            let expected = expected.into_iter().map(|(job, cpus, elapsed)| ((job, cpus), elapsed));
            assert!(read.into_iter().eq(expected), "{count} runs");
        }
    }

    #[test]
    fn runs_of_older_files_that_lack_a_column_stay() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Directory::new(directory.path());
        let mut part = PartWriter::new(&shelf, 2, Some(older(&shelf, 7)), None).unwrap();
        let new = run(8);
        part.push((8, Timestamp::new(1)), &stored(&new)).unwrap();
        let open = RunSet::from_iter([(9, Timestamp::new(1))]);
        part.carry(&older(&shelf, 9), &open).unwrap();
        let (file, rows) = part.finish(|_| true).unwrap();
        let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
        let batches = table.batches(Some(&["job_id_raw", "energy_joules"]), false).unwrap();
        let jobs =
            batches.flat_map(|batch| whole(&batch.unwrap(), "job_id_raw").collect::<Vec<_>>());
        assert_eq!((rows, jobs.flatten().collect::<Vec<_>>()), (3, vec![8, 9, 7]));
        // What was given was taken to be what was asked for.
        let held = |table: &Table| -> Vec<Option<f64>> {
            let batches = table.batches(Some(&["alloc_mem_mb"]), false).unwrap();
            batches
                .flat_map(|batch| real(&batch.unwrap(), "alloc_mem_mb").collect::<Vec<_>>())
                .collect()
        };
        assert_eq!(held(&table), [None, Some(9.0), Some(7.0)]);
        assert_eq!(held(&older(&shelf, 5)), [Some(5.0)]);
    }
    #[test]
    fn where_only_runs_of_some_jobs_come_those_of_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Directory::new(directory.path());
        let mut writer = ProcessedWriter::new(shelf.scratch().unwrap(), 1).unwrap();
        let imported = stand_in::number(5, 1);
        for job in [7, 8, imported] {
            writer.push(&stored(&run(job))).unwrap();
        }
        let file = writer.finish().unwrap();
        let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
        let asked = RoaringBitmap::from_iter([8]);
        let mut part = PartWriter::new(&shelf, 2, Some(table), Some(&asked)).unwrap();
        let at = Timestamp::new(1);
        assert!(part.has((8, at), 1) && !part.has((8, at), 2) && part.has((imported, at), 1));
        assert!(!part.knows((7, at)), "more is known than is needed");
        part.push((8, at), &Stored { digest: 2, ..stored(&run(8)) }).unwrap();
        let (file, rows) = part.finish(|_| true).unwrap();
        let table = Table::new(file.reopen().unwrap(), file.path()).unwrap();
        let digests =
            [8, 7, imported].map(|job| table.runs(None).unwrap().get((job, at)).unwrap().digest);
        assert_eq!((rows, digests), (3, [2, 1, 1]));
    }
}
