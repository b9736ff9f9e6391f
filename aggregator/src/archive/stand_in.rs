//! Numbers for jobs whose own is not known: array tasks and parts of heterogeneous jobs that were
//! taken over from an archive that has only the ids that people see.
//!
//! Such a number lies above all that Slurm gives outside of federations, and is the same each time.
//! If sacct later tells of the same run, under its own number, that one counts.

use steward_common::time::Timestamp;
use twox_hash::XxHash3_64;

/// The first of them.
const FIRST: u32 = 1 << 31;

/// How many there are: Slurm's two special numbers are above.
const COUNT: u32 = FIRST - 16;

/// The number for a part of a job. Parts of one job have different ones.
#[must_use]
pub fn number(job: u32, part: u32) -> u32 {
    FIRST + job.wrapping_mul(0x9e37_79b1).wrapping_add(part) % COUNT
}

/// Whether a number may be a stand-in.
#[must_use]
pub fn is(job: u32) -> bool {
    job >= FIRST
}

/// By what one run is known under two numbers.
#[must_use]
pub fn shown(id: &str, submit: Timestamp) -> u64 {
    XxHash3_64::oneshot_with_seed(submit.get().unsigned_abs(), id.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use steward_common::id::JobId;

    use super::*;

    #[test]
    fn tasks_of_an_array_have_different_numbers_that_are_job_ids() {
        for job in [1, 100, 67_108_863, u32::MAX] {
            let numbers: HashSet<u32> = (0..100_000).map(|task| number(job, task)).collect();
            assert_eq!(numbers.len(), 100_000);
            assert!(numbers.iter().all(|one| is(*one) && JobId::new(*one).is_some()));
        }
        assert!(!is(67_108_863));
    }
}
