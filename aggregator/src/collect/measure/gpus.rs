//! How busy the GPUs of runs were, by the site's exporter (`[gpus]` in steward.toml): asked for all
//! jobs of a window at once, and of those that began long before it one by one.
//!
//! A run's GPU time is known only if each of its GPUs was looked at for nearly all of the run: what
//! nobody looked at is neither use nor idleness.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::job::Run;
use steward_common::metric::{JOB_LABEL, NODE_LABELS};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::config::{JobOf, Mapping};
use crate::source::gpus::{Queries, step};
use crate::source::prometheus::PrometheusError;

/// How long before a window its runs may have begun to be asked for together.
const BEFORE: Duration = Duration::from_secs(24 * 3600);

/// How far back a run is followed.
const REACH: Duration = Duration::from_secs(32 * 24 * 3600);

/// So many seconds with most samples tell how often there is one.
const PROBE: u64 = 600;

/// A run this long has such a time within it, wherever one looks.
const LONG: f64 = 900.0;

/// Samples that a shorter run must have of each GPU.
const FEW: f64 = 3.0;

/// Of the samples that a run should have, so many it must and may have. With more, another run of the
/// job is among them, and it is asked for by itself.
const SHARE: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// The mean of the samples of a GPU, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    mean: Option<f64>,
    count: Option<f64>,
}

/// The GPUs of a job, by node and number.
type Gpus = BTreeMap<(String, String), Seen>;

/// Someone who answers questions in PromQL.
pub(super) type Ask<'a> = &'a dyn Fn(String) -> Result<Answer, PrometheusError>;

/// Labels and value of each series.
pub(super) type Answer = Vec<(HashMap<String, String>, f64)>;

/// What is known of GPUs over a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Busy {
    jobs: HashMap<u32, Gpus>,
    /// From when on it was asked for.
    since: Option<Timestamp>,
    /// From one sample to the next, in seconds; `None` if nobody can tell. Where all series are short
    /// it is too long.
    interval: Option<f64>,
    /// Whether it is of the time of one run, so that no other is in it.
    is_own: bool,
}

/// What is asked of whom.
pub(super) struct Exporter<'a> {
    /// How its series are read.
    pub(super) mapping: &'a Mapping,
    /// The cluster.
    pub(super) cluster: &'a ClusterName,
}

impl Exporter<'_> {
    /// Asks about all jobs that may have ended in a window; Prometheus knows no more than `now`.
    pub(super) fn window(
        &self,
        window: Window,
        now: Timestamp,
        ask: Ask<'_>,
    ) -> Result<Busy, PrometheusError> {
        let all = Window::new(window.from().before(BEFORE), window.to().min(now));
        all.map_or(Ok(Busy::default()), |all| self.over(all, &[], ask))
    }

    /// Asks about a run by itself.
    fn run(&self, run: &Run<'_>, ask: Ask<'_>) -> Result<Busy, PrometheusError> {
        let all = run
            .start
            .zip(run.end)
            .and_then(|(start, end)| Window::new(start.max(end.before(REACH)), end));
        let busy = all.map_or(Ok(Busy::default()), |all| self.over(all, &[run.job.get()], ask))?;
        Ok(Busy { is_own: true, ..busy })
    }

    fn over(&self, window: Window, jobs: &[u32], ask: Ask<'_>) -> Result<Busy, PrometheusError> {
        let Self { mapping, cluster } = self;
        let queries = Queries { mapping, cluster, window, jobs };
        let seconds = u64::try_from(window.seconds()).unwrap_or(1);
        let of = |function| queries.over(function, &mapping.utilisation, seconds);
        let mut busy = Busy { since: Some(window.from()), ..Busy::default() };
        busy.take(mapping, ask(of("avg_over_time"))?, |seen, value| seen.mean = Some(value));
        if busy.jobs.is_empty() {
            return Ok(busy);
        }
        busy.take(mapping, ask(of("count_over_time"))?, |seen, value| seen.count = Some(value));
        busy.interval = match mapping.job {
            JobOf::Join(_) => Some(step(seconds) as f64),
            JobOf::Label(_) => {
                let most = ask(queries.most_samples(PROBE, seconds))?;
                let most = most.first().map(|(_, most)| *most).filter(|most| *most >= 1.0);
                most.map(|most| PROBE as f64 / most)
            }
        };
        Ok(busy)
    }

    /// The GPU time of a run, in seconds; `None` if it is not known.
    pub(super) fn seconds(
        &self,
        busy: &Busy,
        run: &Run<'_>,
        ask: Ask<'_>,
    ) -> Result<Option<f64>, PrometheusError> {
        let (Some(_), Some(start)) = (run.gpus.filter(|gpus| *gpus > 0), run.start) else {
            return Ok(None);
        };
        // Without a series then, there was none before.
        let began_before =
            busy.since.is_some_and(|since| start < since) && busy.jobs.contains_key(&run.job.get());
        let scale = self.mapping.utilisation_scale;
        if began_before || busy.has_more_than(run) {
            return Ok(self.run(run, ask)?.seconds(run, scale));
        }
        Ok(busy.seconds(run, scale))
    }
}

