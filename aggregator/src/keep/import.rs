//! An archive of slurm-usage is taken over: its runs go into `raw`, and from there on as all do.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_common::id::JobId;
use steward_common::job::{Run, Source};
use steward_common::slurm::sacct::family;
use steward_common::slurm::state::JobState;
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;

use super::KeepError;
use super::rebuild;
use super::retention::Dropped;
use crate::archive::lock::Lock;
use crate::archive::manifest::{Forgotten, Import};
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::{Archive, ArchiveError, Change, Day, Part, carry, foreign, stand_in};
use crate::collect::Watch;
use crate::output::number::so_many;

/// The name under which a kept row says in which zone its times are.
const ZONE: &str = "time_zone";

/// What is taken over.
pub struct Order<'a> {
    /// slurm-usage's data directory.
    pub from: &'a Path,
    /// The cluster whose jobs they are.
    pub cluster: &'a str,
    /// The zone of the clocks that its times were read from.
    pub zone: &'a str,
    /// How the archive is written.
    pub rebuild: rebuild::Order<'a>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Runs that are new.
    pub runs: u64,
    /// Runs that the archive has already.
    pub known: u64,
    /// Runs that had not ended when slurm-usage saw them last.
    pub open: u64,
    /// Rows that say not which run they are, or that cannot be read.
    pub unreadable: u64,
    /// Runs of users who were forgotten, or older than the archive keeps.
    pub unwanted: u64,
    /// What the archive let go.
    pub dropped: Dropped,
}

/// Takes the archive over. The lock comes back.
///
/// # Errors
/// If anything fails, or it was taken over before and has something new; then the archive is as it
/// was.
pub fn run(
    archive: &Archive,
    lock: Lock,
    order: &Order<'_>,
    watch: &dyn Watch,
) -> Result<(Taken, Lock), KeepError> {
    let from = fs::canonicalize(order.from).map_err(|error| wrong(order.from, &error))?;
    let files = files(&from.join("processed"))?;
    let mut change = archive.change(lock)?;
    let mut taking = Taking {
        order,
        known: known(archive, &change, order.cluster)?,
        taken: Taken::default(),
        open: HashSet::new(),
        ended: HashSet::new(),
        forgotten: change.manifest.forgotten.clone(),
    };
    // Of a run that stands in several files the newest counts.
    for (place, path) in files.iter().rev().enumerate() {
        if (order.rebuild.stop)() {
            return Err(KeepError::Stopped);
        }
        taking.file(archive, &change, path, place)?;
    }
    let mut taken = taking.taken();
    let before = change.manifest.imports.iter().find(|one| Path::new(&one.from) == from);
    if let Some(before) = before.filter(|_| taken.runs > 0) {
        let on = Day::of(Timestamp::new(before.at));
        let why = format!(
            "it was taken over on {on}, and {} of it {} new: an archive is taken over once",
            so_many(taken.runs, "run"),
            if taken.runs == 1 { "is" } else { "are" }
        );
        return Err(ArchiveError::Content { path: from, why }.into());
    }
    if taken.runs > 0 {
        let at = order.rebuild.now.get();
        let from = from.display().to_string();
        change.manifest.imports.push(Import { from, at, runs: taken.runs });
        let rebuilt = rebuild::cluster(archive, order.cluster, &order.rebuild, &mut change, watch)?;
        taken.dropped = rebuilt.dropped;
    }
    Ok((taken, change.commit()?))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> ArchiveError {
    ArchiveError::Content { path: path.to_owned(), why: error.to_string() }
}

/// The files of a directory, by name, which is the date.
fn files(directory: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let why = |error| wrong(directory, &format!("{error}: slurm-usage's data directory is meant"));
    let entries = fs::read_dir(directory).map_err(why)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(why)?.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The runs that the archive has.
fn known(archive: &Archive, change: &Change, cluster: &str) -> Result<HashSet<u64>, ArchiveError> {
    let mut known = HashSet::new();
    let Some(entry) = change.manifest.clusters.get(cluster) else { return Ok(known) };
    let days = entry.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
    for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
        let Some(table) = archive.open(cluster, part, file)? else {
            return Err(archive.missing(cluster, part));
        };
        carry::shown(&table, |(_, submit), id| {
            known.insert(stand_in::shown(id, submit));
        })?;
    }
    Ok(known)
}

/// The taking over while it goes on.
struct Taking<'a> {
    order: &'a Order<'a>,
    known: HashSet<u64>,
    taken: Taken,
    /// Runs that stand somewhere as not ended,
    open: HashSet<u64>,
    /// and as ended.
    ended: HashSet<u64>,
    forgotten: Vec<Forgotten>,
}

