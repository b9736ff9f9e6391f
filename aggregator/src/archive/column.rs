//! The columns of `processed`: one line each.
//!
//! The first 23 have the names that archives of slurm-usage use; sizes with `mb` and `gb` in their
//! names are MiB and GiB, as there. A value that nobody measured is null, never 0.

use steward_common::job::{Run, Source};
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

/// How a column's value is had, which is also what type it is of.
#[derive(Clone, Copy)]
pub enum Get {
    /// Text.
    Text(for<'a> fn(&'a Stored<'a>) -> Option<&'a str>),
    /// A whole number.
    Whole(fn(&Stored<'_>) -> Option<i64>),
    /// A number.
    Real(fn(&Stored<'_>) -> Option<f64>),
    /// A number that follows from others of the row, which are exact: six digits of it are kept, in
    /// half the space.
    Derived(fn(&Stored<'_>) -> Option<f64>),
    /// Yes or no.
    Truth(fn(&Stored<'_>) -> Option<bool>),
    /// A moment.
    Time(fn(&Stored<'_>) -> Option<Timestamp>),
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
    /// How its value is had.
    pub get: Get,
    /// How its values are spread.
    pub spread: Spread,
}

const fn text(name: &'static str, get: for<'a> fn(&'a Stored<'a>) -> Option<&'a str>) -> Column {
    Column { name, get: Get::Text(get), spread: Spread::Few }
}

const fn unique(name: &'static str, get: for<'a> fn(&'a Stored<'a>) -> Option<&'a str>) -> Column {
    Column { name, get: Get::Text(get), spread: Spread::Many }
}

const fn whole(name: &'static str, get: fn(&Stored<'_>) -> Option<i64>) -> Column {
    Column { name, get: Get::Whole(get), spread: Spread::Few }
}

const fn number(name: &'static str, get: fn(&Stored<'_>) -> Option<i64>) -> Column {
    Column { name, get: Get::Whole(get), spread: Spread::Many }
}

const fn real(name: &'static str, get: fn(&Stored<'_>) -> Option<f64>) -> Column {
    Column { name, get: Get::Real(get), spread: Spread::Many }
}

const fn derived(name: &'static str, get: fn(&Stored<'_>) -> Option<f64>) -> Column {
    Column { name, get: Get::Derived(get), spread: Spread::Many }
}

const fn truth(name: &'static str, get: fn(&Stored<'_>) -> Option<bool>) -> Column {
    Column { name, get: Get::Truth(get), spread: Spread::Few }
}

const fn time(name: &'static str, get: fn(&Stored<'_>) -> Option<Timestamp>) -> Column {
    Column { name, get: Get::Time(get), spread: Spread::Many }
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

/// Every column except the nested `node_usage`, which stands last in the file.
pub const COLUMNS: &[Column] = &[
    unique("job_id", |s| Some(&s.run.shown_id)),
    text("user", |s| Some(&s.run.user)),
    text("job_name", |s| Some(&s.run.name)),
    text("partition", |s| Some(&s.run.partition)),
    text("state", |s| Some(&s.run.state)),
    time("submit_time", |s| Some(s.run.submit)),
    time("start_time", |s| s.run.start),
    time("end_time", |s| s.run.end),
    text("node_list", |s| some(&s.run.nodes)),
    number("elapsed_seconds", |s| large(s.run.elapsed)),
    whole("alloc_cpus", |s| small(s.run.cpus)),
    Column { spread: Spread::Few, ..real("req_mem_mb", |s| s.run.req_mem_mb()) },
    real("max_rss_mb", |s| s.run.max_rss_mb()),
    real("total_cpu_seconds", |s| s.run.cpu_seconds),
    whole("alloc_gpus", |s| small(s.run.gpus)),
    derived("cpu_efficiency", |s| capped(s.run.cpu_efficiency())),
    derived("memory_efficiency", |s| capped(s.run.memory_efficiency())),
    derived("cpu_hours_wasted", |s| s.run.cpu_hours_wasted()),
    derived("memory_gb_hours_wasted", |s| s.run.memory_gb_hours_wasted()),
    derived("cpu_hours_reserved", |s| s.run.cpu_hours_reserved()),
    derived("memory_gb_hours_reserved", |s| s.run.memory_gb_hours_reserved()),
    derived("gpu_hours_reserved", |s| s.run.gpu_hours_reserved()),
    truth("is_complete", |s| Some(s.run.ended)),
    number("job_id_raw", |s| Some(i64::from(s.run.job.get()))),
    whole("restart", |s| Some(i64::from(s.run.restart))),
    whole("array_job_id", |s| small(s.run.array_job)),
    number("array_task_id", |s| small(s.run.array_task)),
    whole("het_job_id", |s| small(s.run.het_job)),
    whole("het_offset", |s| small(s.run.het_offset)),
    whole("uid", |s| small(s.run.uid)),
    text("unix_group", |s| some(&s.run.group)),
    text("account", |s| some(&s.run.account)),
    text("qos", |s| some(&s.run.qos)),
    text("reservation", |s| some(&s.run.reservation)),
    whole("cancelled_by_uid", |s| small(s.run.cancelled_by)),
    whole("exit_code", |s| small(s.run.exit_code)),
    whole("exit_signal", |s| small(s.run.exit_signal)),
    time("eligible_time", |s| s.run.eligible),
    number("wait_seconds", |s| large(s.run.wait())),
    whole("time_limit_seconds", |s| large(s.run.time_limit_seconds())),
    text("time_limit_kind", |s| s.run.time_limit.map(limit_kind)),
    derived("time_limit_use", |s| s.run.time_limit_use()),
    whole("req_cpus", |s| small(s.run.req_cpus)),
    whole("req_nodes", |s| small(s.run.req_nodes)),
    whole("alloc_nodes", |s| small(s.run.node_count)),
    text("gpu_types", |s| some(&s.run.gpu_types)),
    whole("billing", |s| large(s.run.billing)),
    text("cpu_source", |s| s.run.cpu_source.map(Source::name)),
    text("memory_source", |s| s.run.memory_source.map(Source::name)),
    derived("cpu_efficiency_raw", |s| s.run.cpu_efficiency()),
    derived("memory_efficiency_raw", |s| s.run.memory_efficiency()),
    number("disk_read_bytes", |s| large(s.run.disk_read)),
    number("disk_written_bytes", |s| large(s.run.disk_written)),
    number("energy_joules", |s| large(s.run.energy)),
    whole("steps", |s| small(s.run.steps)),
    real("gpu_used_seconds", |s| s.run.agent.as_ref()?.gpu_seconds),
    number("io_read_bytes", |s| large(s.run.agent.as_ref()?.read_bytes)),
    number("io_written_bytes", |s| large(s.run.agent.as_ref()?.written_bytes)),
    real("agent_coverage", |s| s.run.agent.as_ref()?.coverage),
    unique("admin_comment", |s| some(&s.run.admin_comment)),
    text("cluster", |s| Some(&s.run.cluster)),
    Column { spread: Spread::Few, ..time("collected_at", |s| Some(s.collected)) },
    number("row_digest", |s| Some(i64::from(s.digest))),
];

fn limit_kind(limit: TimeLimit) -> &'static str {
    match limit {
        TimeLimit::Own(Limit::At(_)) => "own",
        TimeLimit::Own(Limit::Unlimited) => "unlimited",
        TimeLimit::OfPartition => "partition",
    }
}
