//! Types turned into outside text.

pub mod table;
