//! Report `usage-overview`: what each cluster and each partition was used for.

use super::table::{Field, column};
use super::usage::{Level, Row, rows};
use super::{Ask, Bars, Needs, Report, Table, Value, View, Weight};

/// The report.
pub const REPORT: Report = Report {
    about: "CPU- and GPU-hours held and their users, by cluster and by partition",
    needs: Needs::Accounting,
    make,
};

const CLUSTER: Field<Row> =
    (column("cluster", "Cluster", Weight::Always), |row| Value::text(&row.cluster));

/// What every table of use says of a row.
pub(super) const FIGURES: [Field<Row>; 6] = [
    (column("users", "Users", Weight::Always), |row| Value::Count(row.users)),
    (column("jobs", "Jobs", Weight::Drop(1)), |row| Value::Count(row.jobs)),
    (column("cpu_hours", "CPU hours", Weight::Always), |row| Value::Number(row.cpu_hours)),
    (column("cpu_hours_percent", "CPU %", Weight::Always), |row| Value::share(row.cpu_share)),
    (column("gpu_hours", "GPU hours", Weight::Always), |row| Value::Number(row.gpu_hours)),
    (column("gpu_hours_percent", "GPU %", Weight::Always), |row| Value::share(row.gpu_share)),
];

pub(super) fn within(row: &Row, level: usize) -> Value {
    row.within.get(level).map_or(Value::Missing, Value::text)
}

fn make(views: &[View<'_>], ask: &Ask) -> Vec<Table> {
    let by_cluster = rows(views, ask, Level::Cluster);
    let by_partition = rows(views, ask, Level::Partition);
    let fields: Vec<_> = std::iter::once(CLUSTER).chain(FIGURES).collect();
    let mut clusters = Table::new("clusters", "Use by cluster", &fields, &by_cluster);
    clusters.notes.push("% is of all clusters.".to_owned());
    let partition: Field<Row> =
        (column("partition", "Partition", Weight::Always), |row| within(row, 0));
    let fields: Vec<_> = [partition, CLUSTER].into_iter().chain(FIGURES).collect();
    let mut partitions = Table::new("partitions", "Use by partition", &fields, &by_partition);
    partitions.notes.push(
        "% is of the partition's cluster. Hours are those held in the window: a job over its \
         border is divided."
            .to_owned(),
    );
    // Bars have the name of a partition alone, which says nothing with several clusters.
    if by_cluster.len() < 2 {
        partitions.bars = vec![
            Bars { title: "CPU-hours by partition", key: "cpu_hours", waste: false },
            Bars { title: "GPU-hours by partition", key: "gpu_hours", waste: false },
        ];
    }
    vec![clusters, partitions]
}
