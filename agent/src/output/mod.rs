//! From samples to the outside: text, protobuf, a listener, a Pushgateway.

pub mod exposition;
mod limited;
pub mod push;
pub mod scrape;
pub mod text;