impl Taking<'_> {
    /// What came of it. A run that one file has as running another may have as ended.
    fn taken(&self) -> Taken {
        let open = self.open.difference(&self.ended).count() as u64;
        Taken { open, ..self.taken }
    }

    /// Puts the runs of a file that are wanted into a raw file.
    fn file(
        &mut self,
        archive: &Archive,
        change: &Change,
        path: &Path,
        place: usize,
    ) -> Result<(), KeepError> {
        let now = self.order.rebuild.now;
        let scratch = archive.shelf().scratch()?;
        let mut writer = RawWriter::new(scratch, change.generation(), "", now)?;
        foreign::rows::<KeepError>(path, |mut row| {
            row.insert(ZONE.to_owned(), self.order.zone.into());
            let text = Value::Object(row).to_string();
            let Some(run) = read(text.as_bytes(), self.order.cluster) else {
                self.taken.unreadable += 1;
                return Ok(());
            };
            if self.is_wanted(&run) {
                let key = Key {
                    job: Some(run.job.get()),
                    submit: Some(run.submit),
                    end: run.end,
                    step: None,
                };
                writer.push(key, Form::Import, text.as_bytes())?;
                self.taken.runs += 1;
            }
            Ok(())
        })?;
        if writer.rows() > 0 {
            let what = format!("import-{place:04}");
            let name = change.raw_name(self.order.cluster, Day::of(now), &what);
            archive.shelf().put(writer.finish()?, &name)?;
        }
        Ok(())
    }

    fn is_wanted(&mut self, run: &Run<'_>) -> bool {
        let rebuild = &self.order.rebuild;
        let name = stand_in::shown(&run.shown_id, run.submit);
        let Some(end) = run.end.filter(|_| run.ended) else {
            self.open.insert(name);
            return false;
        };
        self.ended.insert(name);
        if rebuild.retention.drops_day(Day::of(end), rebuild.now)
            || Forgotten::holds(&self.forgotten, self.order.cluster, &run.user, run.submit)
        {
            self.taken.unwanted += 1;
            return false;
        }
        let new = self.known.insert(name);
        self.taken.known += u64::from(!new);
        new
    }
}

/// What is read of a row of slurm-usage. The other columns follow from these.
#[derive(Deserialize)]
struct Usage {
    job_id: String,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    job_name: Option<String>,
    #[serde(default)]
    partition: Option<String>,
    #[serde(default)]
    state: Option<String>,
    submit_time: Option<i64>,
    start_time: Option<i64>,
    end_time: Option<i64>,
    #[serde(default)]
    node_list: Option<String>,
    elapsed_seconds: Option<f64>,
    alloc_cpus: Option<f64>,
    req_mem_mb: Option<f64>,
    max_rss_mb: Option<f64>,
    total_cpu_seconds: Option<f64>,
    alloc_gpus: Option<f64>,
    time_zone: String,
}

/// The user whose run a kept row is of.
#[must_use]
pub fn user(text: &[u8]) -> Option<String> {
    let row: Map<String, Value> = serde_json::from_slice(text).ok()?;
    Some(row.get("user")?.as_str()?.to_owned())
}

/// The run of a row that is kept. `None` if it does not say which run it is.
#[must_use]
pub fn read<'a>(text: &[u8], cluster: &'a str) -> Option<Run<'a>> {
    let usage: Usage = serde_json::from_slice(text).ok()?;
    let zone = TimeZone::get(&usage.time_zone).ok()?;
    let time = |micros: Option<i64>| micros.and_then(|micros| instant(micros, &zone));
    // slurm-usage has 0 where it knows nothing.
    let measured = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let (peak, cpu) = (measured(usage.max_rss_mb), measured(usage.total_cpu_seconds));
    let (array_job, array_task, het_job, het_offset) = family(&usage.job_id);
    let (end, state) = (time(usage.end_time), usage.state.unwrap_or_default());
    let user = usage.user.unwrap_or_else(|| "MISSING_USER".to_owned());
    Some(Run {
        cluster: cluster.into(),
        job: JobId::new(number(&usage.job_id)?)?,
        array_job,
        array_task,
        het_job,
        het_offset,
        restart: 0,
        uid: user.strip_prefix("uid_").and_then(digits),
        user: user.into(),
        group: "".into(),
        account: "".into(),
        partition: usage.partition.unwrap_or_default().into(),
        qos: "".into(),
        reservation: "".into(),
        name: usage.job_name.unwrap_or_default().into(),
        ended: end.is_some() && JobState::from(state.as_str()).ends_run(),
        state: state.into(),
        cancelled_by: None,
        exit_code: None,
        exit_signal: None,
        submit: time(usage.submit_time)?,
        eligible: None,
        start: time(usage.start_time),
        end,
        elapsed: whole(usage.elapsed_seconds),
        time_limit: None,
        req_cpus: None,
        req_nodes: None,
        req_memory: measured(usage.req_mem_mb).map(mebibytes),
        memory: measured(usage.req_mem_mb).map(mebibytes),
        cpus: whole(usage.alloc_cpus).and_then(|cpus| u32::try_from(cpus).ok()),
        node_count: None,
        nodes: match usage.node_list.as_deref() {
            None | Some("None assigned" | "(null)") => "".into(),
            Some(list) => list.to_owned().into(),
        },
        // Of GPUs with a type it counts none, so none is not known to be none.
        gpus: measured(usage.alloc_gpus).and_then(|n| u32::try_from(whole(Some(n))?).ok()),
        gpu_types: "".into(),
        billing: None,
        cpu_seconds: cpu,
        cpu_source: cpu.map(|_| Source::Import),
        peak_memory: peak.map(mebibytes),
        memory_source: peak.map(|_| Source::Import),
        disk_read: None,
        disk_written: None,
        energy: None,
        steps: None,
        admin_comment: "".into(),
        agent: None,
        shown_id: usage.job_id.into(),
    })
}

