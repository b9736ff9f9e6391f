//! steward: the centre. Sources turn outside text into types, outputs turn types into outside text.

pub mod analyze;
pub mod cli;
pub mod now;
pub mod output;
pub mod source;
