//! How rows become a run: one way for what sacct has just said and for what is kept of what it
//! once said, so that an archive that is rebuilt is the one that was collected.

use steward_common::job::{AgentUse, Run};
use steward_common::slurm::sacct::{Draft, Oddity, Row};
use twox_hash::XxHash3_64;

/// The run of a job's own row and of those of its steps, in this order, and what could not be read
/// of it. `None` without rows.
///
/// # Errors
/// If the own row does not say which run it is.
pub fn assemble<'a>(
    mut rows: impl Iterator<Item = Row<'a>>,
    cluster: &'a str,
) -> Option<Result<(Run<'a>, Vec<Oddity>), Oddity>> {
    let mut draft = match Draft::new(&rows.next()?) {
        Ok(draft) => draft,
        Err(oddity) => return Some(Err(oddity)),
    };
    for row in rows {
        draft.step(&row);
    }
    let (mut run, oddities) = draft.finish();
    run.cluster = cluster.into();
    Some(Ok((run, oddities)))
}

/// Adds what the agents measured.
pub fn attach(run: &mut Run<'_>, agent: AgentUse) {
    run.agent = Some(agent);
}

/// A digest of a run's rows, each with its line end, by which a later answer is known to be the
/// same.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "any 32 bits of a digest will do")]
pub fn digest(rows: &[u8]) -> i32 {
    XxHash3_64::oneshot(rows) as i32
}
