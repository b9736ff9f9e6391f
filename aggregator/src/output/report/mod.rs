//! A summary as tables: which figures, in which order, under which names. The columns of
//! slurm-usage come first, then ours.

mod held;
mod waste;

use steward_common::summary::cause::Cause;
use steward_common::summary::hours::Hours;
use steward_common::summary::quantile::Spread;
use steward_common::summary::report::{Line, Report, StateLine};

use super::number::{counted, hours, percent};
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program};

/// Where and when, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub from: String,
    /// The last day, which is in it.
    pub to: String,
    /// The time zone of the days.
    pub zone: String,
    /// Which runs, if not all: `user alice, partition gpu`.
    pub only: Option<String>,
}

/// Names of the tables, in the order in which they are shown.
pub const TABLES: [&str; 14] = [
    "days",
    "users",
    "groups",
    "accounts",
    "partitions",
    "qos",
    "clusters",
    "nodes",
    "gpu_types",
    "efficiency",
    "waste",
    "wasters",
    "totals",
    "states",
];

/// The summary as a document.
#[must_use]
pub fn document(report: &Report, period: &Period) -> Document {
    let sheets = vec![
        held::days(report),
        held::users(report),
        held::groups(report),
        held::lines("accounts", "Accounts", &report.accounts),
        held::lines("partitions", "Partitions", &report.partitions),
        held::lines("qos", "Quality of service", &report.qos),
        held::clusters(report),
        held::nodes(report),
        held::gpu_types(report),
        efficiency(report),
        waste::waste(report),
        waste::wasters(report),
        totals(report),
        states(report),
    ];
    let seconds = |time: steward_common::time::Timestamp| Cell::Number(time.get() as f64);
    Document {
        title: format!("Use from {} to {}", period.from, period.to),
        headline: headline(report, period),
        facts: vec![
            ("from_day", Cell::text(&period.from)),
            ("to_day", Cell::text(&period.to)),
            ("time_zone", Cell::text(&period.zone)),
            ("from_timestamp_seconds", seconds(report.window.from())),
            ("to_timestamp_seconds", seconds(report.window.to())),
            ("only", period.only.as_ref().map_or(Cell::Missing, Cell::text)),
        ],
        sheets,
    }
}

/// What it comes to.
fn headline(report: &Report, period: &Period) -> Vec<String> {
    let total = &report.total;
    let (cpu, gpu) = (&total.tally.cpu, &total.tally.gpu);
    let only = period.only.as_ref().map_or(String::new(), |only| format!(" ({only})"));
    let when = if period.from == period.to {
        format!("On {}", period.from)
    } else {
        format!("From {} to {}", period.from, period.to)
    };
    let gpu_hours = if gpu.reserved > 0.0 {
        format!(" and {} GPU-hours", hours(gpu.reserved))
    } else {
        String::new()
    };
    let mut lines = vec![format!(
        "{when}{only}, {} of {} held {} CPU-hours{gpu_hours}.",
        counted(total.tally.jobs, "job"),
        counted(total.users, "user"),
        hours(cpu.reserved),
    )];
    match (cpu.efficiency_capped(), cpu.coverage()) {
        (Some(used), Some(covered)) => lines.push(format!(
            "Ended jobs used {} of their CPU time (measured for {} of it).",
            percent(used),
            percent(covered),
        )),
        (None, Some(_)) => lines.push("Nobody measured what ended jobs used.".to_owned()),
        _ => {}
    }
    let waste = &total.waste.cpu;
    if let Some(wasted) = waste.total().filter(|wasted| *wasted > 0.0) {
        let of = |cause: Cause| waste.of(cause).unwrap_or(0.0);
        let main = Cause::ALL.into_iter().max_by(|a, b| of(*a).total_cmp(&of(*b)));
        let main = main.map_or(String::new(), |main| {
            format!(
                "; the largest part ({}) by jobs that {}",
                percent(of(main) / wasted),
                said(main)
            )
        });
        let share = percent(wasted / cpu.ended());
        lines.push(format!(
            "{} CPU-hours ({share} of what ended jobs held) were wasted{main}.",
            hours(wasted)
        ));
    }
    lines
}

/// A cause as the end of "jobs that …".
fn said(cause: Cause) -> &'static str {
    match cause {
        Cause::NotUsed => "asked for more than they used",
        Cause::Failed => "failed",
        Cause::Timeout => "ran into their time limit",
        Cause::Cancelled => "were cancelled",
        Cause::OutOfMemory => "ran out of memory",
        Cause::System => "the system ended",
    }
}

fn wait(seconds: Option<f64>) -> Cell {
    Cell::number(seconds.map(|seconds| seconds / 3600.0))
}

/// What programs get of every line beyond what people see.
const MORE: [Field<Line>; 18] = [
    (program("cpu_hours_used"), |line| Cell::number(line.tally.cpu.known_use())),
    (program("cpu_hours_not_ended"), |line| Cell::Number(line.tally.cpu.open)),
    (program("cpu_hours_unmeasured"), |line| Cell::Number(line.tally.cpu.unmeasured())),
    (program("cpu_hours_idle"), |line| Cell::number(line.tally.cpu.idle())),
    (program("cpu_hours_wasted"), |line| Cell::number(line.waste.cpu.total())),
    (program("cpu_hours_waste_unknown"), |line| Cell::Number(line.waste.cpu.unknown)),
    (program("cpu_efficiency_raw_percent"), |line| Cell::share(line.tally.cpu.efficiency())),
    (program("memory_gib_hours_used"), |line| Cell::number(line.tally.memory.known_use())),
    (program("memory_gib_hours_not_ended"), |line| Cell::Number(line.tally.memory.open)),
    (program("memory_gib_hours_unmeasured"), |line| Cell::Number(line.tally.memory.unmeasured())),
    (program("memory_gib_hours_idle"), |line| Cell::number(line.tally.memory.idle())),
    (program("memory_gib_hours_wasted"), |line| Cell::number(line.waste.memory.total())),
    (program("memory_gib_hours_waste_unknown"), |line| Cell::Number(line.waste.memory.unknown)),
    (program("memory_efficiency_raw_percent"), |line| Cell::share(line.tally.memory.efficiency())),
    (program("gpu_hours_used"), |line| Cell::number(line.tally.gpu.known_use())),
    (program("gpu_hours_unmeasured"), |line| Cell::Number(line.tally.gpu.unmeasured())),
    (program("gpu_hours_wasted"), |line| Cell::number(line.waste.gpu.total())),
    (program("gpu_hours_waste_unknown"), |line| Cell::Number(line.waste.gpu.unknown)),
];

