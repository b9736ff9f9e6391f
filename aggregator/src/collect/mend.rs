//! Jobs that are asked for by number: those whose rows could not be cut, because a name in them
//! holds a delimiter, and runs that were open at the last collection and have vanished.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use roaring::RoaringBitmap;
use serde_json::Value;
use steward_common::slurm::sacct::{DELIMITER, Field, Layout, Row};
use steward_common::time::Timestamp;

use super::gather::{Broken, Gather, Gathered};
use super::{CollectError, Context, Request, Total, retried, run};
use crate::archive::raw::Key;
use crate::archive::read::{RunKey, RunSet};
use crate::archive::{Change, Part};
use crate::source::slurm::command::CommandError;
use crate::source::slurm::lines::Piece;
use crate::source::slurm::sacct::Failure;

/// Jobs that are asked for in one call.
const AT_ONCE: usize = 500;

/// Jobs whose texts are asked for in one call: JSON is long.
const TEXTS_AT_ONCE: usize = 100;

/// Asks for them, and adds them to the change. Those that could not be asked for are given back,
/// for the next collection.
pub(super) fn mend(
    context: &mut Context,
    request: &Request,
    layout: &Layout,
    change: &mut Change,
    total: &mut Total,
) -> Result<Vec<(u32, Option<i64>)>, CollectError> {
    let mut broken = std::mem::take(&mut total.broken);
    // Most come twice: two windows, or two calls, tell of them.
    broken.sort();
    broken.dedup();
    for (job, submit) in std::mem::take(&mut context.entry.waiting) {
        let submit = submit.map(Timestamp::new);
        broken.push(Broken { job, submit, bytes: Vec::new(), doubt: Vec::new() });
    }
    // What has ended, and what is asked for anyway, has not vanished.
    let mut unseen: RunSet = std::mem::take(&mut total.unseen).into_iter().collect();
    for run in &total.ended {
        unseen.remove(run);
    }
    let wanted = Wanted::of(&broken);
    unseen.retain(|run| !wanted.has(*run));
    if broken.is_empty() && unseen.is_empty() {
        return Ok(Vec::new());
    }
    let open_before = context.table(Part::Open)?;
    // What was staged a moment ago is what is added to.
    if let Some(entry) = change.manifest.clusters.get(&context.cluster) {
        context.entry = entry.clone();
    }
    let asking = Asking { context, request, layout };
    let answered = match retried(request, || asking.answer(&broken, &unseen)) {
        Ok(answered) => answered,
        Err(CollectError::Slurm(error)) if !matches!(error, CommandError::Stopped) => {
            let (jobs, runs) = (broken.len(), unseen.len());
            tracing::warn!(%error, jobs, runs, "asked for by number at the next collection");
            asking.unanswered(&broken)?
        }
        Err(error) => return Err(error),
    };
    let Answered { mut gather, found, waiting, .. } = answered;
    let asked = |run: &RunKey| unseen.contains(run) || wanted.has(*run);
    let lost: RunSet =
        context.open.iter().filter(|run| asked(run) && !found.contains(run)).copied().collect();
    if let Some(table) = open_before.filter(|_| !lost.is_empty()) {
        tracing::warn!(runs = lost.len(), "open runs that sacct did not tell of stay as they were");
        gather.carry(&table, &lost)?;
    }
    let gathered: Gathered = gather.finish(false)?;
    total.add(change, context, gathered)?;
    Ok(waiting)
}

/// Runs that are asked for, each by its submission or, where that is not known, as any of its job.
struct Wanted(HashSet<(u32, Option<Timestamp>)>);

impl Wanted {
    fn of(broken: &[Broken]) -> Wanted {
        Wanted(broken.iter().map(|one| (one.job, one.submit)).collect())
    }

    fn has(&self, (job, submit): RunKey) -> bool {
        self.0.contains(&(job, Some(submit))) || self.0.contains(&(job, None))
    }
}

/// Jobs while they are asked for.
struct Asking<'a> {
    context: &'a Context,
    request: &'a Request,
    layout: &'a Layout,
}

/// What came of it.
struct Answered<'a> {
    gather: Gather<'a>,
    /// The runs that sacct told of.
    found: RunSet,
    /// Those of them that stand without the users' texts.
    textless: RunSet,
    /// Jobs with a text that looks like the end of a row.
    forging: HashSet<u32>,
    /// Those that are to be asked for again.
    waiting: Vec<(u32, Option<i64>)>,
}

