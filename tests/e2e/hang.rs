//! A file system that never answers: the jobs on it may hang, the agent may not.

use std::fs;
use std::time::Duration;

use steward_tests::agent::Served;
use steward_tests::exposition::Exposition;
use steward_tests::hung::Hung;
use steward_tests::shared;
use steward_tests::slurm::submit;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(120);
/// How much longer than without the hung file the longest scan and the longest pause may be, and
/// the mean scan: other tests run on the same cores.
const ALLOWED: (f64, f64) = (1.0, 0.2);

/// Some scans: the longest one, the mean one, and the longest time between two.
#[derive(Clone, Copy, Debug)]
struct Scans {
    longest: f64,
    mean: f64,
    apart: f64,
}

/// Watches the next ten scans.
fn scans(agent: &Served) -> Scans {
    let own = |metrics: &Exposition, name: &str| metrics.all(name, &[])[0].value;
    let mut seen: Vec<(f64, f64)> = Vec::new();
    wait::until_true("ten scans", Duration::from_secs(20), || {
        if let Some(metrics) = agent.metrics() {
            let at = own(&metrics, "steward_agent_last_scan_timestamp_seconds");
            if seen.last().is_none_or(|(last, _)| *last < at) {
                seen.push((at, own(&metrics, "steward_agent_last_scan_duration_seconds")));
            }
        }
        seen.len() > 10
    });
    Scans {
        longest: seen.iter().map(|(_, took)| *took).fold(0.0, f64::max),
        mean: seen.iter().map(|(_, took)| *took).sum::<f64>() / seen.len() as f64,
        apart: seen.windows(2).map(|two| two[1].0 - two[0].0).fold(0.0, f64::max),
    }
}

/// The scans of `agent` are as good as those of `before`.
fn no_delay(what: &str, agent: &Served, before: Scans) {
    let after = scans(agent);
    println!("{what}: {after:.3?}, before {before:.3?}");
    assert!(after.longest < before.longest + ALLOWED.0, "{what}: {after:?}, before {before:?}");
    assert!(after.mean < before.mean + ALLOWED.1, "{what}: {after:?}, before {before:?}");
    assert!(after.apart < before.apart + ALLOWED.0, "{what}: {after:?}, before {before:?}");
}

fn value(agent: &Served, metric: &str, job: &str) -> Option<f64> {
    agent.metrics()?.job(metric, job)
}

#[test]
fn a_file_that_never_answers_delays_no_scan() {
    let dir = shared::directory();
    let point = dir.path().join("hung");
    fs::create_dir(&point).unwrap();
    // In this order: the file system goes first at the end, so that nobody sleeps in it when the
    // job is cancelled.
    let job;
    let other = submit("stw-bob", &["-n1"], "#!/bin/bash\nsleep 600\n");
    let hung = Hung::mount(&point, 1, 0);
    let agent = || Served::start(&["--interval", "500ms"]);
    let first = agent();
    let seen = |agent: &Served, job: &str| {
        wait::until("the job's processes", PATIENCE, || value(agent, "jobs_processes", job));
    };
    seen(&first, &other.id);
    let before = scans(&first);

    job = submit(
        "stw-alice",
        &["-n1"],
        &format!(
            "#!/usr/bin/python3\nimport os\nos.read(os.open('{}', os.O_RDONLY), 1)\n",
            hung.file().display()
        ),
    );
    wait::until_true("the job hangs", PATIENCE, || hung.unanswered() > 0);
    // One that knows the job from before, and one that has to learn everything about it now.
    for (what, agent) in [("known", first), ("new", agent())] {
        seen(&agent, &other.id);
        seen(&agent, &job.id);
        let asked = hung.unanswered();
        no_delay(what, &agent, before);
        let files = wait::until("the open file", PATIENCE, || {
            value(&agent, "jobs_opened_files", &job.id).filter(|files| *files >= 1.0)
        });
        assert_eq!(files, 1.0, "{what}");
        assert_eq!(value(&agent, "jobs_processes", &job.id), Some(1.0), "{what}");
        assert!(value(&agent, "jobs_processes", &other.id).is_some(), "{what}: the other job");
        assert_eq!(hung.unanswered(), asked, "{what}: the agent asked the file system");
    }
}
