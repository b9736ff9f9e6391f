//! Types turned into outside text or action.

pub mod archive;
pub mod backtest;
pub mod csv;
pub mod current;
pub mod doctor;
pub mod exporter;
pub mod format;
pub mod html;
pub mod jds;
pub mod jobs;
pub mod json;
pub mod markdown;
pub mod nodes;
pub mod number;
pub mod plain;
pub mod progress;
pub mod pushgateway;
pub mod report;
pub mod rules;
pub mod screen;
pub mod service;
pub mod sheet;
pub mod table;
pub mod terminal;
