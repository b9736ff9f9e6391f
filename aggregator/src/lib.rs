//! steward: the centre. Sources turn outside text into types, outputs turn types into outside text.

pub mod analyze;
pub mod archive;
pub mod cli;
pub mod collect;
pub mod command;
pub mod config;
pub mod current;
pub mod doctor;
pub mod driver;
pub mod evaluate;
pub mod exporter;
pub mod jds;
pub mod jobs;
pub mod keep;
pub mod manual;
pub mod now;
pub mod output;
pub mod purge;
pub mod schedule;
pub mod serve;
pub mod shutdown;
pub mod snapshot;
pub mod source;
pub mod status;
pub mod store;
pub mod sweep;
