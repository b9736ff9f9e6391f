//! From samples to the outside: text, protobuf, a listener, a Pushgateway.

pub mod exposition;
pub mod push;
pub mod scrape;
pub mod text;
