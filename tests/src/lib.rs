//! Harness of the end-to-end tests: the testbed's parts, each behind a few plain functions.
//!
//! A failure here is a failed test, so these functions panic with a message that says what was
//! being done.

pub mod accounted;
pub mod agent;
pub mod alertmanager;
pub mod archive;
pub mod bank;
pub mod centre;
pub mod certificate;
pub mod cgroups;
pub mod dashboard;
pub mod endpoint;
pub mod exposition;
pub mod fixture;
pub mod gateway;
pub mod http;
pub mod hung;
pub mod object_storage;
pub mod postgres;
pub mod prometheus;
pub mod python;
pub mod receiver;
pub mod sacct_text;
pub mod scripted;
pub mod service;
pub mod shared;
pub mod slapd;
pub mod slurm;
pub mod smtp;
pub mod terminal;
pub mod testbed;
pub mod wait;

/// The `tests` directory of the clone that cargo was started in. Asked when the test runs: clones
/// may share a target directory, and what one of them compiled the other runs.
pub fn directory() -> std::path::PathBuf {
    let directory = std::env::var_os("CARGO_MANIFEST_DIR").expect("to be started by cargo");
    std::path::PathBuf::from(directory)
}
