//! Rules where something is missing: that is said, and nothing is guessed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::Value;
use steward_tests::agent::{Process, Served};
use steward_tests::endpoint::Endpoint;
use steward_tests::gateway::Gateway;
use steward_tests::prometheus::{Prometheus, query_at};
use steward_tests::slurm::{self, Job, submit};
use steward_tests::testbed::Testbed;
use steward_tests::wait;

use crate::rules::{Site, hit, unknown};

const PATIENCE: Duration = Duration::from_secs(180);

/// What the rules here look at is whether it was watched, not what it does.
const IDLE: &str = "#!/bin/sh\nexec sleep 600\n";

/// A rule that judges single jobs by what agents saw, from the first seconds on.
const RULES: &str =
    "[rules.too-many-threads]\nmin_run_time = \"5s\"\n[rules.low-cpu]\nmin_run_time = \"5s\"\n";

fn troubles(answer: &Value) -> Vec<String> {
    let list = answer["troubles"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|one| format!("{} {}", one["what"], one["why"])).collect()
}

fn has(troubles: &[String], words: &[&str]) -> bool {
    troubles.iter().any(|trouble| words.iter().all(|word| trouble.contains(word)))
}

#[test]
fn who_does_not_answer_is_named_and_nothing_is_known_of_what_he_knew() {
    let gpu = ["-p", "gpu", "--gres=gpu:1", "--mem=50M", "--time=20"];
    let job = submit("stw-alice", &gpu, IDLE);
    job.wait_running();
    // A comment as Jobstats writes it, broken on its way.
    slurm::run(
        "scontrol",
        &["update", &format!("JobId={}", job.id), "AdminComment=JS1:H4sIAAAbroken"],
    );
    let more = "[rules.cancel-zero-gpu-jobs]\nfirst_warning = \"1s\"\n[slurm]\nretries = 0\n";
    let down =
        format!("[prometheus]\nurl = \"http://127.0.0.1:9\"\ntimeout = \"2s\"\n{RULES}{more}");
    let site = Site::new(&down);
    std::thread::sleep(Duration::from_secs(6));

    let (answer, code) = site.evaluate(&[]);
    let told = troubles(&answer);
    assert_eq!(code, 3, "{answer:#}");
    assert!(has(&told, &["agents", "http://127.0.0.1:9"]), "{told:?}");
    assert!(has(&told, &["GPUs", "http://127.0.0.1:9"]), "{told:?}");
    for rule in ["too-many-threads", "cancel-zero-gpu-jobs"] {
        assert_eq!(unknown(&answer, rule, &job)["why"], "nobody measured it", "{answer:#}");
        assert!(hit(&answer, rule, &job).is_null());
    }

    // A database that hangs: what the archive has is judged, and that it is old is said.
    site.configure(&format!("{down}sacct = [\"sh\", \"-c\", \"sleep 100\"]\ntimeout = \"2s\"\n"));
    let (answer, code) = site.evaluate(&[]);
    let told = troubles(&answer);
    assert_eq!(code, 3);
    assert!(has(&told, &["collection", "are not judged"]), "{told:?}");

    // Neither database nor controller: there is nothing to judge, and that is said too.
    let nobody =
        "sacct = [\"false\"]\nscontrol = [\"false\"]\nsqueue = [\"false\"]\nsinfo = [\"false\"]\n";
    site.configure(&format!("{down}{nobody}"));
    let (answer, code) = site.evaluate(&["--no-collect"]);
    assert_eq!(code, 3, "{answer}");
    assert!(has(&troubles(&answer), &["slurmctld"]), "{answer}");

    job.cancel();
    job.wait_ended(PATIENCE);
    site.configure(&down);
    wait::until_true("its comment is named", PATIENCE, || {
        let (answer, code) = site.evaluate(&[]);
        assert_eq!(code, 3);
        has(&troubles(&answer), &[&format!("job {}", job.id), "summary"])
    });
    for (args, said) in [
        (&["--rule", "no-such"][..], "`steward rules` lists all"),
        (&["-S", "2099-01-01"], "must be before --endtime and now"),
    ] {
        let (answer, code) = site.evaluate(args);
        assert_eq!((code, answer.to_string().contains(said)), (2, true), "{answer}");
    }
}