/// A line of the table of efficiencies.
struct Measure<'a> {
    name: &'static str,
    spread: &'a Spread,
    hours: Option<&'a Hours>,
}

fn efficiency(report: &Report) -> Sheet {
    let fields: &[Field<Measure>] = &[
        (always("measure", "Measure, %"), |one| Cell::text(one.name)),
        (drop(3, "jobs", "Jobs"), |one| Cell::Count(one.spread.count())),
        (always("mean_percent", "Mean"), |one| Cell::share(one.spread.mean())),
        (always("median_percent", "Median"), |one| Cell::share(one.spread.quantile(0.5))),
        (drop(1, "min_percent", "Min"), |one| Cell::share(one.spread.min())),
        (drop(1, "max_percent", "Max"), |one| Cell::share(one.spread.max())),
        (always("weighted_mean_percent", "Weighted"), |one| {
            Cell::share(one.hours.and_then(Hours::efficiency_capped))
        }),
        (drop(2, "quartile_25_percent", "25 %"), |one| Cell::share(one.spread.quantile(0.25))),
        (drop(2, "quartile_75_percent", "75 %"), |one| Cell::share(one.spread.quantile(0.75))),
        (hide(4, "above_100_percent", "Above 100"), |one| Cell::Count(one.spread.above_one())),
        (program("weighted_mean_raw_percent"), |one| {
            Cell::share(one.hours.and_then(Hours::efficiency))
        }),
        (program("coverage_percent"), |one| Cell::share(one.hours.and_then(Hours::coverage))),
    ];
    let tally = &report.total.tally;
    let measures = [
        Measure { name: "CPU", spread: &report.cpu_spread, hours: Some(&tally.cpu) },
        Measure { name: "Memory", spread: &report.memory_spread, hours: Some(&tally.memory) },
        Measure { name: "GPU", spread: &report.gpu_spread, hours: Some(&tally.gpu) },
        Measure { name: "Time limit", spread: &report.limit_spread, hours: None },
    ];
    let measured = measures.iter().filter(|one| one.spread.count() > 0);
    let mut sheet = Sheet::new("efficiency", "Efficiency of ended jobs", fields, measured);
    sheet.notes.push(
        "Mean and median take each job alike; Weighted counts it by the hours that it held."
            .to_owned(),
    );
    sheet
}

fn totals(report: &Report) -> Sheet {
    let mut fields: Vec<Field<Line>> = vec![
        (always("jobs", "Jobs"), |line| Cell::Count(line.tally.jobs)),
        (always("users", "Users"), |line| Cell::Count(line.users)),
        (always("cpu_hours", "CPU-hours"), |line| Cell::Number(line.tally.cpu.reserved)),
        (hide(1, "gpu_hours", "GPU-hours"), |line| Cell::Number(line.tally.gpu.reserved)),
        (always("memory_gib_hours", "Memory, GiB-hours"), |line| {
            Cell::Number(line.tally.memory.reserved)
        }),
        (always("wait_mean_hours", "Mean wait, hours"), |line| wait(line.tally.wait.mean())),
        (always("wait_median_hours", "Median wait, hours"), |line| wait(line.tally.wait.median())),
        (always("cpu_efficiency_percent", "CPU efficiency, %"), |line| {
            Cell::share(line.tally.cpu.efficiency_capped())
        }),
        (always("memory_efficiency_percent", "Memory efficiency, %"), |line| {
            Cell::share(line.tally.memory.efficiency_capped())
        }),
        (hide(1, "gpu_efficiency_percent", "GPU efficiency, %"), |line| {
            Cell::share(line.tally.gpu.efficiency_capped())
        }),
        (always("cpu_coverage_percent", "CPU measured, % of hours"), |line| {
            Cell::share(line.tally.cpu.coverage())
        }),
        (always("memory_coverage_percent", "Memory measured, % of hours"), |line| {
            Cell::share(line.tally.memory.coverage())
        }),
        (hide(1, "gpu_coverage_percent", "GPU measured, % of hours"), |line| {
            Cell::share(line.tally.gpu.coverage())
        }),
    ];
    fields.extend(MORE);
    let mut sheet = Sheet::new("totals", "Totals", &fields, [&report.total]);
    sheet.upright = true;
    sheet
}

fn states(report: &Report) -> Sheet {
    let fields: &[Field<StateLine>] = &[
        (always("state", "State"), |line| Cell::text(&line.state)),
        (always("jobs", "Jobs"), |line| Cell::Count(line.jobs)),
        (always("share_percent", "%"), |line| Cell::Share(line.share)),
        (drop(1, "cpu_hours", "CPU hours"), |line| Cell::Number(line.cpu_hours)),
        (hide(2, "gpu_hours", "GPU hours"), |line| Cell::Number(line.gpu_hours)),
    ];
    let mut sheet = Sheet::new("states", "States", fields, &report.states);
    sheet.top = 0;
    sheet
}
