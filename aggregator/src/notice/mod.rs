//! Notices: who hears of what was found, how often, and never twice.

pub mod digest;
pub mod workday;
