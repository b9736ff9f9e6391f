//! A summary as tables: which figures, in which order, under which names. The columns of
//! slurm-usage come first, then ours.

use steward_common::summary::cause::Cause;
use steward_common::summary::hours::{Hours, Waste};
use steward_common::summary::quantile::Spread;
use steward_common::summary::report::{DayLine, GpuLine, Line, NodeLine, Report, StateLine};

use super::number::{counted, hours, percent};
use super::sheet::{Cell, Chart, Document, Field, Sheet, Tone, always, drop, hide, program};

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
        days(report),
        users(report),
        groups(report),
        lines("accounts", "Accounts", &report.accounts),
        lines("partitions", "Partitions", &report.partitions),
        lines("qos", "Quality of service", &report.qos),
        clusters(report),
        nodes(report),
        gpu_types(report),
        efficiency(report),
        waste(report),
        wasters(report),
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
        let main = Cause::ALL.into_iter().max_by(|a, b| waste.of(*a).total_cmp(&waste.of(*b)));
        let main = main.map_or("", said);
        let share = percent(wasted / cpu.ended());
        lines.push(format!(
            "{} CPU-hours ({share} of what ended jobs held) were wasted, most of it by jobs that {main}.",
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

const CPU_CHART: Chart = Chart { title: "CPU-hours", key: "cpu_hours", tone: Tone::Plain };
const GPU_CHART: Chart = Chart { title: "GPU-hours", key: "gpu_hours", tone: Tone::Plain };
const CPU_GOOD: Chart =
    Chart { title: "CPU efficiency, %", key: "cpu_efficiency_percent", tone: Tone::Good };
const MEMORY_GOOD: Chart =
    Chart { title: "Memory efficiency, %", key: "memory_efficiency_percent", tone: Tone::Good };

fn days(report: &Report) -> Sheet {
    let fields: &[Field<DayLine>] = &[
        (always("day", "Date"), |day| Cell::text(&day.label)),
        (always("jobs", "Jobs"), |day| Cell::Count(day.jobs)),
        (drop(2, "users", "Users"), |day| Cell::Count(day.users)),
        (always("cpu_hours", "CPU hours"), |day| Cell::Number(day.cpu.reserved)),
        (hide(1, "gpu_hours", "GPU hours"), |day| Cell::Number(day.gpu.reserved)),
        (drop(1, "memory_gib_hours", "Mem GiB-hrs"), |day| Cell::Number(day.memory.reserved)),
        (drop(4, "jobs_started", "Started"), |day| Cell::Count(day.started)),
        (drop(3, "cpu_efficiency_percent", "CPU %"), |day| {
            Cell::share(day.cpu.efficiency_capped())
        }),
        (program("from_timestamp_seconds"), |day| Cell::Number(day.window.from().get() as f64)),
        (program("to_timestamp_seconds"), |day| Cell::Number(day.window.to().get() as f64)),
    ];
    let charts = [
        Chart { title: "CPU-hours by day", ..CPU_CHART },
        Chart { title: "GPU-hours by day", ..GPU_CHART },
    ];
    let mut sheet = Sheet::new("days", "Use by day", fields, &report.days).charts(&charts);
    (sheet.top, sheet.last) = (14, true);
    sheet
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

fn users(report: &Report) -> Sheet {
    let mut fields: Vec<Field<Line>> = vec![
        (always("user", "User"), |line| Cell::text(&line.name)),
        (always("jobs", "Jobs"), |line| Cell::Count(line.tally.jobs)),
        (always("cpu_hours", "CPU hours"), |line| Cell::Number(line.tally.cpu.reserved)),
        (hide(1, "gpu_hours", "GPU hours"), |line| Cell::Number(line.tally.gpu.reserved)),
        (drop(3, "memory_gib_hours", "Mem GiB-hrs"), |line| {
            Cell::Number(line.tally.memory.reserved)
        }),
        (drop(4, "wait_mean_hours", "Wait h"), |line| wait(line.tally.wait.mean())),
        (drop(5, "wait_median_hours", "Median h"), |line| wait(line.tally.wait.median())),
        (always("cpu_efficiency_percent", "CPU %"), |line| {
            Cell::share(line.tally.cpu.efficiency_capped())
        }),
        (drop(2, "memory_efficiency_percent", "Mem %"), |line| {
            Cell::share(line.tally.memory.efficiency_capped())
        }),
        (hide(2, "gpu_efficiency_percent", "GPU %"), |line| {
            Cell::share(line.tally.gpu.efficiency_capped())
        }),
    ];
    fields.extend(MORE);
    let mut sheet = Sheet::new("users", "Users by CPU-hours", &fields, &report.users).charts(&[
        Chart { title: "CPU-hours by user", ..CPU_CHART },
        Chart { title: "GPU-hours by user", ..GPU_CHART },
        Chart { title: "CPU efficiency by user", ..CPU_GOOD },
        Chart { title: "Memory efficiency by user", ..MEMORY_GOOD },
    ]);
    let memory = &report.total.tally.memory;
    if let Some(covered) = memory.coverage().filter(|covered| *covered < 0.995) {
        sheet.notes.push(format!(
            "Peak memory was measured for {} of the GiB-hours of ended jobs; Mem % is about these.",
            percent(covered)
        ));
    }
    sheet
}

fn lines(name: &'static str, title: &'static str, lines: &[Line]) -> Sheet {
    let mut fields: Vec<Field<Line>> = vec![
        (always("name", "Name"), |line| Cell::text(&line.name)),
        (drop(3, "users", "Users"), |line| Cell::Count(line.users)),
        (always("jobs", "Jobs"), |line| Cell::Count(line.tally.jobs)),
        (always("cpu_hours", "CPU hours"), |line| Cell::Number(line.tally.cpu.reserved)),
        (drop(4, "memory_gib_hours", "Mem GiB-hrs"), |line| {
            Cell::Number(line.tally.memory.reserved)
        }),
        (hide(1, "gpu_hours", "GPU hours"), |line| Cell::Number(line.tally.gpu.reserved)),
        (drop(2, "cpu_efficiency_percent", "CPU %"), |line| {
            Cell::share(line.tally.cpu.efficiency_capped())
        }),
        (drop(3, "memory_efficiency_percent", "Mem %"), |line| {
            Cell::share(line.tally.memory.efficiency_capped())
        }),
        (hide(3, "gpu_efficiency_percent", "GPU %"), |line| {
            Cell::share(line.tally.gpu.efficiency_capped())
        }),
        (drop(5, "wait_mean_hours", "Wait h"), |line| wait(line.tally.wait.mean())),
        (drop(6, "wait_median_hours", "Median h"), |line| wait(line.tally.wait.median())),
    ];
    fields.extend(MORE);
    Sheet::new(name, title, &fields, lines)
}

fn groups(report: &Report) -> Sheet {
    let mut sheet = lines("groups", "Groups", &report.groups).charts(&[
        Chart { title: "CPU-hours by group", ..CPU_CHART },
        Chart { title: "GPU-hours by group", ..GPU_CHART },
    ]);
    if report.groups_overlap {
        sheet.notes.push(
            "Some users are in several groups and count in each: the groups add up to more than \
             the total."
                .to_owned(),
        );
    }
    sheet
}

/// For people only where there are several; programs get it always.
fn clusters(report: &Report) -> Sheet {
    let mut sheet = lines("clusters", "Clusters", &report.clusters);
    sheet.people = report.clusters.len() > 1;
    sheet
}

fn nodes(report: &Report) -> Sheet {
    let fields: &[Field<NodeLine>] = &[
        (always("node", "Node"), |node| Cell::text(&node.node)),
        (drop(4, "cluster", "Cluster"), |node| Cell::text(&node.cluster)),
        (always("jobs", "Jobs"), |node| Cell::Count(node.jobs)),
        (always("cpu_hours", "CPU hours"), |node| Cell::Number(node.cpu_hours)),
        (hide(2, "gpu_hours", "GPU hours"), |node| Cell::Number(node.gpu_hours)),
        (hide(1, "cpu_utilisation_percent", "CPU util %"), |node| {
            Cell::share(node.cpu_utilisation)
        }),
        (hide(3, "gpu_utilisation_percent", "GPU util %"), |node| {
            Cell::share(node.gpu_utilisation)
        }),
        (program("cpus"), |node| {
            node.size.cpus.map_or(Cell::Missing, |cpus| Cell::Count(cpus.into()))
        }),
        (program("gpus"), |node| {
            node.size.gpus.map_or(Cell::Missing, |gpus| Cell::Count(gpus.into()))
        }),
    ];
    let mut sheet = Sheet::new("nodes", "Nodes", fields, &report.nodes).charts(&[
        Chart {
            title: "CPUs held, % of the time",
            key: "cpu_utilisation_percent",
            tone: Tone::Good,
        },
        Chart {
            title: "GPUs held, % of the time",
            key: "gpu_utilisation_percent",
            tone: Tone::Good,
        },
    ]);
    sheet.top = 20;
    let unknown = report.nodes.iter().filter(|node| node.size.cpus.is_none()).count() as u64;
    if unknown > 0 {
        sheet.notes.push(format!("Size not known: {}.", counted(unknown, "node")));
    }
    sheet
}

fn gpu_types(report: &Report) -> Sheet {
    let fields: &[Field<GpuLine>] = &[
        (always("gpu_type", "GPU"), |line| {
            Cell::text(if line.model.is_empty() { "type not known" } else { &line.model })
        }),
        (always("jobs", "Jobs"), |line| Cell::Count(line.jobs)),
        (always("gpu_hours", "GPU hours"), |line| Cell::Number(line.gpu.reserved)),
        (hide(1, "gpu_hours_used", "Used"), |line| Cell::number(line.gpu.known_use())),
        (hide(1, "gpu_efficiency_percent", "GPU %"), |line| {
            Cell::share(line.gpu.efficiency_capped())
        }),
        (program("gpu_hours_unmeasured"), |line| Cell::Number(line.gpu.unmeasured())),
    ];
    Sheet::new("gpu_types", "GPUs by type", fields, &report.gpu_types)
}

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
        (hide(4, "jobs_above_100_percent", "Above 100"), |one| Cell::Count(one.spread.above_one())),
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

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::NotUsed => "Asked for, not used",
        Cause::Failed => "Failed",
        Cause::Timeout => "Time limit",
        Cause::Cancelled => "Cancelled",
        Cause::OutOfMemory => "Out of memory",
        Cause::System => "System",
    }
}

fn waste(report: &Report) -> Sheet {
    type Row<'a> = (Cause, &'a Line);
    fn share(waste: &Waste, hours: &Hours, cause: Cause) -> Cell {
        let ended = hours.ended();
        Cell::share((ended > 0.0).then(|| waste.of(cause) / ended))
    }
    /// `None` if only the hours of completed jobs could be in it, and nobody measured those.
    fn of(waste: &Waste, cause: Cause) -> Cell {
        Cell::number((cause != Cause::NotUsed || waste.total().is_some()).then(|| waste.of(cause)))
    }
    let fields: &[Field<Row>] = &[
        (always("cause", "Cause"), |(cause, _)| Cell::text(cause_name(*cause))),
        (always("cpu_hours_wasted", "CPU hours"), |(cause, all)| of(&all.waste.cpu, *cause)),
        (always("cpu_hours_wasted_percent", "% of held"), |(cause, all)| {
            share(&all.waste.cpu, &all.tally.cpu, *cause)
        }),
        (drop(1, "memory_gib_hours_wasted", "Mem GiB-hrs"), |(cause, all)| {
            of(&all.waste.memory, *cause)
        }),
        (hide(1, "gpu_hours_wasted", "GPU hours"), |(cause, all)| of(&all.waste.gpu, *cause)),
        (program("key"), |(cause, _)| Cell::text(cause.key())),
    ];
    let rows: Vec<Row> = Cause::ALL.into_iter().map(|cause| (cause, &report.total)).collect();
    let mut sheet = Sheet::new("waste", "Waste by cause", fields, &rows).charts(&[Chart {
        title: "CPU-hours wasted, by cause",
        key: "cpu_hours_wasted",
        tone: Tone::Waste,
    }]);
    let waste = &report.total.waste;
    let unknown: Vec<String> = [
        (waste.cpu.unknown, "CPU-hours"),
        (waste.memory.unknown, "GiB-hours of memory"),
        (waste.gpu.unknown, "GPU-hours"),
    ]
    .into_iter()
    .filter(|(unknown, _)| *unknown > 0.0)
    .map(|(unknown, unit)| format!("{} {unit}", hours(unknown)))
    .collect();
    if !unknown.is_empty() {
        sheet.notes.push(format!(
            "Not known, because nobody measured what completed jobs used: {}.",
            unknown.join(", ")
        ));
    }
    sheet.notes.push(
        "A completed job wastes what it held and did not use; one that ended otherwise loses all \
         that it held."
            .to_owned(),
    );
    sheet
}

