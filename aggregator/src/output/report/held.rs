//! Who used what: by day, user, group, account, partition, node and GPU.

use steward_common::summary::report::{DayLine, GpuLine, Line, NodeLine, Report};

use super::{MORE, wait};
use crate::output::number::{counted, percent};
use crate::output::sheet::{Cell, Chart, Field, Sheet, Tone, always, drop, hide, program};

const CPU_CHART: Chart = Chart { title: "CPU-hours", key: "cpu_hours", tone: Tone::Plain };
const GPU_CHART: Chart = Chart { title: "GPU-hours", key: "gpu_hours", tone: Tone::Plain };
const CPU_GOOD: Chart =
    Chart { title: "CPU efficiency, %", key: "cpu_efficiency_percent", tone: Tone::Good };
const MEMORY_GOOD: Chart =
    Chart { title: "Memory efficiency, %", key: "memory_efficiency_percent", tone: Tone::Good };

pub(super) fn days(report: &Report) -> Sheet {
    let fields: &[Field<DayLine>] = &[
        (always("day", "Date"), |day| Cell::text(&day.label)),
        (always("jobs", "Jobs"), |day| Cell::Count(day.jobs)),
        (drop(2, "users", "Users"), |day| Cell::Count(day.users)),
        (always("cpu_hours", "CPU hours"), |day| Cell::Number(day.cpu.reserved)),
        (hide(1, "gpu_hours", "GPU hours"), |day| Cell::Number(day.gpu.reserved)),
        (drop(1, "memory_gib_hours", "Mem GiB-hrs"), |day| Cell::Number(day.memory.reserved)),
        (drop(4, "started", "Started"), |day| Cell::Count(day.started)),
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

pub(super) fn users(report: &Report) -> Sheet {
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

pub(super) fn lines(name: &'static str, title: &'static str, lines: &[Line]) -> Sheet {
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

pub(super) fn groups(report: &Report) -> Sheet {
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
pub(super) fn clusters(report: &Report) -> Sheet {
    let mut sheet = lines("clusters", "Clusters", &report.clusters);
    sheet.people = report.clusters.len() > 1;
    sheet
}

pub(super) fn nodes(report: &Report) -> Sheet {
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

pub(super) fn gpu_types(report: &Report) -> Sheet {
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
