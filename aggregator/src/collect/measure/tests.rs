use std::collections::HashMap;
use std::ops::Range;

use steward_common::job::Source;
use steward_common::metric::{
    JOBS_COVERED_FROM, JOBS_COVERED_UNTIL, JOBS_CPU_USAGE_SECONDS, JOBS_GPU_ASSIGNED,
    JOBS_IO_BYTES, JOBS_MEMORY_ANON, JOBS_MEMORY_PEAK, JOBS_MEMORY_SHMEM, MetricDef,
};
use steward_common::slurm::sacct::row::ends;
use steward_common::slurm::sacct::{DELIMITER, Field, Layout, Row};

use super::*;
use crate::collect::run::{assemble, attach};

const DAY: i64 = 86_400;
const NOW: i64 = 100 * DAY;

/// A Prometheus of a few points, which understands the questions that are asked here.
#[derive(Default)]
struct Points {
    points: Vec<(&'static str, u32, String, &'static str, i64, f64)>,
    asked: usize,
}

impl Points {
    /// What an agent says of a run that it watches from the begin of `when` to its end.
    fn watch(&mut self, job: u32, node: &str, when: Range<i64>, memory: impl Fn(i64) -> f64) {
        let mut put = |def: &'static MetricDef, label, at, value| {
            self.points.push((def.name, job, node.to_owned(), label, at, value));
        };
        let mut at = when.start;
        loop {
            put(&JOBS_COVERED_FROM, "", at, when.start as f64);
            put(&JOBS_COVERED_UNTIL, "", at, at as f64);
            put(&JOBS_CPU_USAGE_SECONDS, "", at, (at - when.start) as f64 / 2.0);
            put(&JOBS_MEMORY_ANON, "", at, memory(at));
            put(&JOBS_MEMORY_SHMEM, "", at, 1000.0);
            put(&JOBS_MEMORY_PEAK, "", at, 1e9);
            put(&JOBS_GPU_ASSIGNED, "0", at, 1.0);
            put(&JOBS_GPU_ASSIGNED, "1", at, 1.0);
            put(&JOBS_IO_BYTES, "read", at, 7.0);
            put(&JOBS_IO_BYTES, "write", at, 8.0);
            if at == when.end {
                break;
            }
            at = (at + 60).min(when.end);
        }
    }

    fn answer(&mut self, query: &str) -> Vec<Series> {
        self.asked += 1;
        let (_, rest) = query.split_once("_over_time(").unwrap();
        let (name, rest) = rest.split_once('{').unwrap();
        let (matchers, rest) = rest.split_once("}[").unwrap();
        let (seconds, end) = rest.split_once("s] @ ").unwrap();
        let end: i64 = end.trim_end_matches(')').parse().unwrap();
        let begin = end - seconds.parse::<i64>().unwrap();
        let jobs: Option<Vec<&str>> = matchers
            .split_once("=~\"")
            .map(|(_, jobs)| jobs.trim_end_matches('"').split('|').collect());
        let mut found: HashMap<(u32, String, &str), f64> = HashMap::new();
        for (metric, job, node, label, at, value) in &self.points {
            let named = jobs.as_ref().is_none_or(|jobs| jobs.contains(&job.to_string().as_str()));
            if *metric == name && named && (begin..=end).contains(at) {
                let best = found.entry((*job, node.clone(), label)).or_insert(*value);
                *best = if query.starts_with("min") { best.min(*value) } else { best.max(*value) };
            }
        }
        if query.starts_with("count") {
            let mut counts: HashMap<(u32, String, &str), f64> = HashMap::new();
            for (job, node, _) in found.into_keys() {
                *counts.entry((job, node, "")).or_default() += 1.0;
            }
            found = counts;
        }
        let series = found.into_iter().map(|((job, node, label), value)| Series {
            job: ("c1".parse().unwrap(), job.to_string().parse().unwrap()),
            labels: [("instance", node.as_str()), ("direction", label)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            value,
        });
        series.collect()
    }

    fn watched(&mut self, window: Range<i64>) -> Watched {
        let window = Window::new(Timestamp::new(window.start), Timestamp::new(window.end)).unwrap();
        let cluster = "c1".parse().unwrap();
        let question = Question { cluster: &cluster, window, now: Timestamp::new(NOW) };
        question.answer(&mut |query| Ok(self.answer(&query))).unwrap()
    }
}

struct Measured {
    agent: AgentUse,
    memory: Option<u64>,
    source: Option<Source>,
}

/// What is measured of a run of a job on these nodes.
fn measured(watched: &Watched, when: Range<i64>, nodes: &[&str]) -> Option<Measured> {
    let layout = Layout::new(|_| true);
    let field = |field: &Field| match field {
        Field::JobId | Field::JobIdRaw => "7".to_owned(),
        Field::Submit | Field::Start => when.start.to_string(),
        Field::End => when.end.to_string(),
        Field::State => "COMPLETED".to_owned(),
        Field::NodeList => nodes.join(","),
        Field::AllocNodes => nodes.len().to_string(),
        _ => String::new(),
    };
    let fields: Vec<String> = layout.fields().iter().map(field).chain(["7".to_owned()]).collect();
    let text = fields.join(&char::from(DELIMITER).to_string());
    let ends = ends(&text);
    let row = Row::new(&layout, &text, 0, &ends).unwrap();
    let (mut run, _) = assemble([row].into_iter(), "c1").unwrap().unwrap();
    let agent = watched.of(&run)?;
    attach(&mut run, agent);
    Some(Measured {
        memory: run.peak_memory.map(|bytes| bytes.get()),
        source: run.memory_source,
        agent: run.agent?,
    })
}

