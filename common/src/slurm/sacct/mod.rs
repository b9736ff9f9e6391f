//! sacct's rows: which fields are asked for, how a line becomes fields, how the lines of a job
//! become one run.

pub mod draft;
pub mod field;
pub mod row;
mod values;

pub use draft::{Draft, ended, family, owner};
pub use field::{DELIMITER, Field, Layout};
pub use row::Row;
pub use values::Oddity;

#[cfg(test)]
mod tests;
