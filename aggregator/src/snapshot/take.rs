//! One snapshot: every question, one after the other.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use steward_common::cluster::{Asked, Question, Seen, Snapshot};
use steward_common::time;

use super::ask::{AskError, Asker};
use crate::source::slurm::command::CommandError;

/// Limits of accounts are asked of the database, and change when an administrator changes them.
const SELDOM: Duration = Duration::from_secs(600);

fn now() -> time::Timestamp {
    time::Timestamp::new(Timestamp::now().as_second())
}

/// A failure that took this long was not the command's: Slurm's commands try for half a minute to
/// reach a slurmctld that is down.
const LONG: Duration = Duration::from_secs(3);

/// Asks what is wanted. What was answered before stays where there is no answer now. After a
/// failure that took long nothing more is asked: whoever hangs is not asked seven times more, and
/// that there is no answer is known soon.
///
/// # Errors
/// If we are told to stop: that nobody answered then means nothing.
pub fn take(
    asker: &mut Asker,
    before: &Snapshot,
    wanted: &[Question],
) -> Result<Snapshot, CommandError> {
    let mut snapshot = before.clone();
    snapshot.taken_at = now();
    let mut hung: Option<Question> = None;
    for question in wanted {
        let at = now();
        let known = before.asked.get(question);
        let fresh = *question == Question::Limits
            && known.is_some_and(|asked| {
                asked.error.is_none() && at.since(asked.at).is_some_and(|age| age < SELDOM)
            });
        if fresh {
            continue;
        }
        let begun = Instant::now();
        let result = match hung {
            Some(other) => Err(AskError::NotAsked(other)),
            None => put(asker, *question, at, &mut snapshot),
        };
        if let Err(AskError::Command(stopped @ CommandError::Stopped)) = result {
            return Err(stopped);
        }
        if result.is_err() && hung.is_none() && begun.elapsed() >= LONG.min(asker.limit()) {
            hung = Some(*question);
        }
        let answered = match &result {
            Ok(()) => Some(at),
            Err(_) => known.and_then(|asked| asked.answered),
        };
        let error = result.err().map(|error| error.to_string());
        snapshot.asked.insert(*question, Asked { at, took: begun.elapsed(), error, answered });
    }
    Ok(snapshot)
}

/// Asks one question and puts its answer in its place.
fn put(
    asker: &mut Asker,
    question: Question,
    at: time::Timestamp,
    into: &mut Snapshot,
) -> Result<(), AskError> {
    match question {
        Question::Nodes => into.nodes = Some(Seen::new(at, asker.nodes()?)),
        Question::Jobs => into.jobs = Some(Seen::new(at, asker.jobs()?)),
        Question::Partitions => into.partitions = Some(Seen::new(at, asker.partitions()?)),
        Question::Reservations => into.reservations = Some(Seen::new(at, asker.reservations()?)),
        Question::Licences => into.licences = Some(Seen::new(at, asker.licences()?)),
        Question::Shares => into.shares = Some(Seen::new(at, asker.shares()?)),
        Question::Limits => into.limits = Some(Seen::new(at, asker.limits(&into.cluster)?)),
        Question::Scheduler => into.scheduler = Some(Seen::new(at, asker.scheduler()?)),
    }
    Ok(())
}

/// Logs what began to fail and what works again, once each.
pub fn tell(before: &Snapshot, after: &Snapshot) {
    for (question, asked) in &after.asked {
        let failed = before.asked.get(question).is_some_and(|asked| asked.error.is_some());
        let (cluster, question) = (&after.cluster, question.name());
        match &asked.error {
            Some(why) if !failed => {
                tracing::error!(%cluster, question, why, "no answer; what was known stays");
            }
            None if failed => tracing::info!(%cluster, question, "answered again"),
            _ => {}
        }
    }
}
