//! What is true for Steward: nouns, units, Slurm's text dialects and the metric catalogue.
//!
//! Nothing here opens, reads, sends, logs or asks the clock; `common/clippy.toml` holds that line.

pub mod alike;
pub mod bank;
pub mod causes;
pub mod cluster;
pub mod config;
pub mod efficiency;
pub mod exposition;
pub mod id;
pub mod intern;
pub mod job;
pub mod limit;
pub mod metric;
pub mod report;
pub mod rule;
pub mod slurm;
pub mod span;
pub mod stretches;
pub mod summary;
pub mod time;
pub mod unit;
pub mod visible;
pub mod window;
