//! Service units of accounts: what was granted, what is used, and what follows from both.
//!
//! A service unit is one billing hour; everything is counted in whole billing-seconds. What an account
//! may use is the sum of its entries ([`entry`]); what it has used is what Slurm says ([`standing`]).

pub mod account;
pub mod amount;
pub mod charge;
pub mod day;
pub mod entry;
pub mod forecast;
pub mod hold;
pub mod level;
pub mod standing;
pub mod units;

pub use account::{Account, Change, Line, Refused, Told};
pub use amount::AmountError;
pub use day::Day;
pub use entry::{Entry, Kind, Totals};
pub use forecast::Forecast;
pub use hold::Mechanism;
pub use level::{AtLimit, Level, Levels};
pub use standing::{Allocation, Standing};
pub use units::Units;