impl Busy {
    fn take(&mut self, mapping: &Mapping, answer: Answer, put: impl Fn(&mut Seen, f64)) {
        let [_, instance] = NODE_LABELS;
        let (job, node, gpu) = match &mapping.job {
            JobOf::Label(label) => (label.as_str(), mapping.node.as_str(), mapping.gpu.as_str()),
            JobOf::Join(_) => (JOB_LABEL, instance, "gpu"),
        };
        for (labels, value) in answer {
            let label = |name: &str| labels.get(name).map_or("", String::as_str);
            let Ok(job) = label(job).parse::<u32>() else { continue };
            let host = label(node).split(':').next().unwrap_or_default().to_owned();
            if value.is_finite() {
                let place = (host, label(gpu).to_owned());
                put(self.jobs.entry(job).or_default().entry(place).or_default(), value);
            }
        }
    }

    /// Whether a GPU has more samples than the run can have, or may have: then another run of the job
    /// is among them.
    fn has_more_than(&self, run: &Run<'_>) -> bool {
        let Some(gpus) = self.jobs.get(&run.job.get()) else { return false };
        let elapsed = run.start.zip(run.end).map(|(start, end)| (end.get() - start.get()) as f64);
        // At its begin and at its end there may be one.
        let most = elapsed
            .zip(self.interval)
            .map(|(elapsed, interval)| elapsed / interval * SHARE.end() + 1.0);
        gpus.values()
            .filter_map(|seen| seen.count)
            .any(|count| most.is_none_or(|most| count > most))
    }

    fn seconds(&self, run: &Run<'_>, scale: f64) -> Option<f64> {
        let gpus = self.jobs.get(&run.job.get())?;
        let elapsed = (run.end?.get() - run.start?.get()) as f64;
        if elapsed <= 0.0 || u32::try_from(gpus.len()).ok() != run.gpus {
            return None;
        }
        let mut sum = 0.0;
        for seen in gpus.values() {
            let (share, count) = (seen.mean? * scale, seen.count?);
            let enough = if elapsed < LONG {
                count >= FEW && (self.is_own || !self.has_more_than(run))
            } else {
                SHARE.contains(&(count * self.interval? / elapsed))
            };
            // More than all of it, as a value that stands for "none", is no measurement.
            if !enough || !(0.0..=1.0).contains(&share) {
                return None;
            }
            sum += share;
        }
        Some(sum * elapsed)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::config;

    const HOUR: i64 = 3600;
    const END: i64 = 1000 * HOUR;

    fn mapping() -> Mapping {
        toml::from_str::<config::Gpus>("").unwrap().mapping().unwrap().unwrap()
    }

    /// A run of job 7 that held so many GPUs for so many seconds.
    fn run(gpus: u32, seconds: i64) -> Run<'static> {
        use steward_common::slurm::sacct::{Draft, Field, Layout, Row, row};

        let known = |field| matches!(field, Field::JobIdRaw | Field::Submit | Field::State);
        let layout: &'static Layout = Box::leak(Box::new(Layout::new(known)));
        let text = "7\u{1f}COMPLETED\u{1f}1\u{1f}7";
        let row = Row::new(layout, text, 0, row::ends(text).leak()).unwrap();
        let (run, _) = Draft::new(&row).unwrap().finish();
        let at = |seconds| Some(Timestamp::new(seconds));
        Run { gpus: Some(gpus), start: at(END - seconds), end: at(END), ended: true, ..run }
    }

