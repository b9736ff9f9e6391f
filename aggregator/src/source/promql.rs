//! PromQL, made from the catalogue: a name that is not in it cannot be asked for.

use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::metric::{AGENT_LAST_SCAN_TIMESTAMP, JOB_LABEL, MetricDef, NODE_LABELS};
use steward_common::window::Window;

/// How a metric's points over the nodes of a job become one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The sum of the values now.
    Sum,
    /// The number of series.
    Count,
}

/// One figure for each job.
#[must_use]
pub fn by_job(
    def: &MetricDef,
    figure: Figure,
    cluster: Option<&ClusterName>,
    fresh: Duration,
) -> String {
    let [cluster_label, _] = NODE_LABELS;
    let aggregate = match figure {
        Figure::Sum => "sum",
        Figure::Count => "count",
    };
    format!("{aggregate} by ({cluster_label}, {JOB_LABEL}) ({})", series(def, cluster, fresh))
}

/// The series of nodes whose agent has scanned within `fresh`: what an agent said before it fell
/// silent is not what the job does now. A node that is scraped and pushes too counts once.
#[must_use]
pub fn series(def: &MetricDef, cluster: Option<&ClusterName>, fresh: Duration) -> String {
    let [cluster_label, instance] = NODE_LABELS;
    let matcher = selector(cluster);
    let labels: Vec<&str> = def.all_labels().collect();
    let labels = labels.join(", ");
    format!(
        "max by ({labels}) ({}{matcher}) and on ({cluster_label}, {instance}) (time() - {}{matcher} < {})",
        def.name,
        AGENT_LAST_SCAN_TIMESTAMP.name,
        fresh.as_secs().max(1)
    )
}

/// What is taken of a metric's points over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The least.
    Least,
    /// The most; of a counter, its last value.
    Most,
    /// The most of each series, and then how many series there are of a job on a node.
    Number,
}

/// One value for each job, node and further label, over all points of the window: of all jobs, or
/// of these. A node that is scraped and pushes too counts once.
#[must_use]
pub fn over(
    def: &MetricDef,
    extreme: Extreme,
    cluster: &ClusterName,
    jobs: &[u32],
    window: Window,
) -> String {
    let [cluster_label, instance] = NODE_LABELS;
    let mut matchers = format!("{cluster_label}=\"{cluster}\"");
    if !jobs.is_empty() {
        let jobs: Vec<String> = jobs.iter().map(u32::to_string).collect();
        matchers += &format!(",{JOB_LABEL}=~\"{}\"", jobs.join("|"));
    }
    let word = if extreme == Extreme::Least { "min" } else { "max" };
    let labels: Vec<&str> = def.all_labels().collect();
    let (name, labels) = (def.name, labels.join(", "));
    let (seconds, end) = (window.seconds(), window.to().get());
    let each = format!(
        "{word} by ({labels}) ({word}_over_time({name}{{{matchers}}}[{seconds}s] @ {end}))"
    );
    if extreme == Extreme::Number {
        format!("count by ({cluster_label}, {instance}, {JOB_LABEL}) ({each})")
    } else {
        each
    }
}

/// When the agent of each node last scanned.
#[must_use]
pub fn heartbeats() -> String {
    format!("max by ({}) ({})", NODE_LABELS.join(", "), AGENT_LAST_SCAN_TIMESTAMP.name)
}

/// How many series of a metric there are; no answer if there are none.
#[must_use]
pub fn count(def: &MetricDef) -> String {
    format!("count ({})", def.name)
}

fn selector(cluster: Option<&ClusterName>) -> String {
    // A cluster's name holds no quote, backslash or newline: its type sees to that.
    let [label, _] = NODE_LABELS;
    cluster.map_or_else(String::new, |cluster| format!("{{{label}=\"{cluster}\"}}"))
}

#[cfg(test)]
mod tests {
    use steward_common::metric;
    use steward_common::time::Timestamp;

    use super::*;

    fn window() -> Window {
        Window::new(Timestamp::new(1_000_000), Timestamp::new(1_003_600)).unwrap()
    }

    #[test]
    fn every_query_is_promql() {
        let cluster = "c1".parse().unwrap();
        for def in metric::CATALOGUE {
            for figure in [Figure::Sum, Figure::Count] {
                for cluster in [None, Some(&cluster)] {
                    let query = by_job(def, figure, cluster, Duration::from_secs(60));
                    promql_parser::parser::parse(&query).unwrap_or_else(|e| panic!("{query}: {e}"));
                }
            }
            for extreme in [Extreme::Least, Extreme::Most, Extreme::Number] {
                let query = over(def, extreme, &cluster, &[7, 8], window());
                promql_parser::parser::parse(&query).unwrap_or_else(|e| panic!("{query}: {e}"));
            }
            for query in [series(def, None, Duration::ZERO), count(def), heartbeats()] {
                promql_parser::parser::parse(&query).unwrap_or_else(|e| panic!("{query}: {e}"));
            }
        }
    }

    #[test]
    fn a_figure_is_summed_over_the_nodes_of_a_job_and_gated_by_the_heartbeat() {
        let cluster = "c1".parse().unwrap();
        let query =
            by_job(&metric::JOBS_CPUS, Figure::Sum, Some(&cluster), Duration::from_secs(60));
        assert_eq!(
            query,
            "sum by (cluster, slurm_job) (max by (cluster, instance, slurm_job) \
             (jobs_cpus{cluster=\"c1\"}) and on (cluster, instance) \
             (time() - steward_agent_last_scan_timestamp_seconds{cluster=\"c1\"} < 60))"
        );
    }

    #[test]
    fn a_time_in_the_past_is_asked_for_as_a_whole() {
        let cluster = "c1".parse().unwrap();
        assert_eq!(
            over(&metric::JOBS_IO_BYTES, Extreme::Most, &cluster, &[], window()),
            "max by (cluster, instance, slurm_job, direction) \
             (max_over_time(jobs_io_bytes_total{cluster=\"c1\"}[3600s] @ 1003600))"
        );
        assert_eq!(
            over(&metric::JOBS_GPU_ASSIGNED, Extreme::Number, &cluster, &[7, 8], window()),
            "count by (cluster, instance, slurm_job) (max by (cluster, instance, slurm_job, gpu) \
             (max_over_time(jobs_gpu_assigned{cluster=\"c1\",slurm_job=~\"7|8\"}[3600s] @ 1003600)))"
        );
    }
}
