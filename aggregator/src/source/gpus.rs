//! Questions about the GPUs of jobs, as the site's exporter has them (`[gpus]` in steward.toml).

use steward_common::id::ClusterName;
use steward_common::metric::{JOB_LABEL, NODE_LABELS};
use steward_common::window::Window;

use crate::config::{JobOf, Mapping};

/// Makes questions of a mapping.
pub struct Queries<'a> {
    /// How the exporter's series are read.
    pub mapping: &'a Mapping,
    /// Of which cluster.
    pub cluster: &'a ClusterName,
    /// Up to the end of this time.
    pub window: Window,
    /// Of these jobs alone; of all if there are none.
    pub jobs: &'a [u32],
}

impl Queries<'_> {
    fn matchers(&self) -> String {
        // A cluster's name holds no quote, backslash or newline: its type sees to that.
        let cluster = self.mapping.cluster.as_ref();
        let mut list: Vec<String> =
            cluster.map(|label| format!("{label}=\"{}\"", self.cluster)).into_iter().collect();
        if let JobOf::Label(label) = &self.mapping.job {
            list.push(match self.named() {
                Some(jobs) => format!("{label}=~\"{jobs}\""),
                None => format!("{label}!=\"\",{label}!=\"0\""),
            });
        }
        list.join(",")
    }

    /// The jobs as a pattern.
    fn named(&self) -> Option<String> {
        let jobs: Vec<String> = self.jobs.iter().map(u32::to_string).collect();
        (!jobs.is_empty()).then(|| jobs.join("|"))
    }

    /// `function` over the last `seconds` of a metric, by job, node and GPU.
    #[must_use]
    pub fn over(&self, function: &str, metric: &str, seconds: u64) -> String {
        let end = self.window.to().get();
        let Mapping { gpu, node, .. } = self.mapping;
        let matchers = self.matchers();
        match &self.mapping.job {
            JobOf::Label(job) => {
                let by = format!("{job}, {node}, {gpu}");
                format!("max by ({by}) ({function}({metric}{{{matchers}}}[{seconds}s] @ {end}))")
            }
            JobOf::Join(join) => {
                let [cluster, instance] = NODE_LABELS;
                let step = step(seconds);
                // Between two looks nothing may be lost: a single sample above 0 is work.
                let lately = match function {
                    "count_over_time" => format!("{metric}{{{matchers}}}"),
                    _ => format!("{function}({metric}{{{matchers}}}[{step}s])"),
                };
                let joined = self.joined(&lately);
                let by = format!("{JOB_LABEL}, {instance}, gpu");
                let only =
                    self.named().map_or(String::new(), |jobs| format!(",{JOB_LABEL}=~\"{jobs}\""));
                let of = format!("{join}{{{cluster}=\"{}\"{only}}}", self.cluster);
                let held = format!("max by ({by}) ({of}) == 1");
                let all =
                    format!("{joined} * on ({instance}, gpu) group_left ({JOB_LABEL}) ({held})");
                format!("max by ({by}) ({function}(({all})[{seconds}s:{step}s] @ {end}))")
            }
        }
    }

    /// How many samples the series with the most had within `probe` seconds, looked at all over the
    /// last `seconds`; where series know their `job`.
    #[must_use]
    pub fn most_samples(&self, probe: u64, seconds: u64) -> String {
        let end = self.window.to().get();
        let (metric, matchers, look) = (&self.mapping.utilisation, self.matchers(), probe / 5);
        format!(
            "max_over_time((max (count_over_time({metric}{{{matchers}}}[{probe}s])))\
             [{seconds}s:{look}s] @ {end})"
        )
    }

    /// The exporter's series with our names of node and GPU.
    fn joined(&self, series: &str) -> String {
        let [_, instance] = NODE_LABELS;
        let Mapping { gpu, node, .. } = self.mapping;
        let short =
            format!("label_replace({series}, \"{instance}\", \"$1\", \"{node}\", \"([^:]*).*\")");
        format!(
            "max by ({instance}, gpu) (label_replace({short}, \"gpu\", \"$1\", \"{gpu}\", \"(.*)\"))"
        )
    }

    /// When a GPU was last seen at work, within the last `seconds`, where series know their `job`.
    #[must_use]
    pub fn busy_at(&self, job: &str, seconds: u64) -> String {
        let end = self.window.to().get();
        let Mapping { gpu, node, utilisation, .. } = self.mapping;
        let (matchers, step) = (self.matchers(), step(seconds));
        format!(
            "max by ({job}, {node}, {gpu}) (max_over_time(timestamp({utilisation}{{{matchers}}} > 0)\
             [{seconds}s:{step}s] @ {end}))"
        )
    }
}

/// From one look of a subquery to the next, in seconds.
#[must_use]
pub fn step(seconds: u64) -> u64 {
    (seconds / 2000).max(5)
}
