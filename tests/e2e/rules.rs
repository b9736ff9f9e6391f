//! Rules on a real Slurm with agents and a real Prometheus: jobs that waste and one that does not,
//! judged while they run and after they ended.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::endpoint::Endpoint;
use steward_tests::prometheus::{Prometheus, query_at};
use steward_tests::service::{Service, program};
use steward_tests::slurm::{self, Job, submit};
use steward_tests::testbed::Testbed;
use steward_tests::{shared, wait};

const PATIENCE: Duration = Duration::from_secs(180);

/// Bounds for jobs of a minute on a machine that is short of CPU time.
const RULES: &str = r#"
[rules.zero-cpu-utilization]
min_run_time = "10s"
include_running = true
seconds_per_hour = 90
few_cores = 1
[rules.excess-cpu-memory]
min_run_time = "10s"
include_running = true
gib_hours = 0.001
ratio = 1
mean_ratio = 1
median_ratio = 1
top_users = 100
[rules.serial-allocating-multiple]
min_run_time = "10s"
include_running = true
cpu_hours = 0
lower_ratio = 0.05
upper_ratio = 1.1
top_users = 100
[rules.many-files-little-io]
min_run_time = "10s"
[rules.zero-util-gpu-hours]
min_run_time = "10s"
include_running = true
gpu_hours_user = 0.001
gpu_hours_admin = 0.001
[rules.cancel-zero-gpu-jobs]
first_warning = "10s"
second_warning = "10m"
cancel = "20m"
[rules.low-memory]
min_run_time = "10s"
[rules.gpu-without-process]
time = "5s"
[rules.irregular-cpu]
min_run_time = "10s"
[rules.scratch-unused]
min_run_time = "10s"
[rules.too-many-threads]
min_run_time = "10s"
[rules.unbalanced-cores]
min_run_time = "10s"
"#;

/// A centre of its own: archive, settings, and a way to ask.
pub struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    /// With these settings beside those of the archive.
    pub fn new(settings: &str) -> Site {
        let dir = shared::directory();
        let site = Site { dir };
        site.configure(settings);
        site
    }

    pub fn configure(&self, settings: &str) {
        let archive = self.dir.path().join("archive");
        let state = self.dir.path().join("state");
        let text = format!(
            "time_zone = \"UTC\"\n[archive]\ndirectory = {archive:?}\n[serve]\nstate = {state:?}\n{settings}"
        );
        std::fs::write(self.dir.path().join("steward.toml"), text).unwrap();
    }

    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// What `evaluate --json` says, and its exit code.
    pub fn evaluate(&self, args: &[&str]) -> (Value, i32) {
        let mut command = Command::new("timeout");
        command.arg("400").arg(program()).arg("--config").arg(self.dir.path().join("steward.toml"));
        command.args(["evaluate", "--json", "--days", "1"]).args(args);
        let done = command.env("SLURM_CONF", Testbed::get().slurm_conf()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let code = done.status.code().unwrap();
        let answer = serde_json::from_slice(&done.stdout).unwrap_or(Value::String(said));
        (answer, code)
    }
}

/// Nothing failed but what other tests break on purpose.
fn all_was_asked(answer: &Value) {
    let troubles = answer["troubles"].as_array().unwrap_or_else(|| panic!("{answer}"));
    for trouble in troubles {
        let why = trouble["why"].as_str().unwrap();
        // Jobs of other tests have comments that are broken, and nodes of which an agent was killed.
        assert!(why.contains("summary") || why.contains("said nothing"), "{trouble}");
    }
}

/// What a rule says of a job: the job's entry in a finding, `Null` if there is none.
pub fn hit<'a>(answer: &'a Value, rule: &str, job: &Job) -> &'a Value {
    let id: u64 = job.id.parse().unwrap();
    let rules = answer["clusters"][0]["rules"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let rule = rules.iter().find(|known| known["name"] == rule).unwrap();
    let findings = rule["findings"].as_array().unwrap().iter();
    let mut jobs = findings.flat_map(|finding| finding["jobs"].as_array().unwrap());
    jobs.find(|known| known["job_raw"] == id).unwrap_or(&Value::Null)
}

