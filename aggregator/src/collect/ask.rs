//! What sacct is asked for a part of the plan.
//!
//! The windows first. Of a run in the answer for a window sacct leaves out the steps that are not in
//! that window, and their CPU time in the run's own row. So runs that ended in a window and began
//! before it are asked for once more, by number: then it tells all.

use std::collections::BTreeSet;

use steward_common::job::Run;
use steward_common::slurm::sacct::{Field, Row, ended};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::gather::Gather;
use super::plan::Unit;
use super::{CollectError, Context};
use crate::archive::Day;
use crate::archive::read::RunKey;
use crate::source::slurm::lines::Piece;
use crate::source::slurm::sacct::Failure;

/// Jobs that are asked for in one call: their numbers take a sixth of what an argument may hold.
const AT_ONCE: usize = 2000;

/// Asks for the windows of a unit.
///
/// # Errors
/// If sacct does not answer or the answer cannot be kept.
pub fn unit(gather: &mut Gather<'_>, unit: &Unit) -> Result<(), CollectError> {
    if unit.is_last {
        gather.begin_open()?;
    }
    for window in &unit.windows {
        let is_now = unit.is_last && Some(window) == unit.windows.last();
        let here = Here { window: *window, is_now };
        gather.begin(*window);
        let earlier = here.window(gather, &BTreeSet::new())?;
        let missing = here.by_number(gather, &earlier)?;
        // slurmdbd answers with too little if its own database was away for a moment.
        let missing = here.by_number(gather, &missing)?;
        if let Some(job) = missing.first() {
            let (jobs, day) = (missing.len(), Day::of(window.from()));
            let what = "sacct tells of jobs that ended on a day, but not by number: \
                        they are kept without steps of the time before";
            tracing::warn!(jobs, such_as = job, %day, "{what}");
            here.window(gather, &missing.into_iter().collect())?;
        }
    }
    Ok(())
}

/// Which runs belong to a window: those that ended in it.
#[derive(Clone, Copy)]
struct Here {
    window: Window,
    /// Whether what has not ended belongs to it, too, and what ends while we ask.
    is_now: bool,
}

impl Here {
    /// Whether a run that ended then, or has not, belongs to it.
    fn holds(self, end: Option<Timestamp>) -> bool {
        match end {
            Some(end) => self.window.holds(end) || (self.is_now && end >= self.window.to()),
            None => self.is_now,
        }
    }

    fn is_of(self, run: &Run<'_>) -> bool {
        self.holds(run.end.filter(|_| run.ended))
    }

    /// Whether steps of a run that has ended may be missing in the answer for the window: it began
    /// before, or ended while we asked. Of one that goes on they are not asked for: its figures are
    /// not whole until it has ended.
    fn lacks_steps(self, own: &Own<'_>) -> bool {
        let is_earlier = || own.start().is_some_and(|start| start < self.window.from());
        own.end.is_some_and(|end| is_earlier() || end >= self.window.to())
    }

    /// Asks for the window, and says which jobs are to be asked for by number. Those that are `not_found`
    /// so are taken as they are told.
    fn window(
        self,
        gather: &mut Gather<'_>,
        not_found: &BTreeSet<u32>,
    ) -> Result<Vec<u32>, CollectError> {
        let Context { sacct, .. } = gather.context();
        let layout = gather.layout();
        let mut earlier = Vec::new();
        let mut visit = |piece: Piece<'_>, is_again: bool| match Own::of(&piece) {
            // What has ended on another day, or goes on, need not be read to the end.
            Some(own) if !self.holds(own.end) => Ok(()),
            // One without a number is told of as such.
            Some(own) if self.lacks_steps(&own) && own.is_none_of(not_found) => {
                earlier.extend(own.job());
                Ok(())
            }
            Some(own)
                if is_again && own.key().is_some_and(|key| gather.has_taken(key, own.end)) =>
            {
                Ok(())
            }
            _ => gather.piece(piece, |run| self.is_of(run)).map_err(Failure::Visit),
        };
        let is_second = !not_found.is_empty();
        let of = CollectError::of;
        if self.is_now {
            sacct.jobs(layout, self.window, |piece| visit(piece, is_second)).map_err(of)?;
            sacct.never_ran(layout, self.window, |piece| visit(piece, true)).map_err(of)?;
        } else {
            sacct.ended(layout, self.window, |piece| visit(piece, is_second)).map_err(of)?;
        }
        earlier.sort_unstable();
        earlier.dedup();
        Ok(earlier)
    }

    /// Asks for those runs of these jobs that belong to the window and whose steps may not all be in it;
    /// the jobs of which sacct tells of none.
    fn by_number(self, gather: &mut Gather<'_>, jobs: &[u32]) -> Result<Vec<u32>, CollectError> {
        let Context { sacct, .. } = gather.context();
        let layout = gather.layout();
        let mut missing: BTreeSet<u32> = jobs.iter().copied().collect();
        for jobs in jobs.chunks(AT_ONCE) {
            // Asked for a part of an array, sacct tells of the others, too.
            let is_asked = |job: &u32| jobs.binary_search(job).is_ok();
            let visit = |piece: Piece<'_>| {
                let job = match (Own::of(&piece), &piece) {
                    (Some(own), _) if !(self.holds(own.end) && self.lacks_steps(&own)) => None,
                    (Some(own), _) => own.job(),
                    (None, Piece::Broken { id, .. }) => id.and_then(|id| id.parse().ok()),
                    (None, _) => return gather.piece(piece, |_| false).map_err(Failure::Visit),
                };
                let Some(job) = job.filter(is_asked) else { return Ok(()) };
                missing.remove(&job);
                gather.piece(piece, |run| self.is_of(run)).map_err(Failure::Visit)
            };
            sacct.runs_of(layout, jobs, visit).map_err(CollectError::of)?;
        }
        Ok(missing.into_iter().collect())
    }
}

/// The own row of a job whose rows are whole, and when its run ended. The rest is read when it is asked
/// for: most of a million never are.
struct Own<'a> {
    row: Row<'a>,
    /// `None` if it has not ended.
    end: Option<Timestamp>,
}

impl<'a> Own<'a> {
    /// `None` if rows are not whole, or the own one says something else.
    fn of(piece: &Piece<'a>) -> Option<Own<'a>> {
        let Piece::Whole(job) = piece else { return None };
        let row = job.rows().next()?;
        Some(Own { row, end: ended(&row).ok()? })
    }

    fn start(&self) -> Option<Timestamp> {
        self.row.time(Field::Start).ok()?
    }

    fn job(&self) -> Option<u32> {
        self.row.id().0.parse().ok()
    }

    /// Whether it has a number, and one that is none of these.
    fn is_none_of(&self, jobs: &BTreeSet<u32>) -> bool {
        self.job().is_some_and(|job| !jobs.contains(&job))
    }

    fn key(&self) -> Option<RunKey> {
        self.job().zip(self.row.time(Field::Submit).ok()?)
    }
}