/// The number of a job, or one that stands for it where it is not known.
fn number(id: &str) -> Option<u32> {
    if let Some((job, task)) = id.split_once('_') {
        let job = digits(job)?;
        // The rest of an array has the number of the array.
        return if task.starts_with('[') {
            Some(job)
        } else {
            Some(stand_in::number(job, digits(task)?))
        };
    }
    match id.split_once('+') {
        Some((job, "0")) => digits(job),
        Some((job, part)) => Some(stand_in::number(digits(job)?, digits(part)?)),
        None => digits(id),
    }
}

/// A number that is written as such.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// slurm-usage read the site's clocks and called it UTC.
fn instant(micros: i64, zone: &TimeZone) -> Option<Timestamp> {
    let read = jiff::Timestamp::from_microsecond(micros).ok()?;
    let clock = read.to_zoned(TimeZone::UTC).datetime();
    let meant = clock.to_zoned(zone.clone()).ok()?;
    Some(Timestamp::new(meant.timestamp().as_second()))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is not a count is none"
)]
fn whole(value: Option<f64>) -> Option<u64> {
    value.filter(|value| (0.0..1e15).contains(value)).map(|value| value as u64)
}

fn mebibytes(value: f64) -> Bytes {
    Bytes::new(whole(Some(value * 1_048_576.0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::retention::Retention;

    fn row(id: &str) -> String {
        // 2026-07-01T12:00:00 as the site's clocks said.
        format!(
            r#"{{"job_id":"{id}","user":"uid_1001","state":"COMPLETED","submit_time":1782907200000000,
            "start_time":null,"end_time":1782910800000000,"elapsed_seconds":3600,"alloc_cpus":2,
            "req_mem_mb":1024.0,"max_rss_mb":0.0,"total_cpu_seconds":1800.0,"alloc_gpus":0,
            "cpu_efficiency":25.0,"time_zone":"Europe/Berlin"}}"#
        )
    }

    #[test]
    fn a_row_becomes_a_run_in_its_real_time() {
        let text = row("100");
        let run = read(text.as_bytes(), "c1").unwrap();
        assert_eq!(run.submit.get(), 1_782_907_200 - 2 * 3600);
        assert!(run.ended && run.start.is_none());
        assert_eq!((run.job.get(), run.uid, run.elapsed), (100, Some(1001), Some(3600)));
        assert_eq!(run.cpu_efficiency(), Some(25.0));
        assert_eq!(run.cpu_source, Some(Source::Import));
        assert_eq!(run.steps, None, "not 0: that marks it, also where nothing was measured");
        // 0 stands for "unknown" there.
        assert_eq!((run.peak_memory, run.memory_source, run.gpus), (None, None, None));
        assert_eq!(user(text.as_bytes()).as_deref(), Some("uid_1001"));
        assert!(read(text.replace("1782907200000000", "null").as_bytes(), "c1").is_none());
        assert!(read(b"{}", "c1").is_none());
    }

    #[test]
    fn only_runs_that_no_file_has_as_ended_have_not_ended() {
        let order = Order {
            from: Path::new("/usage"),
            cluster: "c1",
            zone: "Europe/Berlin",
            rebuild: rebuild::Order {
                cluster: Some("c1"),
                now: Timestamp::new(1_782_910_800),
                retention: Retention::default(),
                stop: &|| false,
            },
        };
        let mut taking = Taking {
            order: &order,
            known: HashSet::new(),
            taken: Taken::default(),
            open: HashSet::new(),
            ended: HashSet::new(),
            forgotten: Vec::new(),
        };
        let running = |id: &str| row(id).replace("COMPLETED", "RUNNING");
        let mut is_wanted = |text: String| taking.is_wanted(&read(text.as_bytes(), "c1").unwrap());
        // The newest file comes first; what runs on stands in each.
        assert!(is_wanted(row("100").replace("COMPLETED", "CANCELLED")));
        for text in [running("101"), running("100"), running("101")] {
            assert!(!is_wanted(text));
        }
        assert_eq!((taking.taken().open, taking.taken().known), (1, 0));
    }

    #[test]
    fn the_number_of_a_job_is_known_or_stands_in() {
        for (id, expected) in [("100", 100), ("100_[1-9%3]", 100), ("100+0", 100)] {
            assert_eq!(number(id), Some(expected), "{id}");
        }
        for id in ["100_7", "100_0", "100+1"] {
            assert!(number(id).is_some_and(stand_in::is), "{id}");
        }
        assert_ne!(number("100_7"), number("100_8"));
        for id in ["", "x", "100_x", "100.batch", "100+"] {
            assert_eq!(number(id), None, "{id}");
        }
        let run = row("100_7");
        let run = read(run.as_bytes(), "c1").unwrap();
        assert_eq!((run.array_job, run.array_task), (Some(100), Some(7)));
    }
}
