//! Tables of reports as sheets, for all formats.

use steward_common::report::{Bars, Column as Head, Table, Value, Weight};

use super::sheet::{Cell, Chart, Column, Place, Sheet, Tone};

/// The sheet of a table.
#[must_use]
pub fn sheet(table: Table) -> Sheet {
    let none: [&(); 0] = [];
    let mut sheet = Sheet::new(table.name, table.title, &[], none);
    sheet.columns = table.columns.into_iter().map(column).collect();
    sheet.rows = table.rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
    sheet.top = table.top;
    sheet.charts = table.bars.into_iter().map(chart).collect();
    sheet.notes = table.notes;
    sheet
}

fn column(head: Head) -> Column {
    let (place, may_hide) = match head.weight {
        Weight::Always => (Place::Always, false),
        Weight::Drop(rank) => (Place::Drop(rank), false),
        Weight::Hide(rank) => (Place::Drop(rank), true),
        Weight::Program => (Place::Program, true),
    };
    Column { key: head.key.into(), head: head.head, place, may_hide }
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Text(text) => Cell::Text(text),
        Value::Count(count) => Cell::Count(count),
        Value::Number(number) => Cell::number(Some(number)),
        Value::Share(share) => Cell::share(Some(share)),
        Value::Missing => Cell::Missing,
    }
}

fn chart(bars: Bars) -> Chart {
    let tone = if bars.waste { Tone::Waste } else { Tone::Plain };
    Chart { title: bars.title, key: bars.key, tone }
}
