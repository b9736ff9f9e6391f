//! How rows become a run: one way for what sacct has just said and for what is kept of what it
//! once said, so that an archive that is rebuilt is the one that was collected.

use steward_common::job::{AgentUse, Run, Source};
use steward_common::slurm::sacct::{Draft, Oddity, Row};
use steward_common::unit::Bytes;
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
    complete(&mut draft, rows, cluster);
    Some(Ok(draft.finish()))
}

/// The run of a job's own row, which is drafted, and of those of its steps; what could not be read of
/// it.
pub fn complete<'d, 'a>(
    draft: &'d mut Draft<'a>,
    steps: impl Iterator<Item = Row<'a>>,
    cluster: &'a str,
) -> (&'d mut Run<'a>, &'d [Oddity]) {
    for row in steps {
        draft.step(&row);
    }
    let (run, oddities) = draft.end();
    run.cluster = cluster.into();
    (run, oddities)
}

/// The share of a run that agents must have seen for their figure of its memory to count.
const SEEN_ENOUGH: f64 = 0.9;

/// Adds what the agents measured. If they saw enough of the run, on all its nodes, its memory is
/// what they say: they look at all of the job at once, and do not count the page cache.
pub fn attach(run: &mut Run<'_>, agent: AgentUse) {
    let enough = agent.coverage.is_some_and(|coverage| coverage >= SEEN_ENOUGH);
    let all = run.node_count.and_then(|nodes| usize::try_from(nodes).ok());
    if enough && all == Some(agent.nodes.len()) {
        let peaks = agent.nodes.iter().map(|node| node.peak_memory_bytes.map(Bytes::new));
        let sum = |sum: Option<Bytes>, peak: Option<Bytes>| sum?.checked_add(peak?);
        if let Some(peak) = peaks.fold(Some(Bytes::new(0)), sum) {
            run.peak_memory = Some(peak);
            run.memory_source = Some(Source::Agent);
        }
    }
    run.agent = Some(agent);
}

/// A digest of a run's rows, each with its line end, by which a later answer is known to be the
/// same.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "any 32 bits of a digest will do")]
pub fn digest(rows: &[u8]) -> i32 {
    XxHash3_64::oneshot(rows) as i32
}
