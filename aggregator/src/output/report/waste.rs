//! What was wasted, why, and by whom.

use steward_common::summary::cause::Cause;
use steward_common::summary::hours::{Hours, Waste};
use steward_common::summary::report::{Line, Report, Waster};

use crate::output::number::hours;
use crate::output::sheet::{Cell, Chart, Field, Sheet, Tone, always, drop, hide, program};

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

pub(super) fn waste(report: &Report) -> Sheet {
    type Row<'a> = (Cause, &'a Line);
    fn share(waste: &Waste, hours: &Hours, cause: Cause) -> Cell {
        let ended = hours.ended();
        Cell::share(waste.of(cause).filter(|_| ended > 0.0).map(|wasted| wasted / ended))
    }
    fn of(waste: &Waste, cause: Cause) -> Cell {
        Cell::number(waste.of(cause))
    }
    let fields: &[Field<Row>] = &[
        (always("cause", "Cause"), |(cause, _)| Cell::text(cause_name(*cause))),
        (always("cpu_hours_wasted", "CPU hours"), |(cause, all)| of(&all.waste.cpu, *cause)),
        (always("cpu_hours_wasted_percent", "% held"), |(cause, all)| {
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

pub(super) fn wasters(report: &Report) -> Sheet {
    let fields: &[Field<Waster<'_>>] = &[
        (always("user", "User"), |Waster { line, .. }| Cell::text(&line.name)),
        (drop(3, "wasted_percent", "% of all"), |one| Cell::share(Some(one.share))),
        (always("cpu_hours_wasted", "CPU hours"), |Waster { line, .. }| {
            Cell::number(line.waste.cpu.total())
        }),
        (drop(2, "memory_gib_hours_wasted", "GiB-hours"), |Waster { line, .. }| {
            Cell::number(line.waste.memory.total())
        }),
        (hide(3, "gpu_hours_wasted", "GPU hours"), |Waster { line, .. }| {
            Cell::number(line.waste.gpu.total())
        }),
        (drop(1, "cpu_hours_wasted_percent", "% held"), |Waster { line, .. }| {
            let ended = line.tally.cpu.ended();
            Cell::share(line.waste.cpu.total().filter(|_| ended > 0.0).map(|wasted| wasted / ended))
        }),
        (drop(4, "cpu_hours_not_used", "Not used"), |Waster { line, .. }| {
            Cell::number(line.waste.cpu.of(Cause::NotUsed))
        }),
        (drop(5, "cpu_hours_failed", "Failed"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.failed)
        }),
        (hide(6, "cpu_hours_timeout", "Timeout"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.timeout)
        }),
        (hide(7, "cpu_hours_cancelled", "Cancel"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.cancelled)
        }),
        (hide(8, "cpu_hours_out_of_memory", "Memory"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.out_of_memory)
        }),
        (hide(9, "cpu_hours_system", "System"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.system)
        }),
        (hide(10, "cpu_hours_waste_unknown", "Unknown"), |Waster { line, .. }| {
            Cell::Number(line.waste.cpu.unknown)
        }),
        (program("memory_gib_hours_waste_unknown"), |Waster { line, .. }| {
            Cell::Number(line.waste.memory.unknown)
        }),
        (program("gpu_hours_waste_unknown"), |Waster { line, .. }| {
            Cell::Number(line.waste.gpu.unknown)
        }),
        (program("cpu_hours_idle"), |Waster { line, .. }| Cell::number(line.tally.cpu.idle())),
        (program("memory_gib_hours_idle"), |Waster { line, .. }| {
            Cell::number(line.tally.memory.idle())
        }),
    ];
    let mut sheet =
        Sheet::new("wasters", "Who wasted most", fields, &report.wasters()).charts(&[Chart {
            title: "Wasted of all CPU, memory or GPU hours, by user",
            key: "wasted_percent",
            tone: Tone::Lost,
        }]);
    sheet.top = 10;
    sheet.notes.push(
        "% of all: the largest share that the user wasted of what all held of CPU, memory or GPU hours."
            .to_owned(),
    );
    sheet
}