impl<'a> Answered<'a> {
    fn of(gather: Gather<'a>) -> Answered<'a> {
        let (found, textless) = (RunSet::default(), RunSet::default());
        Answered { gather, found, textless, forging: HashSet::new(), waiting: Vec::new() }
    }
}

impl<'a> Asking<'a> {
    fn answer(&self, broken: &[Broken], unseen: &RunSet) -> Result<Answered<'a>, CollectError> {
        let jobs = unseen.iter().map(|(job, _)| *job);
        let asked: RoaringBitmap = jobs.chain(broken.iter().map(|one| one.job)).collect();
        let gather = Gather::new(self.context, self.layout, Some(asked))?;
        let mut answered = Answered::of(gather);
        self.unseen(&mut answered, unseen)?;
        let mut broken = broken.to_vec();
        broken.extend(answered.gather.take_broken());
        let jobs: BTreeSet<u32> = broken.iter().map(|broken| broken.job).collect();
        let jobs: Vec<u32> = jobs.into_iter().collect();
        let wanted = Wanted::of(&broken);
        for jobs in jobs.chunks(TEXTS_AT_ONCE) {
            self.broken(&mut answered, &wanted, jobs)?;
        }
        let Answered { gather, found, textless, forging, .. } = &mut answered;
        let jobs = |runs: &RunSet| runs.iter().map(|(job, _)| *job).collect::<HashSet<u32>>();
        let (known, nameless) = (jobs(found), jobs(textless));
        for one in &broken {
            let is_in = |runs: &RunSet, jobs: &HashSet<u32>| match one.submit {
                Some(submit) => runs.contains(&(one.job, submit)),
                None => jobs.contains(&one.job),
            };
            let is_known = is_in(found, &known);
            if !one.bytes.is_empty() && is_in(textless, &nameless) {
                gather.uncut(one.job, &one.bytes)?;
            } else if !one.bytes.is_empty() && !is_known {
                gather.malformed(Some(one.job), &one.bytes)?;
            }
            // What the job's texts do not explain is nobody's.
            if is_known && !forging.contains(&one.job) {
                for text in &one.doubt {
                    gather.stray(Some(one.job), text)?;
                }
            }
        }
        Ok(answered)
    }

