//! The columns of `processed`: one line each.
//!
//! The first 23 have the names that archives of slurm-usage use; sizes with `mb` and `gb` in their
//! names are MiB and GiB, as there. A value that nobody measured is null, never 0.

use steward_common::job::{AgentUse, Run, Source};
use steward_common::limit::Limit;
use steward_common::slurm::duration::TimeLimit;
use steward_common::time::Timestamp;

/// A run with what the archive itself adds to it.
pub struct Stored<'a> {
    /// The run.
    pub run: &'a Run<'a>,
    /// When sacct was asked.
    pub collected: Timestamp,
    /// A digest of its rows, by which a later answer is known to be the same.
    pub digest: i32,
}

/// What type a column is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Real,
    /// A number that follows from others of the row, which are exact: six digits of it are kept, in
    /// half the space.
    Derived,
    /// Yes or no.
    Truth,
    /// A moment.
    Time,
}

/// Where the values of a run go: one after the other, in the order of the columns.
pub trait Row {
    /// Takes the next one, a text.
    fn text(&mut self, value: Option<&str>);
    /// Takes the next one, a whole number.
    fn whole(&mut self, value: Option<i64>);
    /// Takes the next one, a number.
    fn real(&mut self, value: Option<f64>);
    /// Takes the next one, a number that follows from others.
    fn derived(&mut self, value: Option<f64>);
    /// Takes the next one, a yes or no.
    fn truth(&mut self, value: Option<bool>);
    /// Takes the next one, a moment.
    fn time(&mut self, value: Option<Timestamp>);
}

/// How the values of a column are spread, which decides how they are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Few different values: a dictionary.
    Few,
    /// Mostly different ones: written as they are.
    Many,
}

/// One column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What type it is of.
    pub kind: Kind,
    /// How its values are spread.
    pub spread: Spread,
}

/// Text that may be empty because there is nothing to say.
fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn small(number: Option<u32>) -> Option<i64> {
    number.map(i64::from)
}

/// A count that is beyond a signed number of 64 bits is no count.
fn large(number: Option<u64>) -> Option<i64> {
    number.and_then(|number| i64::try_from(number).ok())
}

fn capped(per_cent: Option<f64>) -> Option<f64> {
    per_cent.map(|value| value.min(100.0))
}

fn agent<'a>(stored: &'a Stored<'_>) -> Option<&'a AgentUse> {
    stored.run.agent.as_ref()
}

macro_rules! kind {
    (text) => {
        Kind::Text
    };
    (whole) => {
        Kind::Whole
    };
    (real) => {
        Kind::Real
    };
    (derived) => {
        Kind::Derived
    };
    (truth) => {
        Kind::Truth
    };
    (time) => {
        Kind::Time
    };
}

/// Makes of one line for each column the list of them and the function that goes through it. A list of
/// functions would do, but to call sixty of them for each of a million runs takes a while.
macro_rules! columns {
    ($($name:literal: $kind:ident, $spread:ident, |$stored:ident| $value:expr;)*) => {
        /// Every column except the nested `node_usage`, which stands last in the file.
        pub const COLUMNS: &[Column] = &[
            $(Column { name: $name, kind: kind!($kind), spread: Spread::$spread },)*
        ];

        /// Puts what a run has in each column into the row.
        #[inline(always)]
        pub fn put(stored: &Stored<'_>, row: &mut impl Row) {
            $(
                let $stored = stored;
                row.$kind($value);
            )*
        }
    };
}

