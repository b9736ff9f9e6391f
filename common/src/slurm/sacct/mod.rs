//! sacct's rows: which fields are asked for, how a line becomes fields, how the lines of a job
//! become one run.

pub mod field;
pub mod row;

pub use field::{DELIMITER, Field, Layout};
pub use row::Row;
