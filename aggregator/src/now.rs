//! `steward now`: what every job uses of what it holds, at this moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use steward_common::id::ClusterName;
use steward_common::metric::{self, MetricDef};

use crate::source::prometheus::{JobKey, Prometheus, PrometheusError};
use crate::source::promql::{self, Figure};

/// One job. A figure that nobody measured is absent, not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its cluster.
    pub cluster: String,
    /// Slurm's raw job id.
    pub job: u32,
    /// Its owner.
    pub user: Option<String>,
    /// The account it is charged to.
    pub account: Option<String>,
    /// Its partition.
    pub partition: Option<String>,
    /// The nodes it was seen on.
    pub nodes: Vec<String>,
    /// Cores kept busy between the agents' last two scans.
    pub cores_busy: Option<f64>,
    /// CPUs it holds.
    pub cpus: Option<f64>,
    /// Memory charged to it, in bytes.
    pub memory_bytes: Option<f64>,
    /// Its memory limit, in bytes.
    pub memory_limit_bytes: Option<f64>,
    /// Its processes.
    pub processes: Option<f64>,
    /// Distinct files it has open.
    pub open_files: Option<f64>,
    /// GPUs it holds.
    pub gpus: Option<f64>,
}

/// Where a figure comes from and where it goes.
type Column = (&'static MetricDef, Figure, fn(&mut Row) -> &mut Option<f64>);

/// Every figure of a row.
const COLUMNS: &[Column] = &[
    (&metric::JOBS_CPU_CORES_BUSY, Figure::Sum, |row| &mut row.cores_busy),
    (&metric::JOBS_CPUS, Figure::Sum, |row| &mut row.cpus),
    (&metric::JOBS_MEMORY_USAGE, Figure::Sum, |row| &mut row.memory_bytes),
    (&metric::JOBS_MEMORY_LIMIT, Figure::Sum, |row| &mut row.memory_limit_bytes),
    (&metric::JOBS_PROCESSES, Figure::Sum, |row| &mut row.processes),
    (&metric::JOBS_OPEN_FILES, Figure::Sum, |row| &mut row.open_files),
    (&metric::JOBS_GPU_ASSIGNED, Figure::Count, |row| &mut row.gpus),
];

/// Asks `prometheus` about every job that an agent has seen within `fresh`.
///
/// # Errors
/// If a question has no answer.
pub async fn rows(
    prometheus: &Prometheus,
    cluster: Option<&ClusterName>,
    fresh: Duration,
) -> Result<Vec<Row>, PrometheusError> {
    let mut rows: BTreeMap<JobKey, Row> = BTreeMap::new();
    let mut nodes: BTreeMap<JobKey, BTreeSet<String>> = BTreeMap::new();
    let described = prometheus.jobs(&promql::series(&metric::JOBS_INFO, cluster, fresh)).await?;
    for series in described {
        let label = |name: &str| series.labels.get(name).filter(|text| !text.is_empty()).cloned();
        nodes.entry(series.job.clone()).or_default().extend(label("instance"));
        let row = rows.entry(series.job.clone()).or_default();
        row.cluster = series.job.0.to_string();
        row.job = series.job.1.get();
        // A node that has not yet learnt a label does not hide what another knows.
        row.user = row.user.take().or_else(|| label("user"));
        row.account = row.account.take().or_else(|| label("account"));
        row.partition = row.partition.take().or_else(|| label("partition"));
    }
    for (def, figure, field) in COLUMNS {
        let query = promql::by_job(def, *figure, cluster, fresh);
        for series in prometheus.jobs(&query).await? {
            if let Some(row) = rows.get_mut(&series.job) {
                *field(row) = Some(series.value);
            }
        }
    }
    for (key, names) in nodes {
        if let Some(row) = rows.get_mut(&key) {
            row.nodes = names.into_iter().collect();
        }
    }
    Ok(rows.into_values().collect())
}
