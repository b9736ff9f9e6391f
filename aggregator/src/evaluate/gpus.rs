//! What the site's exporter says of GPUs, as Prometheus has it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::intern::Names;
use steward_common::metric::{JOB_LABEL, NODE_LABELS};
use steward_common::rule::cancel_zero_gpu_jobs::CancelZeroGpuJobs;
use steward_common::rule::{Figure, GpuUsage, Job, Origin, Share, Utilisation};
use steward_common::time::Timestamp;
use steward_common::unit::Bytes;
use steward_common::window::Window;

use super::Troubles;
use super::question::{Oracle, Series, figure, label, together};
use crate::config::{JobOf, Mapping};
use crate::source::gpus::{Queries, step};

/// From the last samples one learns how often there should be one.
const LATELY: u64 = 600;

/// How far back it is looked whether a GPU has been idle without a break.
const SLIDING: u64 = CancelZeroGpuJobs::LONGEST.as_secs();

/// A GPU that was looked at for this share of a time was looked at all of that time.
const ALL_BUT: f64 = 0.95;

/// What is known of a GPU.
#[derive(Debug, Clone, Default)]
struct Seen(BTreeMap<&'static str, f64>);

const FIGURES: &[&str] =
    &["mean", "most", "count", "used", "total", "late_count", "late_most", "busy_at"];

/// What is known of the GPUs of jobs, by job, node and GPU.
#[derive(Debug, Default)]
pub struct Gpus {
    jobs: HashMap<u32, BTreeMap<(String, String), Seen>>,
    /// From one sample to the next, in seconds.
    interval: f64,
    scale: (f64, f64),
    /// How long before the end of the window one knows whether GPUs are idle.
    sliding: f64,
}

impl Gpus {
    /// Asks about all jobs of a cluster in a window; `now` if the window ends at this moment.
    pub fn ask(
        oracle: &Oracle,
        mapping: &Mapping,
        cluster: &ClusterName,
        window: Window,
        now: bool,
        troubles: &mut Troubles<'_>,
    ) -> Gpus {
        let queries = Queries { mapping, cluster, window, jobs: &[] };
        let seconds = u64::try_from(window.seconds()).unwrap_or(1);
        let sliding = seconds.min(SLIDING);
        let mut gpus = Gpus {
            scale: (mapping.utilisation_scale, mapping.memory_scale),
            sliding: sliding as f64,
            ..Gpus::default()
        };
        let of = |function| queries.over(function, &mapping.utilisation, seconds);
        let use_ = together(&[
            ("mean", of("avg_over_time")),
            ("most", of("max_over_time")),
            ("count", of("count_over_time")),
        ]);
        match oracle.ask(use_) {
            Ok(series) => gpus.take(mapping, series),
            Err(error) => {
                troubles.add("GPUs", format!("{error}; nothing is known of their use"));
                return gpus;
            }
        }
        if gpus.jobs.is_empty() {
            return gpus;
        }
        gpus.interval = match &mapping.job {
            JobOf::Join(_) => step(seconds) as f64,
            JobOf::Label(_) => {
                let lately = queries.over("count_over_time", &mapping.utilisation, LATELY);
                let answer = oracle.ask(format!("max ({lately})"));
                let most = answer.ok().and_then(|series| series.first().map(|(_, value)| *value));
                gpus.interval(most)
            }
        };
        let mut questions = Vec::new();
        let memory: Vec<(&str, String)> =
            [("used", &mapping.memory_used), ("total", &mapping.memory_total)]
                .into_iter()
                .filter_map(|(name, metric)| {
                    Some((name, queries.over("max_over_time", metric.as_ref()?, seconds)))
                })
                .collect();
        if !memory.is_empty() {
            questions.push(("memory of GPUs", together(&memory)));
        }
        if let (true, JobOf::Label(job)) = (now, &mapping.job) {
            let late = [
                ("late_count", queries.over("count_over_time", &mapping.utilisation, sliding)),
                ("late_most", queries.over("max_over_time", &mapping.utilisation, sliding)),
                ("busy_at", queries.busy_at(job, sliding)),
            ];
            questions.push(("the last hours of GPUs", together(&late)));
        }
        for (what, question) in questions {
            match oracle.ask(question) {
                Ok(series) => gpus.take(mapping, series),
                Err(error) => troubles.add(what, error),
            }
        }
        gpus
    }

    /// From one sample to the next: as lately, else as in the series with the most.
    fn interval(&self, lately: Option<f64>) -> f64 {
        match lately.filter(|count| *count >= 2.0) {
            Some(count) => LATELY as f64 / count,
            None => 30.0,
        }
    }

    fn take(&mut self, mapping: &Mapping, series: Vec<Series>) {
        let [_, instance] = NODE_LABELS;
        let (job, node, gpu) = match &mapping.job {
            JobOf::Label(label) => (label.as_str(), mapping.node.as_str(), mapping.gpu.as_str()),
            JobOf::Join(_) => (JOB_LABEL, instance, "gpu"),
        };
        for (labels, value) in series {
            let Ok(job) = label(&labels, job).parse::<u32>() else { continue };
            let host = label(&labels, node);
            let host = host.split(':').next().unwrap_or(host).to_owned();
            let place = (host, label(&labels, gpu).to_owned());
            let name = FIGURES.iter().find(|known| **known == figure(&labels));
            if let Some(name) = name.filter(|_| value.is_finite()) {
                let seen = self.jobs.entry(job).or_default().entry(place).or_default();
                seen.0.insert(name, value);
            }
        }
    }

    /// Adds to a job what is known of its GPUs, unless somebody knew before.
    pub fn add_to(&self, job: &mut Job, names: &mut Names, now: Timestamp) {
        let Some(gpus) = self.jobs.get(&job.key.id.get()) else { return };
        let elapsed = f64::from(job.elapsed.unwrap_or(0));
        if job.usage.gpus.is_some() || elapsed <= 0.0 {
            return;
        }
        let mut seen_for = f64::INFINITY;
        let mut list = Vec::with_capacity(gpus.len());
        for ((node, _), seen) in gpus {
            let get = |figure: &str| seen.0.get(figure).copied();
            let share = |figure| get(figure).and_then(|value| self.share(value));
            seen_for = seen_for.min(get("count").unwrap_or(0.0) * self.interval);
            let bytes = |figure| {
                let value: f64 = get(figure)? * self.scale.1;
                (0.0..9e18).contains(&value).then(|| Bytes::new(rounded(value)))
            };
            list.push(GpuUsage {
                node: names.intern(node),
                utilisation: share("mean").map(|mean| Utilisation::measured(mean, share("most"))),
                peak_memory: bytes("used"),
                memory: bytes("total"),
                idle_for: if job.end.is_none() { self.idle_for(seen, elapsed, now) } else { None },
            });
        }
        let coverage = Share::new((seen_for / elapsed).min(1.0)).unwrap_or(Share::NONE);
        let figure = Figure { value: list.into_boxed_slice(), origin: Origin::Exporter, coverage };
        job.usage.gpus = Some(Box::new(figure));
    }

    fn share(&self, value: f64) -> Option<Share> {
        Share::new(value * self.scale.0)
    }

    /// How long it has been idle up to now, where all of that time was seen.
    fn idle_for(&self, seen: &Seen, elapsed: f64, now: Timestamp) -> Option<Duration> {
        let get = |figure: &str| seen.0.get(figure).copied();
        let time = self.sliding.min(elapsed);
        if get("late_count")? * self.interval < ALL_BUT * time {
            return None;
        }
        let idle = match get("busy_at") {
            Some(busy) => (now.get() as f64 - busy).clamp(0.0, time),
            // A sample between two looks of the question for the time may have been above 0.
            None if get("late_most")? > 0.0 => return None,
            None => time,
        };
        Some(Duration::from_secs_f64(idle))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Gpus as Settings;

    fn window() -> Window {
        Window::new(Timestamp::new(1_000_000), Timestamp::new(1_003_600)).unwrap()
    }

    fn mapping(text: &str) -> Mapping {
        toml::from_str::<Settings>(text).unwrap().mapping().unwrap().unwrap()
    }

    #[test]
    fn every_question_is_promql_for_every_mapping() {
        let cluster = "c1".parse().unwrap();
        for text in [
            "",
            "preset = \"dcgm\"",
            "preset = \"dcgm\"\njoin = \"jobs_gpu_assigned\"",
            "preset = \"custom\"\nutilisation = \"u\"\njob_label = \"j\"\ncluster_label = \"\"",
        ] {
            let mapping = mapping(text);
            let queries =
                Queries { mapping: &mapping, cluster: &cluster, window: window(), jobs: &[7, 8] };
            let functions = ["avg_over_time", "max_over_time", "count_over_time"];
            let all = functions.map(|function| queries.over(function, &mapping.utilisation, 3600));
            let named: Vec<(&str, String)> = FIGURES.iter().copied().zip(all).collect();
            for query in [together(&named), queries.busy_at("j", 3600)] {
                promql_parser::parser::parse(&query).unwrap_or_else(|e| panic!("{query}: {e}"));
            }
        }
    }

    fn series(job: &str, node: &str, gpu: &str, figure: &str, value: f64) -> Series {
        let labels =
            [("jobid", job), ("instance", node), ("minor_number", gpu), ("steward_figure", figure)];
        (labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(), value)
    }

    /// Sixty samples, a minute apart, over an hour of which some are missing.
    fn gpus(count: f64, late: Option<f64>, busy_at: Option<f64>) -> Gpus {
        let mut gpus =
            Gpus { interval: 60.0, scale: (0.01, 1.0), sliding: 1800.0, ..Gpus::default() };
        let mut all = vec![
            series("7", "n1:9445", "0", "mean", 0.02),
            series("7", "n1:9445", "0", "most", 11.0),
            series("7", "n1:9445", "0", "count", count),
            series("7", "n1:9445", "0", "used", 1e9),
        ];
        all.extend(late.map(|count| series("7", "n1:9445", "0", "late_count", count)));
        all.extend(late.map(|_| series("7", "n1:9445", "0", "late_most", 0.0)));
        all.extend(busy_at.map(|at| series("7", "n1:9445", "0", "busy_at", at)));
        gpus.take(&mapping(""), all);
        gpus
    }

    #[test]
    fn idleness_is_stated_only_of_time_that_was_seen() {
        let now = Timestamp::new(1_003_600);
        let idle = |late, busy_at| {
            let gpus = gpus(60.0, late, busy_at);
            let seen = gpus.jobs[&7].values().next().unwrap().clone();
            gpus.idle_for(&seen, 3600.0, now).map(|idle| idle.as_secs())
        };
        assert_eq!(idle(Some(30.0), None), Some(1800), "all of the last half-hour was seen");
        assert_eq!(idle(Some(30.0), Some(1_003_000.0)), Some(600));
        assert_eq!(idle(Some(20.0), None), None, "ten of thirty samples are missing");
        assert_eq!(idle(None, None), None);
    }

    #[test]
    fn a_port_is_cut_off_and_missing_samples_are_missing_coverage() {
        let mut names = Names::default();
        let name = names.intern("");
        let mut job = Job {
            key: steward_common::rule::JobKey {
                id: "7".parse().unwrap(),
                submit: Timestamp::new(0),
            },
            array: None,
            user: name,
            account: name,
            partition: name,
            qos: name,
            name,
            nodes: name,
            licences: None,
            state: "RUNNING".into(),
            start: Some(Timestamp::new(1_000_000)),
            end: None,
            elapsed: Some(3600),
            time_limit: None,
            cpus: Some(1),
            node_count: Some(1),
            gpus: Some(1),
            memory: None,
            billing: None,
            usage: steward_common::rule::Usage::default(),
        };
        gpus(45.0, None, None).add_to(&mut job, &mut names, Timestamp::new(1_003_600));
        let figure = job.usage.gpus.as_deref().unwrap();
        assert!((figure.coverage.get() - 0.75).abs() < 1e-9);
        assert_eq!(names.text(figure.value[0].node), "n1");
        let used = figure.value[0].utilisation.unwrap();
        assert!((used.mean().get() - 0.0002).abs() < 1e-12);
        assert_eq!(used.idle(), steward_common::rule::Idle::No, "one sample of 11 per cent");
        assert_eq!(figure.value[0].peak_memory, Some(Bytes::new(1_000_000_000)));
        assert_eq!(figure.value[0].memory, None, "nobody said");
    }
}