/// What `evaluate` says as soon as each of these rules finds its job.
fn until_found(site: &Site, question: &[&str], wasted: &[(&str, &Job)]) -> Value {
    wait::until("all that is wasted is found", PATIENCE, || {
        let (answer, _) = site.evaluate(question);
        all_was_asked(&answer);
        wasted.iter().all(|(rule, job)| !hit(&answer, rule, job).is_null()).then_some(answer)
    })
}

/// Why a rule that judges jobs says nothing of one; `Null` if it says something.
pub fn unknown<'a>(answer: &'a Value, rule: &str, job: &Job) -> &'a Value {
    let id: u64 = job.id.parse().unwrap();
    let rules = answer["clusters"][0]["rules"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let rule = rules.iter().find(|known| known["name"] == rule).unwrap();
    let unknown = rule["unknown"].as_array().unwrap();
    unknown.iter().find(|known| known["job_raw"] == id).unwrap_or(&Value::Null)
}

/// Python that prepares something and then works in turns of 50 ms, with as many seconds of rest after
/// each: the machine has others to serve.
fn at_work(preparation: &str, rest: f64) -> String {
    format!(
        "#!/usr/bin/python3\nimport time\n{preparation}\nwhile True:\n \
         end = time.monotonic() + 0.05\n while time.monotonic() < end: pass\n time.sleep({rest})\n"
    )
}

/// A third of the time.
fn busy_after(preparation: &str) -> String {
    at_work(preparation, 0.1)
}

struct Jobs {
    idle: Job,
    greedy: Job,
    serial: Job,
    files: Job,
    gpu: Job,
    good: Job,
    /// Holds a GPU and has no process.
    empty: Job,
}

impl Jobs {
    fn submit() -> Jobs {
        let memory = |mebibytes: u32| {
            let block = format!("block = bytearray({mebibytes} << 20)");
            busy_after(&format!("{block}\nblock[::4096] = b'x' * len(block[::4096])"))
        };
        // Once an agent has seen it, three seconds of CPU as quickly as others let it have them, then a
        // twentieth of the time.
        let files = at_work(
            "import resource, tempfile\n\
             hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n\
             resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))\n\
             files = [tempfile.TemporaryFile(dir='/var/tmp') for _ in range(1100)]\n\
             import threading\n\
             for _ in range(7): threading.Thread(target=time.sleep, args=(1200,), daemon=True).start()\n\
             time.sleep(3)\n\
             while time.process_time() < 3: pass",
            0.95,
        );
        // All on the first core that it may use.
        let one = busy_after("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})");
        let cpu = |more: &[&str], script: &str| {
            submit("stw-carol", &[&["-p", "cpu", "--time=20"], more].concat(), script)
        };
        Jobs {
            idle: cpu(&["-c4", "--mem=50M"], "#!/bin/sh\nexec sleep 600\n"),
            greedy: cpu(&["-c1", "--mem=1000M"], &memory(20)),
            serial: cpu(&["-c2", "--mem=50M"], &one),
            files: cpu(&["-c1", "--mem=60M"], &files),
            gpu: submit(
                "stw-carol",
                &["-p", "gpu", "-w", "n3", "--gres=gpu:2", "--mem=50M", "--time=20"],
                &busy_after(""),
            ),
            good: cpu(&["-c1", "--mem=200M"], &memory(150)),
            empty: slurm::allocate(
                "stw-carol",
                &["-p", "gpu", "-w", "n4", "--gres=gpu:1", "--mem=50M"],
            ),
        }
    }

    fn all(&self) -> [&Job; 6] {
        [&self.idle, &self.greedy, &self.serial, &self.files, &self.gpu, &self.good]
    }

    /// One GPU that does nothing and one that worked for a moment.
    fn gpus(&self, busy: f64) -> String {
        let cluster = Testbed::get().value("STEWARD_CLUSTER");
        let mut text = String::new();
        for (metric, values) in [
            ("nvidia_gpu_duty_cycle", [0.0, busy]),
            ("nvidia_gpu_memory_used_bytes", [0.0, 5e9]),
            ("nvidia_gpu_memory_total_bytes", [8e10, 8e10]),
        ] {
            for (minor, value) in values.iter().enumerate() {
                text += &format!(
                    "{metric}{{cluster=\"{cluster}\",instance=\"n3:9445\",jobid=\"{}\",\
                     minor_number=\"{minor}\",userid=\"1\"}} {value}\n",
                    self.gpu.id
                );
            }
        }
        // The same as an exporter has it that knows GPUs and no jobs.
        for (gpu, value) in [0.0, busy].iter().enumerate() {
            text += &format!("DCGM_FI_DEV_GPU_UTIL{{Hostname=\"n3\",gpu=\"{gpu}\"}} {value}\n");
        }
        text
    }
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {value}"))
}

