//! The kernel's files, read and turned into types. No metric names here.

pub mod cgroup;
pub mod cgroup_v1;
pub mod cgroup_v2;
pub mod count;
pub mod cpu_set;
pub mod descriptor;
pub mod environment;
pub mod error;
pub mod file;
pub mod freezer;
pub mod io_stat;
pub mod members;
pub mod mount;
pub mod pressure;
pub mod process;
pub mod risky;
pub mod scope;
pub mod stepd;
pub mod thread;
pub mod watch;
