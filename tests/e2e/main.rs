//! End-to-end tests against the real testbed: `tests/run` brings it up and calls them.

mod architecture;
mod archive;
mod archive_crash;
mod archive_import;
mod archive_keep;
mod buckets;
mod catalogue;
mod chaos;
mod dashboards;
mod defects;
mod desk;
mod faults;
mod hang;
mod layouts;
mod life;
mod now;
mod numbers;
mod outputs;
mod promql;
mod push;
mod readers;
mod runs;
mod serve;
mod steps;
mod testbed;
mod who;