columns! {
    "job_id": text, Many, |s| Some(&s.run.shown_id);
    "user": text, Few, |s| Some(&s.run.user);
    "job_name": text, Few, |s| Some(&s.run.name);
    "partition": text, Few, |s| Some(&s.run.partition);
    "state": text, Few, |s| Some(&s.run.state);
    "submit_time": time, Many, |s| Some(s.run.submit);
    "start_time": time, Many, |s| s.run.start;
    "end_time": time, Many, |s| s.run.end;
    "node_list": text, Few, |s| some(&s.run.nodes);
    "elapsed_seconds": whole, Many, |s| large(s.run.elapsed);
    "alloc_cpus": whole, Few, |s| small(s.run.cpus);
    "req_mem_mb": real, Few, |s| s.run.req_mem_mb();
    "max_rss_mb": real, Many, |s| s.run.max_rss_mb();
    "total_cpu_seconds": real, Many, |s| s.run.cpu_seconds;
    "alloc_gpus": whole, Few, |s| small(s.run.gpus);
    "cpu_efficiency": derived, Many, |s| capped(s.run.cpu_efficiency());
    "memory_efficiency": derived, Many, |s| capped(s.run.memory_efficiency());
    "cpu_hours_wasted": derived, Many, |s| s.run.cpu_hours_wasted();
    "memory_gb_hours_wasted": derived, Many, |s| s.run.memory_gb_hours_wasted();
    "cpu_hours_reserved": derived, Many, |s| s.run.cpu_hours_reserved();
    "memory_gb_hours_reserved": derived, Many, |s| s.run.memory_gb_hours_reserved();
    "gpu_hours_reserved": derived, Many, |s| s.run.gpu_hours_reserved();
    "is_complete": truth, Few, |s| Some(s.run.ended);
    "job_id_raw": whole, Many, |s| Some(i64::from(s.run.job.get()));
    "restart": whole, Few, |s| Some(i64::from(s.run.restart));
    "array_job_id": whole, Few, |s| small(s.run.array_job);
    "array_task_id": whole, Many, |s| small(s.run.array_task);
    "het_job_id": whole, Few, |s| small(s.run.het_job);
    "het_offset": whole, Few, |s| small(s.run.het_offset);
    "uid": whole, Few, |s| small(s.run.uid);
    "unix_group": text, Few, |s| some(&s.run.group);
    "account": text, Few, |s| some(&s.run.account);
    "qos": text, Few, |s| some(&s.run.qos);
    "reservation": text, Few, |s| some(&s.run.reservation);
    "cancelled_by_uid": whole, Few, |s| small(s.run.cancelled_by);
    "exit_code": whole, Few, |s| small(s.run.exit_code);
    "exit_signal": whole, Few, |s| small(s.run.exit_signal);
    "eligible_time": time, Many, |s| s.run.eligible;
    "wait_seconds": whole, Many, |s| large(s.run.wait());
    "time_limit_seconds": whole, Few, |s| large(s.run.time_limit_seconds());
    "time_limit_kind": text, Few, |s| s.run.time_limit.map(limit_kind);
    "time_limit_use": derived, Many, |s| s.run.time_limit_use();
    "req_cpus": whole, Few, |s| small(s.run.req_cpus);
    "req_nodes": whole, Few, |s| small(s.run.req_nodes);
    "alloc_nodes": whole, Few, |s| small(s.run.node_count);
    "gpu_types": text, Few, |s| some(&s.run.gpu_types);
    "billing": whole, Few, |s| large(s.run.billing);
    "cpu_source": text, Few, |s| s.run.cpu_source.map(Source::name);
    "memory_source": text, Few, |s| s.run.memory_source.map(Source::name);
    "cpu_efficiency_raw": derived, Many, |s| s.run.cpu_efficiency();
    "memory_efficiency_raw": derived, Many, |s| s.run.memory_efficiency();
    "disk_read_bytes": whole, Many, |s| large(s.run.disk_read);
    "disk_written_bytes": whole, Many, |s| large(s.run.disk_written);
    "energy_joules": whole, Many, |s| large(s.run.energy);
    "steps": whole, Few, |s| small(s.run.steps);
    "gpu_used_seconds": real, Many, |s| agent(s).and_then(|agent| agent.gpu_seconds);
    "io_read_bytes": whole, Many, |s| large(agent(s).and_then(|agent| agent.read_bytes));
    "io_written_bytes": whole, Many, |s| large(agent(s).and_then(|agent| agent.written_bytes));
    "agent_coverage": real, Many, |s| agent(s).and_then(|agent| agent.coverage);
    "alloc_mem_mb": real, Few, |s| s.run.alloc_mem_mb();
    "admin_comment": text, Many, |s| some(&s.run.admin_comment);
    "cluster": text, Few, |s| Some(&s.run.cluster);
    "collected_at": time, Few, |s| Some(s.collected);
    "row_digest": whole, Many, |s| Some(i64::from(s.digest));
}

/// The column that tells as much in files that were written before there was this one: what was given
/// was taken to be what was asked for.
#[must_use]
pub fn before(name: &str) -> Option<&'static str> {
    (name == "alloc_mem_mb").then_some("req_mem_mb")
}

fn limit_kind(limit: TimeLimit) -> &'static str {
    match limit {
        TimeLimit::Own(Limit::At(_)) => "own",
        TimeLimit::Own(Limit::Unlimited) => "unlimited",
        TimeLimit::OfPartition => "partition",
    }
}
