//! Runs of one job: which is the first, the second, …, and that none stands in two files.
//!
//! A job's earlier run may have ended days before the later one, so all files are looked through
//! that may hold one; only for jobs of which something is new, and only at four narrow columns.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;

use arrow_select::filter::filter_record_batch;
use roaring::RoaringBitmap;
use steward_common::time::Timestamp;

use super::cells::{times, whole};
use super::manifest::Entry;
use super::part::kept;
use super::processed::ProcessedWriter;
use super::read::{RunKey, RunSet, Table};
use super::run_key::RunHasher;
use super::shelf::at;
use super::swap::swap;
use super::{ArchiveError, Change, Part};

/// A run as it stands in a file.
struct Standing {
    submit: Timestamp,
    part: Part,
    collected: Option<Timestamp>,
    rank: i64,
}

/// Ranks the runs of these jobs, and rewrites the files in which a rank was wrong.
///
/// # Errors
/// If a file cannot be read or written.
pub fn rank(change: &mut Change, cluster: &str, jobs: &RoaringBitmap) -> Result<(), ArchiveError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let parts = parts(change, cluster);
    let several = several(change, cluster, &parts, jobs)?;
    if several.is_empty() {
        return Ok(());
    }
    let mut runs: HashMap<u32, Vec<Standing>> = HashMap::new();
    // Is asked for every row.
    let is_wanted: HashSet<u32, BuildHasherDefault<RunHasher>> = several.iter().collect();
    for (part, entry) in parts.iter().filter(|(_, entry)| entry.may_hold(&several)) {
        let table = open(change, cluster, *part, *entry)?;
        let columns = ["job_id_raw", "submit_time", "restart", "collected_at"];
        for batch in table.batches(Some(&columns), false)? {
            let batch = batch?;
            let keys = whole(&batch, "job_id_raw").zip(times(&batch, "submit_time"));
            let values = whole(&batch, "restart").zip(times(&batch, "collected_at"));
            for ((job, submit), (rank, collected)) in keys.zip(values) {
                let job = job.and_then(|job| u32::try_from(job).ok());
                if let (Some(job), Some(submit)) =
                    (job.filter(|job| is_wanted.contains(job)), submit)
                {
                    let rank = rank.unwrap_or(0);
                    let standing = Standing { submit, part: *part, collected, rank };
                    runs.entry(job).or_default().push(standing);
                }
            }
        }
    }
    for (part, fixes) in fixes(runs) {
        if let Some(entry) = parts.get(&part) {
            rewrite(change, cluster, part, *entry, &fixes)?;
        }
    }
    Ok(())
}

/// What is to be done with runs of one file: another rank, or out with it.
#[derive(Default)]
struct Fixes {
    ranks: Ranks,
    doubles: RunSet,
}

/// The rank of some runs. Is asked about every row of a file.
type Ranks = HashMap<RunKey, i64, BuildHasherDefault<RunHasher>>;

fn fixes(runs: HashMap<u32, Vec<Standing>>) -> BTreeMap<Part, Fixes> {
    let mut fixes: BTreeMap<Part, Fixes> = BTreeMap::new();
    for (job, mut runs) in runs {
        // Of one run that stands twice, what was collected last is the truth; of what was collected
        // together, that it has ended.
        runs.sort_by_key(|run| (run.submit, std::cmp::Reverse(run.collected), run.part));
        let mut before: Option<Timestamp> = None;
        let mut rank = -1;
        for run in runs {
            let fix = fixes.entry(run.part).or_default();
            if before == Some(run.submit) {
                fix.doubles.insert((job, run.submit));
                continue;
            }
            before = Some(run.submit);
            rank += 1;
            if run.rank != rank {
                fix.ranks.insert((job, run.submit), rank);
            }
        }
    }
    fixes.retain(|_, fix| !fix.ranks.is_empty() || !fix.doubles.is_empty());
    fixes
}

fn parts(change: &Change, cluster: &str) -> BTreeMap<Part, Entry> {
    let Some(cluster) = change.manifest.clusters.get(cluster) else { return BTreeMap::new() };
    let days = cluster.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
    days.chain(cluster.open.map(|entry| (Part::Open, entry))).collect()
}

fn open(change: &Change, cluster: &str, part: Part, entry: Entry) -> Result<Table, ArchiveError> {
    let table = change.archive().open(cluster, part, entry)?;
    table.ok_or_else(|| change.archive().missing(cluster, part))
}

/// Those of the jobs that have more than one run.
fn several(
    change: &Change,
    cluster: &str,
    parts: &BTreeMap<Part, Entry>,
    jobs: &RoaringBitmap,
) -> Result<RoaringBitmap, ArchiveError> {
    let (mut once, mut several) = (RoaringBitmap::new(), RoaringBitmap::new());
    let mut numbers: Vec<u32> = Vec::new();
    for (part, entry) in parts.iter().filter(|(_, entry)| entry.may_hold(jobs)) {
        let table = open(change, cluster, *part, *entry)?;
        numbers.clear();
        for batch in table.batches(Some(&["job_id_raw"]), false)? {
            let found = batch?;
            let found = whole(&found, "job_id_raw").flatten();
            numbers.extend(found.map(|job| u32::try_from(job).unwrap_or(0)));
        }
        // All of a file at once: to look for each by itself takes four times as long. Most are in their
        // order already.
        numbers.sort();
        let pairs = numbers.iter().zip(numbers.iter().skip(1));
        several.extend(pairs.filter(|(one, next)| one == next).map(|(one, _)| *one));
        let here: RoaringBitmap = numbers.iter().copied().collect();
        several |= &once & &here;
        once |= here;
    }
    Ok(several & jobs)
}

fn rewrite(
    change: &mut Change,
    cluster: &str,
    part: Part,
    entry: Entry,
    fixes: &Fixes,
) -> Result<(), ArchiveError> {
    let table = open(change, cluster, part, entry)?;
    let (file, generation) = (change.archive().shelf().scratch()?, change.generation());
    let ranks = ranks(&table, &fixes.ranks)?;
    let file = swap(&table, file, generation, "restart", &ranks)?;
    if fixes.doubles.is_empty() {
        return change.stage_part(cluster, part, file, table.rows());
    }
    let ranked = Table::new(file.reopen().map_err(at(file.path()))?, file.path())?;
    let mut writer = ProcessedWriter::new(change.archive().shelf().scratch()?, generation)?;
    for batch in ranked.batches(None, false)? {
        let batch = batch?;
        let keep = kept(&batch, |key| !fixes.doubles.contains(&key));
        writer.push_batch(&filter_record_batch(&batch, &keep)?)?;
    }
    let rows = writer.rows();
    let file = writer.finish()?;
    change.stage_part(cluster, part, file, rows)
}

/// The ranks of all rows, some of them new.
fn ranks(table: &Table, new: &Ranks) -> Result<Vec<Option<i64>>, ArchiveError> {
    let mut ranks = Vec::new();
    for batch in table.batches(Some(&["job_id_raw", "submit_time", "restart"]), false)? {
        let batch = batch?;
        let keys = whole(&batch, "job_id_raw").zip(times(&batch, "submit_time"));
        ranks.extend(keys.zip(whole(&batch, "restart")).map(|((job, submit), rank)| {
            let key = job.and_then(|job| u32::try_from(job).ok()).zip(submit);
            key.and_then(|key| new.get(&key).copied()).or(rank)
        }));
    }
    Ok(ranks)
}