#[test]
fn a_run_on_two_nodes_is_summed_up() {
    let mut points = Points::default();
    let run = 10 * DAY + 3600..10 * DAY + 7200;
    points.watch(7, "n1", run.clone(), |at| if at == 10 * DAY + 4800 { 5e6 } else { 1e6 });
    points.watch(7, "n2", run.start + 1800..run.end, |_| 2e6);
    points.watch(8, "n1", run.clone(), |_| 9e6);
    let watched = points.watched(10 * DAY..11 * DAY);
    let found = measured(&watched, run.clone(), &["n1", "n2"]).unwrap();
    let nodes: Vec<_> = found
        .agent
        .nodes
        .iter()
        .map(|node| (node.node.as_str(), node.cpu_seconds, node.peak_memory_bytes, node.gpus))
        .collect();
    let expected = [
        ("n1", Some(1800.0), Some(5_001_000), Some(2)),
        ("n2", Some(900.0), Some(2_001_000), Some(2)),
    ];
    assert_eq!(nodes, expected);
    assert_eq!((found.agent.read_bytes, found.agent.written_bytes), (Some(14), Some(16)));
    assert_eq!(found.agent.coverage, Some(0.75));
    // Too little of it was seen.
    assert_eq!((found.memory, found.source), (None, None));
    let alone = measured(&watched, run.clone(), &["n1"]).unwrap();
    assert_eq!(alone.agent.coverage, Some(1.0));
    assert_eq!((alone.memory, alone.source), (Some(5_001_000), Some(Source::Agent)));
    // Nobody was on the third node: its memory is missing from the sum.
    assert!(measured(&watched, run.clone(), &["n3"]).is_none());
    let three = measured(&watched, run, &["n1", "n3"]).unwrap();
    assert_eq!((three.agent.nodes.len(), three.memory), (1, None));
}

#[test]
fn runs_of_one_job_are_told_apart_or_left_alone() {
    let mut points = Points::default();
    let (first, second) = (10 * DAY..10 * DAY + 600, 10 * DAY + 720..10 * DAY + 1800);
    points.watch(7, "n1", first.clone(), |_| 1e6);
    points.watch(7, "n2", second.clone(), |_| 2e6);
    let watched = points.watched(10 * DAY..11 * DAY);
    let memory =
        |watched: &Watched, run: &Range<i64>, node| measured(watched, run.clone(), &[node])?.memory;
    assert_eq!(memory(&watched, &first, "n1"), Some(1_001_000));
    assert_eq!(memory(&watched, &second, "n2"), Some(2_001_000));
    assert_eq!(memory(&watched, &first, "n2"), None);
    // On the same node, in the same window.
    points.watch(7, "n1", second.clone(), |_| 2e6);
    let watched = points.watched(10 * DAY..11 * DAY);
    assert!(measured(&watched, first, &["n1"]).is_none());
    assert!(measured(&watched, second, &["n1"]).is_none());
}

#[test]
fn the_memory_of_a_run_of_days_is_followed_to_its_begin() {
    let mut points = Points::default();
    let run = 10 * DAY + 50..13 * DAY + 3600;
    points.watch(7, "n1", run.clone(), |at| if at < 10 * DAY + 200 { 8e6 } else { 1e6 });
    points.watch(8, "n1", 9 * DAY..NOW, |_| 9e6);
    let watched = points.watched(13 * DAY..14 * DAY);
    let found = measured(&watched, run.clone(), &["n1"]).unwrap();
    assert_eq!(found.memory, Some(8_001_000));
    assert_eq!(found.agent.coverage, Some(1.0));
    assert_eq!(found.agent.nodes[0].cpu_seconds, Some((run.end - run.start) as f64 / 2.0));
    // Another run of the job on its first day: whose memory it was nobody can say.
    points.watch(7, "n1", 10 * DAY - 290..10 * DAY - 100, |_| 1e7);
    let watched = points.watched(13 * DAY..14 * DAY);
    let found = measured(&watched, run, &["n1"]).unwrap();
    assert_eq!((found.memory, found.agent.coverage), (None, Some(1.0)));
}

#[test]
fn a_long_run_that_has_just_ended_waits_for_the_next_collection() {
    let mut points = Points::default();
    let run = 98 * DAY..NOW - 10;
    points.watch(7, "n1", run.clone(), |_| 1e6);
    assert!(measured(&points.watched(99 * DAY..NOW + 1), run, &["n1"]).is_none());
    let short = NOW - 300..NOW - 10;
    let mut points = Points::default();
    points.watch(7, "n1", short.clone(), |_| 1e6);
    assert!(measured(&points.watched(99 * DAY..NOW + 1), short, &["n1"]).is_some());
}

#[test]
fn a_time_of_which_nothing_is_known_costs_few_questions() {
    let mut points = Points::default();
    assert_eq!(points.watched(10 * DAY..11 * DAY), Watched::default());
    assert_eq!(points.asked, 5);
}

#[test]
fn a_prometheus_that_does_not_answer_is_asked_once() {
    let agents = Agents::new("http://127.0.0.1:9", Duration::from_secs(1), None).unwrap();
    let mut measurements = Measurements::new(Some(&agents), "c1", Timestamp::new(NOW));
    let window = Window::new(Timestamp::new(10 * DAY), Timestamp::new(11 * DAY)).unwrap();
    assert!(!agents.is_deaf());
    measurements.load(window);
    measurements.load(window);
    assert!(agents.is_deaf());
}
