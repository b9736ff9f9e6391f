//! The outside, read and turned into types.

pub mod csv;
pub mod gpus;
pub mod jobstats;
pub mod people;
pub mod prometheus;
pub mod promql;
pub mod pushgateway;
pub mod slurm;
pub mod yaml;