/// An agent that was killed while the job went on.
struct Half {
    job: Job,
    prometheus: Prometheus,
}

impl Half {
    /// Waits until Prometheus knows the job, kills the agent, and lets the job go on for longer than
    /// it was watched.
    fn kill(job: Job, prometheus: Prometheus, mut agent: Process) -> Half {
        let query = format!("jobs_covered_until_timestamp_seconds{{slurm_job=\"{}\"}}", job.id);
        wait::until_true("Prometheus knows the job", PATIENCE, || {
            query_at(prometheus.url(), &query).is_ok_and(|series| !series.is_empty())
        });
        agent.signal(Signal::SIGKILL);
        Half { job, prometheus }
    }

    fn is_not_judged(&self, how: &str) {
        let settings = format!("[prometheus]\nurl = {:?}\n{RULES}", self.prometheus.url());
        let site = Site::new(&settings);
        let (answer, code) = site.evaluate(&[]);
        assert_eq!(code, 3, "{how}");
        let told = troubles(&answer);
        assert!(has(&told, &["its agent has said nothing"]), "{how}: {told:?}");
        for rule in ["too-many-threads", "low-cpu"] {
            let why = unknown(&answer, rule, &self.job);
            assert_eq!(why["why"], "too little of it was seen", "{how}, {rule}: {answer:#}");
            let seen = why["coverage"].as_f64().unwrap();
            assert!((0.0..0.8).contains(&seen), "{how}: {why}");
            assert!(hit(&answer, rule, &self.job).is_null(), "{how}");
        }
    }
}

#[test]
fn a_job_whose_agent_was_killed_half_way_is_not_judged() {
    let work =
        |node: &str| submit("stw-bob", &["-p", "cpu", "-w", node, "--mem=50M", "--time=20"], IDLE);
    // Scraped: its series end with it. Pushed: the gateway goes on showing its last words.
    let args = |node: &'static str| ["--node", node, "--interval", "500ms", "--linger", "0"];
    let served = Served::start(&args("n1"));
    let scraped = Prometheus::start(served.url());
    let gateway = Gateway::start();
    let pushing =
        Process::start(&[&args("n2")[..], &["--no-listen", "--push", &gateway.url()]].concat());
    let pushed = Prometheus::start(&gateway.url());
    let jobs = [work("n1"), work("n2")];
    jobs.iter().for_each(Job::wait_running);
    let [first, second] = jobs;
    let halves = [
        (Half::kill(first, scraped, served.process), "scraped"),
        (Half::kill(second, pushed, pushing), "pushed"),
    ];
    std::thread::sleep(Duration::from_secs(75));
    for (half, how) in &halves {
        half.is_not_judged(how);
    }
}

#[test]
fn a_node_whose_clock_is_wrong_is_named_and_its_job_is_not_judged() {
    let job = submit("stw-bob", &["-p", "cpu", "-w", "n2", "--mem=50M", "--time=20"], IDLE);
    job.wait_running();
    let endpoint = Endpoint::start();
    let prometheus = Prometheus::start(endpoint.url());
    // What an agent says whose clock is an hour behind.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 3600;
    let cluster = Testbed::get().value("STEWARD_CLUSTER");
    let labels = format!("{{cluster=\"{cluster}\",instance=\"n2\",slurm_job=\"{}\"}}", job.id);
    endpoint.show(format!(
        "jobs_covered_from_timestamp_seconds{labels} {now}\n\
         jobs_covered_until_timestamp_seconds{labels} {}\n\
         jobs_cpu_usage_seconds_total{labels} 5\njobs_cpus{labels} 1\n",
        now + 20
    ));
    wait::until_true("Prometheus knows the job", PATIENCE, || {
        query_at(prometheus.url(), "jobs_cpus").is_ok_and(|series| !series.is_empty())
    });
    std::thread::sleep(Duration::from_secs(4));
    let site = Site::new(&format!("[prometheus]\nurl = {:?}\n{RULES}", prometheus.url()));
    let (answer, code) = site.evaluate(&[]);
    let told = troubles(&answer);
    assert_eq!(code, 3, "{answer:#}");
    assert!(has(&told, &["node n2", "is its clock right"]), "{told:?}");
    assert_eq!(unknown(&answer, "low-cpu", &job)["why"], "nobody measured it", "{answer:#}");
}