#[test]
fn each_job_is_judged_by_what_it_did_while_it_runs_and_after() {
    let endpoint = Endpoint::start();
    let agent = RunningAgent::start(config());
    let prometheus = Prometheus::scraping(&[agent.url(), endpoint.url()]);
    let site = Site::new(&format!("[prometheus]\nurl = {:?}\n{RULES}", prometheus.url()));
    let jobs = Jobs::submit();
    jobs.gpu.wait_running();
    endpoint.show(jobs.gpus(60.0));
    for job in jobs.all() {
        job.wait_running();
    }
    wait::until_true("Prometheus saw the GPU at work", PATIENCE, || {
        let seen = query_at(prometheus.url(), "nvidia_gpu_duty_cycle > 0");
        seen.is_ok_and(|series| !series.is_empty())
    });
    endpoint.show(jobs.gpus(0.0));
    std::thread::sleep(Duration::from_secs(22));

    let judge = |answer: &Value, running: bool| {
        let idle = hit(answer, "zero-cpu-utilization", &jobs.idle);
        assert_eq!(idle["figures"]["nodes_unused"], 1, "{answer:#}");
        assert_eq!(idle["wasted"], 1.0);
        let greedy = hit(answer, "excess-cpu-memory", &jobs.greedy);
        let used = number(greedy, "/figures/memory_used_bytes") / f64::from(1 << 20);
        assert!((20.0..80.0).contains(&used), "{used} MiB of 1000: {greedy}");
        let serial = hit(answer, "serial-allocating-multiple", &jobs.serial);
        assert_eq!(serial["figures"]["cores"], 2, "{answer:#}");
        let files = hit(answer, "many-files-little-io", &jobs.files);
        assert!(!files.is_null(), "{answer:#}");
        let gpu = hit(answer, "zero-util-gpu-hours", &jobs.gpu);
        assert_eq!(
            (&gpu["figures"]["gpus"], &gpu["figures"]["gpus_idle"]),
            (&2.into(), &1.into()),
            "{answer:#}"
        );
        assert!((number(gpu, "/wasted") - 0.5).abs() < 1e-9, "{gpu}");
        assert_eq!(gpu["measured"]["gpus"]["by"], "exporter", "{gpu}");
        let seen = number(idle, "/measured/processes/coverage");
        assert!((0.5..=1.0).contains(&seen), "{idle}");
        let stage = &hit(answer, "cancel-zero-gpu-jobs", &jobs.gpu)["figures"]["stage"];
        if running {
            assert_eq!(stage, "first-warning", "one of two GPUs has done nothing since it began");
        } else {
            assert!(stage.is_null(), "only a running job can be cancelled");
        }
        let files = ["scratch-unused", "too-many-threads", "irregular-cpu"];
        for (rule, job) in files
            .map(|rule| (rule, &jobs.files))
            .into_iter()
            .chain([("unbalanced-cores", &jobs.serial)])
        {
            assert!(!hit(answer, rule, job).is_null(), "{rule}: {answer:#}");
        }
        let empty = hit(answer, "gpu-without-process", &jobs.empty);
        assert_eq!(empty.is_null(), !running, "{answer:#}");
        // Each is told of what it wastes, and of nothing else.
        for (rule, wasters) in [
            ("zero-cpu-utilization", &[&jobs.idle][..]),
            ("serial-allocating-multiple", &[&jobs.serial]),
            ("many-files-little-io", &[&jobs.files]),
            ("scratch-unused", &[&jobs.files]),
            ("too-many-threads", &[&jobs.files]),
            ("zero-util-gpu-hours", &[&jobs.gpu]),
            ("low-memory", &[&jobs.idle, &jobs.greedy, &jobs.serial, &jobs.files]),
        ] {
            for job in jobs.all() {
                let told = !hit(answer, rule, job).is_null();
                let wastes = wasters.iter().any(|waster| waster.id == job.id);
                // A program's own memory is of no great certainty beside 50 MiB.
                if rule != "low-memory" || job.id == jobs.greedy.id || job.id == jobs.good.id {
                    assert_eq!(told, wastes, "{rule}, job {}: {answer:#}", job.id);
                }
            }
        }
    };
    // On a machine that is short of time, agents and Prometheus see all of it a little later.
    let wasted = [
        ("zero-cpu-utilization", &jobs.idle),
        ("excess-cpu-memory", &jobs.greedy),
        ("serial-allocating-multiple", &jobs.serial),
        ("unbalanced-cores", &jobs.serial),
        ("many-files-little-io", &jobs.files),
        ("irregular-cpu", &jobs.files),
        ("zero-util-gpu-hours", &jobs.gpu),
        ("cancel-zero-gpu-jobs", &jobs.gpu),
        ("gpu-without-process", &jobs.empty),
    ];
    let running = until_found(&site, &[], &wasted);
    judge(&running, true);
    // An exporter that knows no jobs is joined with what the agents know.
    let other = Site::new(&format!(
        "[prometheus]\nurl = {:?}\n[gpus]\npreset = \"dcgm\"\njoin = \"jobs_gpu_assigned\"\n{RULES}",
        prometheus.url()
    ));
    // It is looked at two thousand times in a window, which must be short for a job that is.
    let start = slurm::run("date", &["-u", "-d", "5 minutes ago", "+%FT%T"]);
    let question = ["--rule", "zero-util-gpu-hours", "-S", &start];
    let joined = until_found(&other, &question, &[("zero-util-gpu-hours", &jobs.gpu)]);
    let gpu = hit(&joined, "zero-util-gpu-hours", &jobs.gpu);
    assert_eq!(gpu["figures"]["gpus_idle"], 1, "{joined:#}");
    // A service says the same to Prometheus.
    let (archive, url) = (site.directory().join("archive"), prometheus.url());
    let evaluate = "[evaluate]\nschedule = \"*/4 * * * * *\"\ndays = 1\n";
    let settings = format!(
        "[archive]\ndirectory = {archive:?}\n{evaluate}[prometheus]\nurl = {url:?}\n{RULES}"
    );
    let service = Service::start(site.directory(), "rules", &settings);
    let page = wait::until("the service's findings", PATIENCE, || {
        let page = service.metrics();
        page.value("steward_evaluate_jobs", &[]).is_some().then_some(page)
    });
    let told = [("rule", "zero-cpu-utilization"), ("told", "user")];
    assert!(page.value("steward_rule_findings", &told).unwrap() >= 1.0);
    assert_eq!(page.value("steward_nodes_without_agent", &[]), Some(0.0));
    let measured = [("partition", "gpu"), ("figure", "gpu")];
    assert!(page.value("steward_evaluate_measured_ratio", &measured).unwrap() > 0.0);
    drop(service);
    let agents = &running["clusters"][0]["nodes_without_agent"];
    assert_eq!(agents, &Value::Array(Vec::new()), "one agent speaks for all nodes here");

    jobs.empty.cancel();
    for job in jobs.all() {
        job.cancel();
    }
    for job in jobs.all() {
        job.wait_ended(PATIENCE);
    }
    endpoint.show(String::new());
    // Slurm's database hears of an end a little later.
    let ended = wait::until("all are judged as ended", PATIENCE, || {
        let (answer, _) = site.evaluate(&[]);
        all_was_asked(&answer);
        let over = |job: &Job| {
            let found = [
                "zero-cpu-utilization",
                "serial-allocating-multiple",
                "many-files-little-io",
                "zero-util-gpu-hours",
                "excess-cpu-memory",
            ];
            let states = found.iter().map(|rule| hit(&answer, rule, job)["state"].clone());
            states.into_iter().any(|state| state == "CANCELLED")
        };
        let wasters = [&jobs.idle, &jobs.greedy, &jobs.serial, &jobs.files, &jobs.gpu];
        wasters.into_iter().all(over).then_some(answer)
    });
    judge(&ended, false);
}
