//! How much text may have to be kept before it can be cut up.

use std::io;

use super::super::command::begin;

/// A job with more text than this is no job: the answer is not sacct's.
const JOB: usize = 1 << 30;

/// Nor is so much text without another row: a name has kilobytes. All rows of a job may well have
/// more, with tens of thousands of steps.
const ROW: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// Sees that what is kept, `bytes`, may grow to `room` bytes when there was no row in the last `row`
/// of them.
///
/// # Errors
/// If that is more than any job has. It says how the text begins.
pub fn check(bytes: &[u8], row: usize, room: usize) -> io::Result<()> {
    let (what, most) = match row >= ROW {
        true => ("a row", ROW),
        false if room > JOB => ("a job", JOB),
        false => return Ok(()),
    };
    let (most, begin) = (most >> 20, begin(bytes));
    let why = format!("{what} of {most} MiB or more: {begin}; slurm.sacct must be a sacct");
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}