    /// What is kept if there was no answer.
    fn unanswered(&self, broken: &[Broken]) -> Result<Answered<'a>, CollectError> {
        let mut gather = Gather::new(self.context, self.layout, Some(RoaringBitmap::new()))?;
        for one in broken.iter().filter(|one| !one.bytes.is_empty()) {
            gather.malformed(Some(one.job), &one.bytes)?;
        }
        let waiting: BTreeSet<(u32, Option<i64>)> =
            broken.iter().map(|one| (one.job, one.submit.map(Timestamp::get))).collect();
        Ok(Answered { waiting: waiting.into_iter().collect(), ..Answered::of(gather) })
    }

    /// Asks for runs that have vanished.
    fn unseen(&self, answered: &mut Answered<'a>, unseen: &RunSet) -> Result<(), CollectError> {
        let jobs: BTreeSet<u32> = unseen.iter().map(|(job, _)| *job).collect();
        let jobs: Vec<u32> = jobs.into_iter().collect();
        for jobs in jobs.chunks(AT_ONCE) {
            let Answered { gather, found, .. } = answered;
            let found = RefCell::new(found);
            self.context
                .sacct
                .runs_of(self.layout, jobs, |piece| {
                    let wanted = |key: RunKey| {
                        let wanted = unseen.contains(&key);
                        if wanted {
                            found.borrow_mut().insert(key);
                        }
                        wanted
                    };
                    gather
                        .piece(piece, |run| wanted((run.job.get(), run.submit)))
                        .map_err(Failure::Visit)
                })
                .map_err(CollectError::of)?;
        }
        Ok(())
    }

    /// The users' texts of jobs, as JSON, and whether they may be had later. Without them a run is
    /// still worth having: a sacct may know no JSON at all.
    fn texts(&self, jobs: &[u32]) -> Result<(Value, bool), CollectError> {
        let asked = retried(self.request, || Ok(self.context.sacct.json(jobs)?));
        let (error, later) = match asked {
            Err(CollectError::Slurm(CommandError::Stopped)) => {
                return Err(CommandError::Stopped.into());
            }
            Ok(text) => match serde_json::from_str::<Value>(&text) {
                Ok(answer) if answer.get("jobs").is_some() => return Ok((answer, false)),
                Ok(_) => ("no jobs in the answer".to_owned(), true),
                Err(error) => (error.to_string(), true),
            },
            Err(CollectError::Slurm(error)) => (error.to_string(), !error.is_unknown_option()),
            Err(error) => (error.to_string(), true),
        };
        tracing::warn!(error, jobs = jobs.len(), "the texts of jobs cannot be had");
        Ok((Value::Null, later))
    }

    /// Asks for jobs without the users' texts, which then cannot break anything, and for those
    /// texts as JSON.
    fn broken(
        &self,
        answered: &mut Answered<'a>,
        wanted: &Wanted,
        jobs: &[u32],
    ) -> Result<(), CollectError> {
        let bare = Layout::new(|field| self.layout.place(field).is_some() && !field.is_free_text());
        let (texts, later) = self.texts(jobs)?;
        let Answered { gather, found, textless, forging, waiting } = answered;
        self.context
            .sacct
            .runs_of(&bare, jobs, |piece| {
                let job = match piece {
                    Piece::Whole(job) => job,
                    Piece::Broken { .. } => return Ok(()),
                    stray @ Piece::Stray { .. } => {
                        return gather.piece(stray, |_| false).map_err(Failure::Visit);
                    }
                };
                let (rows, has_texts) = mended(self.layout, &bare, job.rows(), &texts);
                let run = assembled(&rows, self.layout, &self.context.cluster);
                // Asked for an array or a part of a heterogeneous job, sacct tells of the others;
                // and other runs of the job need no mending.
                let key = run.filter(|run| wanted.has(*run));
                if let Some(key) = key {
                    self.keep(gather, &rows, later).map_err(Failure::Visit)?;
                    found.insert(key);
                    if !has_texts {
                        textless.insert(key);
                    }
                    if rows.iter().any(Mended::has_false_end) {
                        forging.insert(key.0);
                    }
                    if later {
                        waiting.push((key.0, Some(key.1.get())));
                    }
                }
                Ok(())
            })
            .map_err(CollectError::of)
    }

    /// Keeps the run of rows that were put together. If its texts are to come `later`, one that has
    /// ended and is there already stays as it stands: it may have them.
    fn keep(
        &self,
        gather: &mut Gather<'_>,
        rows: &[Mended],
        later: bool,
    ) -> Result<(), CollectError> {
        let all = rows.iter().filter_map(|row| row.row(self.layout));
        let Some(Ok((mut run, _))) = run::assemble(all, &self.context.cluster) else {
            return Ok(());
        };
        let is_forgotten = self.context.is_forgotten(&run.user, run.submit);
        if is_forgotten || (later && gather.has_ended_before(&run)?) {
            return Ok(());
        }
        let digest = Mended::digest(rows);
        let is_measured = gather.measure(&mut run, digest)?;
        if gather.keep(&run, digest, is_measured)? {
            let end = run.end.filter(|_| run.ended);
            for row in rows {
                let step = row.row(self.layout).and_then(|row| row.id().1);
                let key = Key { job: Some(run.job.get()), submit: Some(run.submit), end, step };
                gather.mended(key, row.json().as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Which run the rows are of.
fn assembled(rows: &[Mended], layout: &Layout, cluster: &str) -> Option<RunKey> {
    let rows = rows.iter().filter_map(|row| row.row(layout));
    let (run, _) = run::assemble(rows, cluster)?.ok()?;
    Some((run.job.get(), run.submit))
}

/// A job's rows with the users' texts in them, and whether the answer has any.
fn mended<'r>(
    layout: &Layout,
    bare: &Layout,
    rows: impl Iterator<Item = Row<'r>>,
    answer: &Value,
) -> (Vec<Mended>, bool) {
    let mut run = None;
    let rows = rows
        .enumerate()
        .map(|(place, row)| {
            let names = match place.checked_sub(1) {
                None => {
                    let submit = Timestamp::from_slurm(row.get(Field::Submit)).ok().flatten();
                    run = submit.and_then(|submit| run_of(answer, row.id().0, submit));
                    run
                }
                Some(step) => run.and_then(|run| run.pointer(&format!("/steps/{step}/step"))),
            };
            Mended::new(layout, bare, &row, names)
        })
        .collect();
    (rows, run.is_some())
}

/// The run of the answer that was submitted then.
fn run_of<'v>(answer: &'v Value, job: &str, submit: Timestamp) -> Option<&'v Value> {
    let number = |value: &Value| value.as_i64().or_else(|| value.get("number")?.as_i64());
    let job: i64 = job.parse().ok()?;
    answer.get("jobs")?.as_array()?.iter().find(|run| {
        run.get("job_id").and_then(number) == Some(job)
            && run.pointer("/time/submission").and_then(number) == Some(submit.get())
    })
}

/// Where newer and older Slurm keep a text in their JSON.
fn places(field: Field) -> &'static [&'static str] {
    match field {
        Field::JobName => &["/name"],
        Field::WorkDir => &["/working_directory"],
        Field::Comment => &["/comment/job"],
        Field::AdminComment => &["/comment/administrator"],
        Field::SubmitLine => &["/submit_line", "/submit_command"],
        Field::Constraints => &["/constraints"],
        _ => &[],
    }
}

