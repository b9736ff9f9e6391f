//! The archive's runs as the narrow rows that summaries are made of.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, BooleanArray, RecordBatch};
use steward_common::intern::{Name, Names};
use steward_common::summary::row::Row;
use steward_common::summary::scope::Detail;
use steward_common::time::Timestamp;
use steward_common::window::Window;

use super::cells::Cells;
use super::manifest::Manifest;
use super::{Archive, ArchiveError, Day, Part};

/// What a summary looks at, and nothing else.
const COLUMNS: &[&str] = &[
    "account",
    "alloc_cpus",
    "alloc_gpus",
    "alloc_mem_mb",
    "collected_at",
    "elapsed_seconds",
    "end_time",
    "gpu_types",
    "gpu_used_seconds",
    "is_complete",
    "max_rss_mb",
    "node_list",
    "partition",
    "qos",
    "start_time",
    "state",
    "submit_time",
    "time_limit_seconds",
    "total_cpu_seconds",
    "user",
];

/// Rows that are shown together: so many stay in the cache until they are counted.
const AT_ONCE: usize = 1024;

/// What the sums of users do not look at.
const NOT_OF_USERS: &[&str] =
    &["account", "gpu_types", "node_list", "partition", "qos", "time_limit_seconds"];

/// What is the same for all runs that have ended: that they have, and that when they were collected
/// says nothing.
const OF_OPEN: &[&str] = &["collected_at", "is_complete"];

fn columns(detail: Detail, part: Part) -> Vec<&'static str> {
    let is_left_out = |column: &&str| {
        (detail == Detail::Users && NOT_OF_USERS.contains(column))
            || (part != Part::Open && OF_OPEN.contains(column))
    };
    COLUMNS.iter().copied().filter(|column| !is_left_out(column)).collect()
}

impl Archive {
    /// Shows `visit` the runs that may have to do with the window, of one cluster or of all, one file
    /// after the other. Whether all of them were shown: if not, a writer was quicker, and what was
    /// shown does not count.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn rows(
        &self,
        manifest: &Manifest,
        window: Window,
        cluster: Option<&str>,
        detail: Detail,
        names: &mut Names,
        visit: &mut dyn FnMut(&[Row], &Names),
    ) -> Result<bool, ArchiveError> {
        let mut rows = Vec::new();
        for (name, entry) in &manifest.clusters {
            if cluster.is_some_and(|cluster| cluster != name) {
                continue;
            }
            // A run that ended before the window is of no interest; one that ended after it is, if
            // it began before its end.
            let days = entry.days.range(Day::of(window.from())..);
            let days = days.map(|(day, entry)| (Part::Day(*day), *entry));
            for (part, file) in days.chain(entry.open.map(|entry| (Part::Open, entry))) {
                let Some(table) = self.open(name, part, file)? else { return Ok(false) };
                let later = match part {
                    Part::Day(day) => day.start() >= window.to(),
                    Part::Open => false,
                };
                let began = || table.least_time("start_time");
                if later && began().is_some_and(|least| least >= window.to()) {
                    continue;
                }
                let cluster = names.intern(name);
                for batch in table.batches(Some(&columns(detail, part)), true)? {
                    show(&batch?, cluster, part, names, &mut rows, visit);
                }
            }
        }
        Ok(true)
    }
}

/// Shows `visit` the rows of a batch of a part of this cluster, through `rows`.
fn show(
    batch: &RecordBatch,
    cluster: Name,
    part: Part,
    names: &mut Names,
    rows: &mut Vec<Row>,
    visit: &mut dyn FnMut(&[Row], &Names),
) {
    let nothing = names.intern("");
    let mut text = |column: &str| interned(batch, column, names, nothing);
    let (user, account) = (text("user"), text("account"));
    let (partition, qos, state) = (text("partition"), text("qos"), text("state"));
    let (nodes, gpu_types) = (text("node_list"), text("gpu_types"));
    let time = |column: &str| Cells::<TimestampMillisecondType>::of(batch, column);
    let (submit, start) = (time("submit_time"), time("start_time"));
    let (end, collected) = (time("end_time"), time("collected_at"));
    let whole = |column: &str| Cells::<Int64Type>::of(batch, column);
    let (elapsed, limit) = (whole("elapsed_seconds"), whole("time_limit_seconds"));
    let (cpus, gpus) = (whole("alloc_cpus"), whole("alloc_gpus"));
    let real = |column: &str| Cells::<Float64Type>::of(batch, column);
    let (memory, peak) = (real("alloc_mem_mb"), real("max_rss_mb"));
    let (cpu, gpu) = (real("total_cpu_seconds"), real("gpu_used_seconds"));
    let complete = batch.column_by_name("is_complete").and_then(|column| column.as_boolean_opt());
    let small = |value: Option<i64>| u32::try_from(value?).ok();
    for first in (0..batch.num_rows()).step_by(AT_ONCE) {
        rows.clear();
        rows.extend((first..batch.num_rows()).take(AT_ONCE).map(|place| {
            let name = |list: &[Name]| list.get(place).copied().unwrap_or(nothing);
            let is_complete =
                |complete: &BooleanArray| complete.is_valid(place) && complete.value(place);
            let ended = part != Part::Open || complete.is_some_and(is_complete);
            Row {
                cluster,
                user: name(&user),
                account: name(&account),
                partition: name(&partition),
                qos: name(&qos),
                state: name(&state),
                nodes: name(&nodes),
                gpu_types: name(&gpu_types),
                submit: submit.time(place).unwrap_or(Timestamp::new(0)),
                start: start.time(place),
                end: end.time(place).filter(|_| ended),
                collected: collected.time(place).unwrap_or(Timestamp::new(0)),
                elapsed: small(elapsed.get(place)),
                cpus: small(cpus.get(place)),
                gpus: small(gpus.get(place)),
                alloc_mem_mb: memory.get(place),
                max_rss_mb: peak.get(place),
                cpu_seconds: cpu.get(place),
                gpu_seconds: gpu.get(place),
                time_limit: small(limit.get(place)),
            }
        }));
        visit(rows, names);
    }
}

/// The names of a text column, one for each row; absent texts are empty ones.
pub(super) fn interned(
    batch: &RecordBatch,
    column: &str,
    names: &mut Names,
    nothing: Name,
) -> Vec<Name> {
    let Some(texts) =
        batch.column_by_name(column).and_then(|column| column.as_dictionary_opt::<Int32Type>())
    else {
        return Vec::new();
    };
    let Some(values) = texts.values().as_string_opt::<i32>() else { return Vec::new() };
    let table: Vec<Name> =
        values.iter().map(|text| text.map_or(nothing, |text| names.intern(text))).collect();
    let name = |key: Option<usize>| key.and_then(|key| table.get(key).copied()).unwrap_or(nothing);
    texts.keys_iter().map(name).collect()
}
