//! Prometheus text 0.0.4, which prometheus-client does not write: it has OpenMetrics text only.

use std::fmt::{self, Write};

use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::{
    LabelPair, MetricFamily, MetricType,
};

/// Writes `families` as text 0.0.4.
///
/// # Errors
/// If a family is neither counter, gauge nor untyped: the agent makes no other.
pub fn write(families: &[MetricFamily]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    for family in families {
        let kind = match family.r#type() {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Untyped => "untyped",
            _ => return Err(fmt::Error),
        };
        let help = escape(&family.help, false);
        writeln!(out, "# HELP {} {help}\n# TYPE {} {kind}", family.name, family.name)?;
        for metric in &family.metric {
            let value = metric.counter.as_ref().map(|counter| counter.value);
            let value = value.or_else(|| metric.gauge.as_ref().map(|gauge| gauge.value));
            let value = value.or_else(|| metric.untyped.as_ref().map(|untyped| untyped.value));
            let value = value.ok_or(fmt::Error)?;
            out.push_str(&family.name);
            write_labels(&mut out, &metric.label)?;
            writeln!(out, " {}", Number(value))?;
        }
    }
    Ok(out)
}

fn write_labels(out: &mut String, labels: &[LabelPair]) -> fmt::Result {
    if labels.is_empty() {
        return Ok(());
    }
    let mut before = '{';
    for label in labels {
        write!(out, "{before}{}=\"{}\"", label.name, escape(&label.value, true))?;
        before = ',';
    }
    out.push('}');
    Ok(())
}

fn escape(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

/// A number as Prometheus reads it.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_infinite() {
            f.write_str(if self.0 > 0.0 { "+Inf" } else { "-Inf" })
        } else {
            write!(f, "{}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use steward_common::metric;

    use crate::output::exposition::{Format, encode};
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
        String::from_utf8(encode(&[&one, &two], Format::Text).unwrap()).unwrap()
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
