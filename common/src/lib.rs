//! What is true for Steward: nouns, units, Slurm's text dialects and the metric catalogue.
//!
//! Nothing here opens, reads, sends, logs or asks the clock; `common/clippy.toml` holds that line.

pub mod causes;
pub mod efficiency;
pub mod id;
pub mod intern;
pub mod limit;
pub mod metric;
pub mod slurm;
pub mod summary;
pub mod time;
pub mod unit;
pub mod window;