/// A row that was put together: its fields may hold anything, so they are kept as a list.
pub struct Mended {
    text: String,
    ends: Vec<u32>,
}

impl Mended {
    fn new(layout: &Layout, bare: &Layout, row: &Row<'_>, names: Option<&Value>) -> Mended {
        let fields = layout.fields().iter().map(|field| {
            if bare.place(*field).is_some() {
                return row.get(*field).to_owned();
            }
            let text = |place: &&str| names?.pointer(place)?.as_str().map(str::to_owned);
            places(*field).iter().find_map(text).unwrap_or_default()
        });
        let id = row.get(Field::JobIdRaw).to_owned();
        Mended::of(fields.chain([id]))
    }

    /// The row of these fields.
    pub fn of(fields: impl Iterator<Item = String>) -> Mended {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for field in fields {
            if !ends.is_empty() {
                text.push(char::from(DELIMITER));
            }
            text.push_str(&field);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Mended { text, ends }
    }

    /// The row.
    #[must_use]
    pub fn row<'a>(&'a self, layout: &'a Layout) -> Option<Row<'a>> {
        Row::new(layout, &self.text, 0, &self.ends)
    }

    /// Whether a text in it looks like the end of the row.
    fn has_false_end(&self) -> bool {
        let id = self.ends.first().and_then(|end| self.text.get(..*end as usize));
        id.is_some_and(|id| self.text.contains(&format!("{}{id}\n", char::from(DELIMITER))))
    }

    /// The digest of a run's rows.
    #[must_use]
    pub fn digest(rows: &[Mended]) -> i32 {
        let all: Vec<u8> = rows.iter().flat_map(|row| row.text.bytes()).collect();
        run::digest(&all)
    }

    /// Its fields as a JSON list.
    fn json(&self) -> String {
        let mut start = 0;
        let fields: Vec<&str> = self
            .ends
            .iter()
            .map(|end| {
                let field = self.text.get(start..*end as usize).unwrap_or("");
                start = *end as usize + 1;
                field
            })
            .collect();
        Value::from(fields).to_string()
    }

    /// Reads what [`Mended::json`] wrote.
    #[must_use]
    pub fn read(json: &[u8]) -> Option<Mended> {
        let fields: Vec<String> = serde_json::from_slice(json).ok()?;
        Some(Mended::of(fields.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mended_row_holds_anything_and_comes_back() {
        let layout = Layout::new(|field| matches!(field, Field::JobIdRaw | Field::JobName));
        let name = "a\x1fb\nc|\"d";
        let mended = Mended::of(["7", name, "7"].into_iter().map(str::to_owned));
        assert_eq!(mended.row(&layout).unwrap().get(Field::JobName), name);
        let again = Mended::read(mended.json().as_bytes()).unwrap();
        assert_eq!(again.row(&layout).unwrap().get(Field::JobName), name);
    }

    #[test]
    fn the_run_of_a_job_is_found_by_its_submission() {
        let answer: Value = serde_json::from_str(
            r#"{"jobs":[{"job_id":8,"name":"x","time":{"submission":5}},
                        {"job_id":7,"name":"a","time":{"submission":5}},
                        {"job_id":7,"name":"b","time":{"submission":{"set":true,"number":9}}}]}"#,
        )
        .unwrap();
        let name = |at| run_of(&answer, "7", Timestamp::new(at)).map(|run| run["name"].clone());
        assert_eq!(name(5), Some("a".into()));
        assert_eq!(name(9), Some("b".into()));
        assert_eq!(name(7), None);
    }
}
