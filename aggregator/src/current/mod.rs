//! Jobs and nodes of a cluster as they are now, as rows for programs: what `/api/v1`, the Unix
//! socket, `steward current` and `steward nodes` give. Their names are those of the archive's columns
//! where both have them. Times are seconds since 1970; what nobody knows is `null`.

mod job;
mod node;

pub use job::{JobRow, TimeLimit, Unlimited};
pub use node::{Held, NodeRow, ReasonRow, StockRow, jobs_on};
