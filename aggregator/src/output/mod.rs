//! Types turned into outside text or action.

pub mod pushgateway;
pub mod service;
pub mod table;
