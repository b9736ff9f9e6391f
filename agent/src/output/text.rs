//! Prometheus text 0.0.4, which prometheus-client does not write: it has OpenMetrics text only.
//!
//! Written straight from the samples: a page of a busy node has ten thousand lines, and the way
//! through a registry would cost more than the scan.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use steward_common::exposition::{Number, header, label};
use steward_common::metric::{JOB_LABEL, NODE_LABELS};

use crate::sample::{Family, Point, Samples};

/// Writes the samples of several nodes, each metric once with the points of all of them.
///
/// # Errors
/// Never, while memory lasts.
pub fn write(samples: &[Arc<Samples>]) -> Result<String, fmt::Error> {
    let series: usize = samples.iter().map(|one| one.series()).sum();
    let mut out = String::with_capacity(series * LINE);
    for (name, parts) in families(samples) {
        let Some((_, first)) = parts.first() else { continue };
        header(&mut out, first.def)?;
        for (node, family) in parts {
            let node = node_labels(node);
            for point in &family.points {
                write_point(&mut out, name, &node, point)?;
            }
        }
    }
    Ok(out)
}

/// Every metric once, with what each node has of it.
pub fn families(samples: &[Arc<Samples>]) -> BTreeMap<&'static str, Vec<(&Samples, &Family)>> {
    let mut families: BTreeMap<&str, Vec<(&Samples, &Family)>> = BTreeMap::new();
    for one in samples {
        for family in one.families() {
            families.entry(family.def.name).or_default().push((one, family));
        }
    }
    families
}

/// About as long as a line is.
pub const LINE: usize = 96;

/// The labels that all lines of a node begin with.
fn node_labels(samples: &Samples) -> String {
    let [cluster, instance] = NODE_LABELS;
    let mut out = String::new();
    for (before, name, value) in
        [('{', cluster, samples.cluster.as_str()), (',', instance, samples.node.as_str())]
    {
        label(&mut out, before, name, value);
    }
    out
}

fn write_point(out: &mut String, name: &str, node: &str, point: &Point) -> fmt::Result {
    out.push_str(name);
    out.push_str(node);
    if let Some(job) = point.job {
        write!(out, ",{JOB_LABEL}=\"{job}\"")?;
    }
    for (name, value) in &point.labels {
        label(out, ',', name, value);
    }
    writeln!(out, "}} {}", Number(point.value))
}

#[cfg(test)]
mod tests {
    use steward_common::metric;

    use crate::sample::{Budget, Samples, Selection};

    fn written(selection: Selection) -> String {
        let node = |name: &str| {
            let mut samples = Samples::new(
                "c1".parse().unwrap(),
                name.parse().unwrap(),
                selection,
                Budget::default(),
            );
            let job = "7".parse().unwrap();
            samples.job(&metric::JOBS_RSS, job, &[], 1.5);
            samples.job(&metric::JOBS_THREAD_COUNT, job, &[&"a\"b\\c\nd}"], 2.0);
            samples.job(&metric::JOBS_CPU_SECONDS, job, &[&"user"], 30.25);
            samples.agent(&metric::AGENT_SCANS, &[], 3.0);
            samples
        };
        let (one, two) = (node("n1"), node("n2"));
        super::write(&[one, two].map(std::sync::Arc::new)).unwrap()
    }

    #[test]
    fn each_metric_stands_once_with_all_nodes_and_hostile_names_stay_inside_their_quotes() {
        let text = written(Selection { original: true, modern: true });
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"jobs_cpu_seconds_total{cluster="c1",instance="n1",slurm_job="7",mode="user"} 30.25"#,
                r#"jobs_cpu_seconds_total{cluster="c1",instance="n2",slurm_job="7",mode="user"} 30.25"#,
                r#"jobs_rss{cluster="c1",instance="n1",slurm_job="7"} 1.5"#,
                r#"jobs_rss{cluster="c1",instance="n2",slurm_job="7"} 1.5"#,
                r#"jobs_thread_count{cluster="c1",instance="n1",slurm_job="7",proc_name="a\"b\\c\nd}"} 2"#,
                r#"jobs_thread_count{cluster="c1",instance="n2",slurm_job="7",proc_name="a\"b\\c\nd}"} 2"#,
                r#"steward_agent_scans_total{cluster="c1",instance="n1"} 3"#,
                r#"steward_agent_scans_total{cluster="c1",instance="n2"} 3"#,
            ]
        );
        assert!(text.contains("# TYPE jobs_cpu_seconds_total counter\n"));
        assert!(text.contains("# TYPE jobs_rss gauge\n"));
        assert_eq!(text.matches("# HELP jobs_rss ").count(), 1);
    }

    #[test]
    fn each_switch_turns_its_set_off_and_nothing_else() {
        let text = written(Selection { original: false, modern: true });
        assert!(!text.contains("jobs_rss") && text.contains("jobs_cpu_seconds_total"));
        let text = written(Selection { original: true, modern: false });
        assert!(text.contains("jobs_rss") && !text.contains("jobs_cpu_seconds_total"));
        assert!(text.contains("steward_agent_scans_total"));
    }
}