    /// Answers as if each of these GPUs had these samples, `interval` seconds apart.
    fn seconds(run: &Run<'_>, gpus: &[(f64, f64)], interval: f64) -> (Option<f64>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let ask = |query: String| {
            let answer = gpus.iter().enumerate().map(|(gpu, (mean, count))| {
                let labels =
                    [("jobid", "7"), ("instance", "n1:9445"), ("minor_number", &*gpu.to_string())]
                        .map(|(name, value)| (name.to_owned(), value.to_owned()));
                let value = if query.contains("avg_over_time") { *mean } else { *count };
                (labels.into(), value)
            });
            let most = vec![(HashMap::new(), PROBE as f64 / interval)];
            let answer = if query.starts_with("max_over_time") { most } else { answer.collect() };
            asked.borrow_mut().push(query);
            Ok(answer)
        };
        let (mapping, cluster) = (mapping(), "c1".parse().unwrap());
        let exporter = Exporter { mapping: &mapping, cluster: &cluster };
        let window = Window::new(Timestamp::new(END - HOUR), Timestamp::new(END + HOUR)).unwrap();
        let busy = exporter.window(window, Timestamp::new(END + HOUR), &ask).unwrap();
        let found = exporter.seconds(&busy, run, &ask).unwrap();
        (found, asked.into_inner())
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-6)
    }

    #[test]
    fn n1_a_share_of_each_gpu_is_used() {
        // Four GPUs for ten hours at 30 %: 12 of 40 GPU-hours, as 57.6 of SARC's 192 units.
        let (found, _) = seconds(&run(4, 10 * HOUR), &[(30.0, 1200.0); 4], 30.0);
        assert!(near(found, 12.0 * 3600.0), "{found:?}");
        let (found, _) = seconds(&run(2, 60), &[(0.0, 4.0), (100.0, 4.0)], 30.0);
        assert!(near(found, 60.0), "{found:?}");
    }

    #[test]
    fn n4_what_nobody_looked_at_is_not_known() {
        let ten = 10 * HOUR;
        for (gpus, why) in [
            (vec![], "no series"),
            (vec![(30.0, 1200.0); 3], "one of four is missing"),
            (vec![(30.0, 1200.0); 5], "another one is among them"),
            (vec![(30.0, 1000.0); 4], "a sixth of the samples is missing"),
            (vec![(30.0, 1500.0); 4], "another run is among them"),
        ] {
            assert_eq!(seconds(&run(4, ten), &gpus, 30.0).0, None, "{why}");
        }
        assert_eq!(seconds(&run(1, 60), &[(30.0, 2.0)], 30.0).0, None, "too few samples");
        assert_eq!(seconds(&run(0, ten), &[], 30.0).0, None, "no GPU");
    }

    /// The reference leaves such samples out. Prometheus gives us a mean in which they are: what is
    /// left of it nobody knows.
    #[test]
    fn n9_a_value_that_stands_for_none_is_no_use() {
        let blank = 140_737_488_355_328.0;
        let mean = (10.0 + blank + 30.0) / 3.0;
        assert_eq!(seconds(&run(1, 60), &[(mean, 3.0)], 30.0).0, None);
        assert_eq!(seconds(&run(1, 60), &[(f64::NAN, 3.0)], 30.0).0, None);
    }

    /// Job 7 was requeued and came back to the same GPU: what is known of the job as a whole is a
    /// mean of both runs.
    #[test]
    fn of_two_runs_of_a_job_each_is_told_by_its_own_samples() {
        for (length, samples) in [(90, 3.0), (600, 20.0), (10 * HOUR, 1200.0)] {
            for (own, expected) in [(samples, Some(length as f64)), (2.0, None)] {
                let ask = |query: String| {
                    let is_own = query.contains("jobid=~\"7\"");
                    let labels = [("jobid", "7"), ("instance", "n1:9445"), ("minor_number", "0")]
                        .map(|(name, value)| (name.to_owned(), value.to_owned()));
                    let value = match (query.as_str(), is_own) {
                        (query, false) if query.contains("avg_over_time") => 50.0,
                        (query, true) if query.contains("avg_over_time") => 100.0,
                        (query, _) if query.starts_with("max_over_time") => PROBE as f64 / 30.0,
                        (_, false) => 2.0 * samples,
                        (_, true) => own,
                    };
                    Ok(vec![(labels.into(), value)])
                };
                let (mapping, cluster) = (mapping(), "c1".parse().unwrap());
                let exporter = Exporter { mapping: &mapping, cluster: &cluster };
                let end = Timestamp::new(END + HOUR);
                let window = Window::new(Timestamp::new(END - HOUR), end).unwrap();
                let busy = exporter.window(window, end, &ask).unwrap();
                let found = exporter.seconds(&busy, &run(1, length), &ask).unwrap();
                assert_eq!(found, expected, "{length} s, {own} of {samples} samples");
            }
        }
    }

    #[test]
    fn only_a_run_from_before_is_asked_for_by_itself() {
        let (_, asked) = seconds(&run(1, 20 * HOUR), &[(30.0, 2400.0)], 30.0);
        assert_eq!(asked.len(), 3, "{asked:#?}");
        assert!(asked.iter().all(|query| query.contains("jobid!=\"\"")), "{asked:#?}");
        let (found, asked) = seconds(&run(1, 50 * HOUR), &[(30.0, 6000.0)], 30.0);
        assert!(near(found, 15.0 * 3600.0), "{found:?}");
        let own = format!("[{}s] @ {END}", 50 * HOUR);
        let named = asked.iter().filter(|query| query.contains("jobid=~\"7\""));
        assert_eq!((asked.len(), named.count()), (6, 3), "{asked:#?}");
        assert!(asked[3].contains(&own), "{asked:#?}");
        for query in asked {
            promql_parser::parser::parse(&query).unwrap_or_else(|e| panic!("{query}: {e}"));
        }
    }
}
