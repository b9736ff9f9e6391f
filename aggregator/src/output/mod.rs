//! Types turned into outside text.

pub mod csv;
pub mod format;
pub mod html;
pub mod jobs;
pub mod json;
pub mod markdown;
pub mod number;
pub mod plain;
pub mod report;
pub mod screen;
pub mod sheet;
pub mod table;
pub mod terminal;
