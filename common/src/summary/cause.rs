//! What waste is, and what it is put down to. This is the one definition; tables and pages name
//! these causes and no others.
//!
//! - A run that **completed** wasted what it held and did not use. Where nobody measured its use,
//!   its waste is unknown, and the hours are stated as unknown.
//! - A run that **ended in another way** lost all that it held, measured or not: its result is
//!   taken not to exist. A job that writes checkpoints loses less; no figure of Slurm tells.
//! - A run that **has not ended** has wasted nothing yet.
//!
//! Beside it every summary keeps [`idle`](super::hours::Hours::idle), what was held and not used
//! whatever the end, which is the figure that slurm-usage calls waste.

use crate::slurm::state::JobState;

/// Why hours were wasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Asked for and not used, by runs that completed.
    NotUsed,
    /// The job failed.
    Failed,
    /// It was stopped at its time limit or deadline.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It needed more memory than it had.
    OutOfMemory,
    /// Not the job's doing: node failure, failed boot or launch, preemption, requeue.
    System,
}

impl Cause {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Cause; 6] = [
        Cause::NotUsed,
        Cause::Failed,
        Cause::Timeout,
        Cause::Cancelled,
        Cause::OutOfMemory,
        Cause::System,
    ];

    /// What the waste of a run that ended in this state is put down to.
    #[must_use]
    pub fn of(state: &JobState) -> Cause {
        match state {
            JobState::Failed => Cause::Failed,
            JobState::Timeout | JobState::Deadline => Cause::Timeout,
            JobState::Cancelled { .. } => Cause::Cancelled,
            JobState::OutOfMemory => Cause::OutOfMemory,
            JobState::BootFail
            | JobState::LaunchFailed
            | JobState::NodeFail
            | JobState::Preempted
            | JobState::ReconfigFail
            | JobState::Requeued
            | JobState::RequeueFed
            | JobState::RequeueHold
            | JobState::ResvDelHold
            | JobState::Revoked
            | JobState::SpecialExit => Cause::System,
            // States in which nothing is over, and those not known: an end that was not told
            // apart is not held against the job.
            _ => Cause::NotUsed,
        }
    }

    /// Its name in keys of outputs.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Cause::NotUsed => "not_used",
            Cause::Failed => "failed",
            Cause::Timeout => "timeout",
            Cause::Cancelled => "cancelled",
            Cause::OutOfMemory => "out_of_memory",
            Cause::System => "system",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_cause() {
        for (state, cause) in [
            ("COMPLETED", Cause::NotUsed),
            ("FAILED", Cause::Failed),
            ("TIMEOUT", Cause::Timeout),
            ("DEADLINE", Cause::Timeout),
            ("CANCELLED by 1000", Cause::Cancelled),
            ("OUT_OF_MEMORY", Cause::OutOfMemory),
            ("NODE_FAIL", Cause::System),
            ("PREEMPTED", Cause::System),
            ("BOOT_FAIL", Cause::System),
            ("A_STATE_OF_SLURM_40", Cause::NotUsed),
        ] {
            assert_eq!(Cause::of(&JobState::from(state)), cause, "{state}");
        }
    }

    #[test]
    fn no_ended_state_but_completed_passes_as_not_used() {
        for state in JobState::all() {
            let not_used = Cause::of(&state) == Cause::NotUsed;
            assert!(!state.is_ended() || not_used == (state == JobState::Completed), "{state:?}");
        }
    }
}
