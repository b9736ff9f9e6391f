//! End-to-end tests against the real testbed: `tests/run` brings it up and calls them.

mod catalogue;
mod defects;
mod faults;
mod layouts;
mod numbers;
mod outputs;
mod push;
mod who;
