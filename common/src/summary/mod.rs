//! Who used what, and how well: sums over the runs of jobs in a window.

pub mod row;
