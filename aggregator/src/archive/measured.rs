//! What agents measured of runs, read again from `processed`.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch, StructArray};
use steward_common::job::{AgentUse, NodeUse};

use super::ArchiveError;
use super::cells::{real, times, whole};
use super::processed::NODE_USAGE;
use super::read::{RunKey, Table};

/// Of each run that agents saw: what they measured.
///
/// # Errors
/// If the file cannot be read.
pub fn measured(table: &Table) -> Result<HashMap<RunKey, AgentUse>, ArchiveError> {
    let mut found = HashMap::new();
    for batch in table.batches(None, false)? {
        let batch = batch?;
        let keys = whole(&batch, "job_id_raw").zip(times(&batch, "submit_time"));
        let io = whole(&batch, "io_read_bytes").zip(whole(&batch, "io_written_bytes"));
        let shares = real(&batch, "gpu_used_seconds").zip(real(&batch, "agent_coverage"));
        for (row, ((key, io), (gpu_seconds, coverage))) in keys.zip(io).zip(shares).enumerate() {
            let (Some(job), Some(submit), Some(_)) = (key.0, key.1, coverage) else { continue };
            let Ok(job) = u32::try_from(job) else { continue };
            let agent = AgentUse {
                nodes: nodes(&batch, row),
                gpu_seconds,
                read_bytes: count(io.0),
                written_bytes: count(io.1),
                coverage,
            };
            found.insert((job, submit), agent);
        }
    }
    Ok(found)
}

fn count(value: Option<i64>) -> Option<u64> {
    u64::try_from(value?).ok()
}

/// What stands in the nested column of a row.
pub(super) fn nodes(batch: &RecordBatch, row: usize) -> Vec<NodeUse> {
    let list = batch.column_by_name(NODE_USAGE).and_then(|column| column.as_list_opt::<i32>());
    let Some(list) = list.filter(|list| list.is_valid(row)) else { return Vec::new() };
    let values = list.value(row);
    let Some(nodes) = values.as_struct_opt() else { return Vec::new() };
    (0..nodes.len()).filter_map(|place| node(nodes, place)).collect()
}

fn node(nodes: &StructArray, place: usize) -> Option<NodeUse> {
    let number = |name: &str| {
        let column = nodes.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        column.is_valid(place).then(|| column.value(place))
    };
    let names = nodes.column_by_name("node")?.as_string_opt::<i32>()?;
    let cpu = nodes.column_by_name("cpu_seconds")?.as_primitive_opt::<Float64Type>()?;
    Some(NodeUse {
        node: names.value(place).to_owned(),
        cpu_seconds: cpu.is_valid(place).then(|| cpu.value(place)),
        peak_memory_bytes: count(number("peak_memory_bytes")),
        gpus: number("gpus").and_then(|gpus| u32::try_from(gpus).ok()),
    })
}
