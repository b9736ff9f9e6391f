//! Jobs that are asked for by number: those whose rows could not be cut, because a name in them
//! holds a delimiter, and runs that were open at the last collection and have vanished.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use steward_common::slurm::sacct::{DELIMITER, Field, Layout, Row};
use steward_common::time::Timestamp;

use super::gather::Gather;
use super::{CollectError, Context, Total, run};
use crate::archive::raw::Key;
use crate::archive::read::RunKey;
use crate::archive::{Change, Part};
use crate::source::slurm::command::CommandError;
use crate::source::slurm::lines::{Job, Piece};
use crate::source::slurm::sacct::Failure;

/// Jobs that are asked for in one call.
const AT_ONCE: usize = 500;

/// How often the texts of a job are asked for, and how long it takes to ask again.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Asks for them, and adds them to the change.
pub(super) fn mend(
    context: &mut Context,
    layout: &Layout,
    change: &mut Change,
    total: &mut Total,
) -> Result<(), CollectError> {
    let broken = std::mem::take(&mut total.broken);
    let unseen: HashSet<RunKey> = std::mem::take(&mut total.unseen).into_iter().collect();
    if broken.is_empty() && unseen.is_empty() {
        return Ok(());
    }
    let open_before = context.table(Part::Open)?;
    // What was staged a moment ago is what is added to.
    if let Some(entry) = change.manifest.clusters.get(&context.cluster) {
        context.entry = entry.clone();
    }
    let mut gather = Gather::new(context, layout)?;
    let bare = Layout::new(|field| layout.place(field).is_some() && !field.is_free_text());
    let wanted: HashSet<u32> = broken.into_iter().collect();
    for job in &wanted {
        one(&mut gather, context, layout, &bare, *job)?;
    }
    let found = asked_again(&mut gather, context, layout, &unseen)?;
    let lost: HashSet<RunKey> = unseen.difference(&found).copied().collect();
    if let Some(table) = open_before.filter(|_| !lost.is_empty()) {
        tracing::warn!(runs = lost.len(), "open runs that sacct no longer knows stay as they were");
        gather.carry(&table, &lost)?;
    }
    let gathered = gather.finish(false)?;
    total.add(change, context, gathered)?;
    Ok(())
}

/// Asks for runs that have vanished; those that were found.
fn asked_again(
    gather: &mut Gather<'_>,
    context: &Context,
    layout: &Layout,
    unseen: &HashSet<RunKey>,
) -> Result<HashSet<RunKey>, CollectError> {
    let mut found = HashSet::new();
    let jobs: Vec<u32> = unseen.iter().map(|(job, _)| *job).collect();
    for jobs in jobs.chunks(AT_ONCE) {
        context
            .sacct
            .runs_of(layout, jobs, |piece| {
                let seen = std::cell::RefCell::new(&mut found);
                gather
                    .piece(piece, |run| {
                        let key = (run.job.get(), run.submit);
                        let wanted = unseen.contains(&key);
                        if wanted {
                            seen.borrow_mut().insert(key);
                        }
                        wanted
                    })
                    .map_err(Failure::Visit)
            })
            .map_err(CollectError::of)?;
    }
    Ok(found)
}

/// The users' texts of a job, as JSON. Without them the run is still worth having: a sacct may know
/// no JSON at all.
fn texts(context: &Context, job: u32) -> Result<Value, CommandError> {
    for _ in 0..TRIES {
        match context.sacct.json(job) {
            Err(CommandError::Stopped) => return Err(CommandError::Stopped),
            Err(error) => tracing::warn!(%error, job, "the texts of a job cannot be had"),
            Ok(text) => match serde_json::from_str(&text) {
                Ok(answer) => return Ok(answer),
                Err(error) => tracing::warn!(%error, job, "the texts of a job are no JSON"),
            },
        }
        context.sacct.pause(PAUSE)?;
    }
    Ok(Value::Null)
}

/// Asks for one job without the users' texts, which then cannot break anything, and for those
/// texts as JSON.
fn one(
    gather: &mut Gather<'_>,
    context: &Context,
    layout: &Layout,
    bare: &Layout,
    job: u32,
) -> Result<(), CollectError> {
    let answer = texts(context, job)?;
    let mut runs = 0;
    let id = job.to_string();
    context
        .sacct
        .runs_of(bare, &[job], |piece| {
            match piece {
                // Asked for an array or a part of a heterogeneous job, sacct tells of the others.
                Piece::Whole(rows) if rows.rows().next().is_some_and(|r| r.id().0 != id) => {}
                Piece::Whole(rows) => {
                    runs += usize::from(
                        whole(gather, layout, bare, rows, &answer).map_err(Failure::Visit)?,
                    );
                }
                Piece::Broken { bytes, .. } => {
                    gather.malformed(Some(job), bytes).map_err(Failure::Visit)?;
                }
            }
            Ok(())
        })
        .map_err(CollectError::of)?;
    if runs == 0 {
        gather.malformed(Some(job), answer.to_string().as_bytes())?;
    }
    Ok(())
}

/// Puts a job's rows together; whether that gave a run.
fn whole(
    gather: &mut Gather<'_>,
    layout: &Layout,
    bare: &Layout,
    job: Job<'_>,
    answer: &Value,
) -> Result<bool, CollectError> {
    let mut texts: Vec<Mended> = Vec::new();
    let mut run = None;
    for (place, row) in job.rows().enumerate() {
        let submit = Timestamp::from_slurm(row.get(Field::Submit)).ok().flatten();
        if place == 0 {
            run = submit.and_then(|submit| run_of(answer, row.id().0, submit));
        }
        let names = match (place.checked_sub(1), run) {
            (None, run) => run,
            (Some(step), Some(run)) => run.pointer(&format!("/steps/{step}/step")),
            (Some(_), None) => None,
        };
        texts.push(Mended::new(layout, bare, &row, names));
    }
    let context = gather.context();
    let rows = texts.iter().filter_map(|text| text.row(layout));
    let Some(Ok((mut run, _))) = run::assemble(rows, &context.cluster) else { return Ok(false) };
    if context.is_forgotten(&run.user, run.submit) {
        return Ok(true);
    }
    let digest = Mended::digest(&texts);
    gather.measure(&mut run);
    if gather.keep(&run, digest)? {
        let end = run.end.filter(|_| run.ended);
        for text in &texts {
            let step = text.row(layout).and_then(|row| row.id().1);
            let key = Key { job: Some(run.job.get()), submit: Some(run.submit), end, step };
            gather.mended(key, text.json().as_bytes())?;
        }
    }
    Ok(true)
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
