//! `steward archive rows`: what sacct told of a job.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::archive::ids::{JobIds, Known};
use crate::archive::{Archive, ArchiveError};
use crate::command::Outcome;
use crate::keep::told::{self, Told};
use crate::output::number::counted;
use crate::output::plain::visible;

/// A job as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// By its own number.
    Number(u32),
    /// As tables show a task of an array or a part of a heterogeneous job.
    Shown(String),
}

impl FromStr for Job {
    type Err = String;

    fn from_str(text: &str) -> Result<Job, String> {
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok())?
        };
        let shown = || {
            text.split_once(['_', '+'])
                .is_some_and(|(job, part)| number(job).is_some() && number(part).is_some())
        };
        match number(text) {
            Some(number) => Ok(Job::Number(number)),
            None if shown() => Ok(Job::Shown(text.to_owned())),
            None => Err("ids of jobs are like 739, 741_0 or 743+1".to_owned()),
        }
    }
}

/// Shows the rows of a job.
pub(super) fn run(
    archive: &Archive,
    cluster: Option<&str>,
    job: &Job,
    json: bool,
) -> anyhow::Result<Outcome> {
    let (all, note) = match job {
        Job::Number(number) => {
            let all = told::told(archive, cluster, *number)?;
            let note = other_tasks(archive, cluster, *number, &all)?;
            (all, note)
        }
        Job::Shown(id) => {
            let jobs = archive.ids(cluster, Known::As(id))?;
            if jobs.is_empty() {
                let text = format!("{id}: the archive has no run of such a job\n");
                return Ok(Outcome::failed(if json { "[]\n".to_owned() } else { text }));
            }
            let mut all = Vec::new();
            for JobIds { cluster, number, .. } in &jobs {
                all.extend(told::told(archive, Some(cluster), *number)?);
            }
            (all, None)
        }
    };
    // Standard output is the job's rows, which a program may read.
    if let Some(note) = note {
        tracing::warn!("{note}");
    }
    if json {
        return Ok(Outcome::done(serde_json::to_string_pretty(&told::json(&all))? + "\n"));
    }
    if all.is_empty() {
        let why = "no rows of such a job are kept (archive.raw, archive.retention_raw)";
        let job = match job {
            Job::Number(number) => number.to_string(),
            Job::Shown(id) => id.clone(),
        };
        return Ok(Outcome::failed(format!("{job}: {why}\n")));
    }
    Ok(Outcome::done(text(&all)))
}

fn text(all: &[Told]) -> String {
    let mut text = String::new();
    for Told { cluster, collected, form, rows } in all {
        let when = jiff::Timestamp::from_second(collected.get()).unwrap_or_default();
        text += &format!("{cluster}, collected {when}, {form}\n");
        for row in rows {
            text.push('\n');
            for (field, value) in row {
                text += &format!("  {field:<18} {}\n", visible(value));
            }
        }
        text.push('\n');
    }
    text
}

/// What to say if the number is an array's: one of its tasks has the array's own number, and only
/// that one is shown.
fn other_tasks(
    archive: &Archive,
    cluster: Option<&str>,
    array: u32,
    all: &[Told],
) -> Result<Option<String>, ArchiveError> {
    let begin = format!("{array}_");
    let mut ids = all.iter().flat_map(|told| told.rows.iter().flatten());
    let is_task = |(field, id): &(String, String)| field == "JobID" && id.starts_with(&begin);
    // To look for tasks of a job that is no array would cost reading every file.
    if !all.is_empty() && !ids.any(is_task) {
        return Ok(None);
    }
    let tasks = archive.ids(cluster, Known::TasksOf(array))?;
    let tasks: BTreeSet<JobIds> = tasks.into_iter().filter(|task| task.number != array).collect();
    Ok(tasks.first().map(|first| {
        format!(
            "{array} is an array with {} beside what is shown; ask for each by its own id, such as \
             `steward archive rows {}`",
            counted(tasks.len() as u64, "task"),
            first.shown
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_as_tables_show_them() {
        assert_eq!("4711".parse(), Ok(Job::Number(4711)));
        for id in ["17_3", "22+1"] {
            assert_eq!(id.parse(), Ok(Job::Shown(id.to_owned())));
        }
        for id in ["", "a", "1_", "_1", "1_2_3", "1.batch", "741_[3-9]", "99999999999", "-1"] {
            assert!(id.parse::<Job>().unwrap_err().contains("741_0"), "{id}");
        }
    }
}
