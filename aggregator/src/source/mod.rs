//! The outside, read and turned into types.

pub mod prometheus;
pub mod promql;
pub mod slurm;