fn wasters(report: &Report) -> Sheet {
    let fields: &[Field<Line>] = &[
        (always("user", "User"), |line| Cell::text(&line.name)),
        (always("cpu_hours_wasted", "CPU hours"), |line| Cell::number(line.waste.cpu.total())),
        (drop(2, "memory_gib_hours_wasted", "Mem GiB-hrs"), |line| {
            Cell::number(line.waste.memory.total())
        }),
        (hide(3, "gpu_hours_wasted", "GPU hours"), |line| Cell::number(line.waste.gpu.total())),
        (drop(1, "cpu_hours_wasted_percent", "% of held"), |line| {
            let ended = line.tally.cpu.ended();
            Cell::share(line.waste.cpu.total().filter(|_| ended > 0.0).map(|wasted| wasted / ended))
        }),
        (drop(4, "cpu_hours_not_used", "Not used"), |line| Cell::Number(line.waste.cpu.not_used)),
        (drop(5, "cpu_hours_failed", "Failed"), |line| Cell::Number(line.waste.cpu.failed)),
        (hide(6, "cpu_hours_timeout", "Time limit"), |line| Cell::Number(line.waste.cpu.timeout)),
        (hide(7, "cpu_hours_cancelled", "Cancelled"), |line| {
            Cell::Number(line.waste.cpu.cancelled)
        }),
        (hide(8, "cpu_hours_out_of_memory", "Memory"), |line| {
            Cell::Number(line.waste.cpu.out_of_memory)
        }),
        (hide(9, "cpu_hours_system", "System"), |line| Cell::Number(line.waste.cpu.system)),
        (hide(10, "cpu_hours_waste_unknown", "Unknown"), |line| {
            Cell::Number(line.waste.cpu.unknown)
        }),
        (program("memory_gib_hours_waste_unknown"), |line| Cell::Number(line.waste.memory.unknown)),
        (program("gpu_hours_waste_unknown"), |line| Cell::Number(line.waste.gpu.unknown)),
        (program("cpu_hours_idle"), |line| Cell::number(line.tally.cpu.idle())),
        (program("memory_gib_hours_idle"), |line| Cell::number(line.tally.memory.idle())),
    ];
    let mut sheet = Sheet::new("wasters", "Most CPU-hours wasted", fields, report.wasters())
        .charts(&[Chart {
            title: "CPU-hours wasted by user",
            key: "cpu_hours_wasted",
            tone: Tone::Waste,
        }]);
    sheet.top = 10;
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
        (always("jobs_percent", "%"), |line| Cell::Share(line.share)),
        (drop(1, "cpu_hours", "CPU hours"), |line| Cell::Number(line.cpu_hours)),
        (hide(2, "gpu_hours", "GPU hours"), |line| Cell::Number(line.gpu_hours)),
    ];
    let mut sheet = Sheet::new("states", "States", fields, &report.states);
    sheet.top = 0;
    sheet
}
