//! Idle GPU jobs on a real Slurm: warned, given time to save their work, and ended; those that work, and those of which
//! nobody knows anything, live.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::endpoint::Endpoint;
use steward_tests::prometheus::{Prometheus, query_at};
use steward_tests::service::{Service, program};
use steward_tests::slurm::{self, Job, submit};
use steward_tests::smtp::Smtp;
use steward_tests::testbed::Testbed;
use steward_tests::{shared, wait};

const PATIENCE: Duration = Duration::from_secs(120);

/// The testbed has four GPUs.
static GPUS: Mutex<()> = Mutex::new(());

/// Times of seconds where a site has hours.
const RULE: &str = r#"
[rules.cancel-zero-gpu-jobs]
first_warning = "4s"
second_warning = "none"
cancel = "10s"
"#;

struct Scene {
    dir: tempfile::TempDir,
    endpoint: Endpoint,
    prometheus: Prometheus,
    _agent: RunningAgent,
}

impl Scene {
    fn new() -> Scene {
        let (endpoint, agent) = (Endpoint::start(), RunningAgent::start(config()));
        let prometheus = Prometheus::scraping(&[agent.url(), endpoint.url()]);
        Scene { dir: shared::directory(), endpoint, prometheus, _agent: agent }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn configure(&self, cancel: &str, slurm: &str) {
        let (archive, state) = (self.path().join("archive"), self.path().join("state"));
        let url = self.prometheus.url();
        let text = format!(
            "time_zone = \"UTC\"\n[archive]\ndirectory = {archive:?}\n[serve]\nstate = {state:?}\n\
             [prometheus]\nurl = {url:?}\n{RULE}\n[slurm]\n{slurm}\n[cancel]\n{cancel}\n"
        );
        std::fs::write(self.path().join("steward.toml"), text).unwrap();
    }

    /// A program that keeps the notes, a line each.
    fn tell(&self) -> String {
        let notes = self.path().join("notes");
        format!("tell = [\"sh\", \"-c\", \"cat >> {0}; echo >> {0}\"]", notes.display())
    }

    fn notes(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.path().join("notes")).unwrap_or_default();
        let line = |line: &str| {
            let note: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(note["user"], "stw-bob", "{note}");
            let word = |key: &str| note[key].as_str().unwrap().to_owned();
            (word("job"), word("kind"))
        };
        text.lines().map(line).collect()
    }

    fn steward(&self, args: &[&str]) -> Output {
        Command::new("timeout")
            .arg("120")
            .arg(program())
            .arg("--config")
            .arg(self.path().join("steward.toml"))
            .args(args)
            .env("SLURM_CONF", Testbed::get().slurm_conf())
            .env_remove("SUDO_USER")
            .output()
            .unwrap()
    }

    /// What `cancel run --json` says of each job, and its exit code.
    fn run(&self, more: &[&str]) -> (Value, i32) {
        let done = self.steward(&[&["cancel", "run", "--json"], more].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let answer = serde_json::from_slice(&done.stdout);
        (answer.unwrap_or(Value::String(said)), done.status.code().unwrap())
    }

    /// A job with a GPU that saves its work when it is told to, and goes on.
    fn submit(&self) -> Job {
        let saved = self.path().join("saved");
        let script = format!(
            "#!/bin/bash\ntrap 'echo saved > {}-$SLURM_JOB_ID' TERM\nwhile true; do sleep 1; done\n",
            saved.display()
        );
        let options = ["-p", "gpu", "--gres=gpu:1", "--mem=50M", "--time=30"];
        let job = submit("stw-bob", &options, &script);
        job.wait_running();
        job
    }

    /// What an exporter says of the GPUs of these jobs.
    fn show(&self, jobs: &[(&Job, f64)]) {
        let cluster = Testbed::get().value("STEWARD_CLUSTER");
        let mut text = String::new();
        for (job, used) in jobs {
            let node = slurm::run("squeue", &["-h", "-j", &job.id, "-o", "%N"]);
            text += &format!(
                "nvidia_gpu_duty_cycle{{cluster=\"{cluster}\",instance=\"{node}:9445\",\
                 jobid=\"{}\",minor_number=\"0\",userid=\"1\"}} {used}\n",
                job.id
            );
        }
        self.endpoint.show(text);
    }

    /// Waits until Prometheus knows what a job uses.
    fn wait_measured(&self, job: &Job) {
        let id = &job.id;
        for query in [
            format!("nvidia_gpu_duty_cycle{{jobid=\"{id}\"}}"),
            format!("jobs_cpu_usage_seconds_total{{slurm_job=\"{id}\"}}"),
            format!("jobs_io_requested_bytes_total{{slurm_job=\"{id}\"}}"),
        ] {
            wait::until_true(&query, PATIENCE, || {
                query_at(self.prometheus.url(), &query).is_ok_and(|series| !series.is_empty())
            });
        }
    }

    /// Runs again and again until a job was told this.
    fn run_until(&self, jobs: &[&Job], kind: &str) {
        let mut last = Value::Null;
        let what = format!("{kind} of {:?}", jobs.iter().map(|job| &job.id).collect::<Vec<_>>());
        let began = std::time::Instant::now();
        while began.elapsed() < PATIENCE {
            last = self.run(&[]).0;
            let notes = self.notes();
            let has = |job: &&&Job| notes.contains(&(job.id.clone(), kind.to_owned()));
            if jobs.iter().filter(has).count() == jobs.len() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        panic!("waited in vain for {what}: {last:#}");
    }
}

/// What a run said of a job.
fn of<'a>(answer: &'a Value, job: &Job) -> &'a Value {
    let jobs = answer["jobs"].as_array().unwrap_or_else(|| panic!("{answer}"));
    jobs.iter().find(|known| known["job"] == job.id.as_str()).unwrap_or(&Value::Null)
}

fn accounted(job: &Job) -> String {
    let state = || slurm::run("sacct", &["-n", "-X", "-P", "-j", &job.id, "-o", "State"]);
    wait::until("sacct knows its end", PATIENCE, || {
        Some(state()).filter(|state| !state.is_empty() && state != "RUNNING")
    })
}

#[test]
fn an_idle_job_is_warned_then_cancelled_and_one_that_works_or_is_not_measured_is_not() {
    let _gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new();
    let (idle, later, dark) = (scene.submit(), scene.submit(), scene.submit());
    scene.show(&[(&idle, 0.0), (&later, 0.0)]);
    for job in [&idle, &later] {
        scene.wait_measured(job);
    }
    // Nobody can be warned: nothing is done.
    scene.configure("mode = \"automatic\"", "");
    let (said, code) = scene.run(&[]);
    assert!(code == 2 && said.as_str().unwrap().contains("cancel.tell"), "{said}");
    let cancel = format!("mode = \"automatic\"\ngrace = \"4s\"\n{}", scene.tell());
    scene.configure(&cancel, "");
    let dry = wait::until("the rule finds it", PATIENCE, || {
        let (dry, _) = scene.run(&["--dry-run"]);
        (of(&dry, &idle)["result"] == "would").then_some(dry)
    });
    assert_eq!(of(&dry, &idle)["what"], "warn", "{dry:#}");
    assert!(scene.notes().is_empty());

    scene.run_until(&[&idle, &later], "first-warning");
    scene.show(&[(&idle, 0.0), (&later, 60.0)]);
    let busy = format!("nvidia_gpu_duty_cycle{{jobid=\"{}\"}} > 0", later.id);
    wait::until_true("the other works", PATIENCE, || {
        query_at(scene.prometheus.url(), &busy).is_ok_and(|series| !series.is_empty())
    });
    scene.run_until(&[&idle], "cancelled");
    assert!(accounted(&idle).starts_with("CANCELLED"), "{}", accounted(&idle));
    let saved = scene.path().join(format!("saved-{}", idle.id));
    assert!(saved.exists(), "it had time to save its work");
    assert_eq!((later.state(), dark.state()), ("RUNNING".to_owned(), "RUNNING".to_owned()));
    let (after, code) = scene.run(&[]);
    assert_eq!((of(&after, &later), of(&after, &dark)), (&Value::Null, &Value::Null), "{after:#}");
    assert_eq!(code, 0, "{after:#}");
    let note = |job: &Job, kind: &str| (job.id.clone(), kind.to_owned());
    let mut notes = scene.notes();
    notes.sort();
    let mut expected =
        vec![note(&idle, "cancelled"), note(&idle, "first-warning"), note(&later, "first-warning")];
    expected.sort();
    assert_eq!(notes, expected, "each once, and none for the one without data");
    let log = scene.steward(&["audit", "--json"]);
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    let told: Vec<&str> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["subject"].as_str().unwrap().contains(&idle.id))
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    let expected = [
        "warned",
        "cancel: signal is to be sent",
        "cancel: signal sent",
        "cancel: end is to come",
        "cancelled",
        "told of the end",
    ];
    assert_eq!(told, expected, "{log:#}");
    assert!(log["entries"][0]["actor"] == "root", "{log:#}");
    for job in [&later, &dark] {
        job.cancel();
    }
}

#[test]
fn two_of_three_end_when_scancel_fails_for_one() {
    let _gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new();
    let jobs = [scene.submit(), scene.submit(), scene.submit()];
    let [one, stubborn, three] = &jobs;
    scene.show(&jobs.each_ref().map(|job| (job, 0.0)));
    for job in &jobs {
        scene.wait_measured(job);
    }
    let wrapper = scene.path().join("scancel");
    let text = format!(
        "for last; do :; done\n[ \"$last\" = {} ] && {{ echo refused >&2; exit 1; }}\n\
         exec scancel \"$@\"\n",
        stubborn.id
    );
    std::fs::write(&wrapper, text).unwrap();
    let cancel = format!("mode = \"automatic\"\nsignal = \"\"\n{}", scene.tell());
    scene.configure(&cancel, &format!("scancel = [\"sh\", {wrapper:?}]"));
    scene.run_until(&[one, stubborn, three], "first-warning");
    scene.run_until(&[one, three], "cancelled");
    for job in [one, three] {
        assert!(accounted(job).starts_with("CANCELLED"), "{}", accounted(job));
    }
    assert_eq!(stubborn.state(), "RUNNING");
    let (answer, code) = scene.run(&[]);
    let failed = of(&answer, stubborn);
    assert_eq!((code, &failed["result"]), (3, &"failed".into()), "{answer:#}");
    assert!(failed["what"].as_str().unwrap().contains("refused"), "{failed}");
    let ends = scene.notes().into_iter().filter(|(_, kind)| kind == "cancelled").count();
    assert_eq!(ends, 2, "nobody is told of an end that did not come");
    stubborn.cancel();
}

#[test]
fn the_service_does_it_by_itself_and_a_second_one_beside_it_does_not_do_it_twice() {
    let _gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new();
    let job = scene.submit();
    scene.show(&[(&job, 0.0)]);
    scene.wait_measured(&job);
    let archive = scene.path().join("archive");
    let settings = format!(
        "[archive]\ndirectory = {archive:?}\n[prometheus]\nurl = {:?}\n{RULE}\n[cancel]\n\
         enabled = true\nschedule = \"*/2 * * * * *\"\nmode = \"automatic\"\ngrace = \"2s\"\n{}\n",
        scene.prometheus.url(),
        scene.tell()
    );
    let _service = Service::start(scene.path(), "cancel", &settings);
    // By hand beside it, on the same store.
    let cancel = format!("mode = \"automatic\"\ngrace = \"2s\"\n{}", scene.tell());
    scene.configure(&cancel, "");
    scene.run_until(&[&job], "cancelled");
    assert!(accounted(&job).starts_with("CANCELLED"), "{}", accounted(&job));
    let kinds: Vec<String> = scene.notes().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["first-warning", "cancelled"], "each once");
}

/// A real mail server in place of a program, and a person who decides.
#[test]
fn an_approved_job_ends_and_its_owner_has_a_mail_of_the_warning_and_one_of_the_end() {
    let _gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    let (scene, smtp) = (Scene::new(), Smtp::start());
    let job = scene.submit();
    scene.show(&[(&job, 0.0)]);
    scene.wait_measured(&job);
    let mail = format!(
        "[mail]\nfrom = \"steward@hpc.example\"\n[mail.smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
         [mail.address]\ndomain = \"hpc.example\"\n[notices]\nholidays = {:?}\n",
        smtp.port(),
        scene.path().join("holidays")
    );
    // A day off: the owner of a job that will end is warned all the same.
    let today = slurm::run("date", &["-u", "+%F"]);
    std::fs::write(scene.path().join("holidays"), format!("{today}\n")).unwrap();
    scene.configure(&format!("mode = \"approval\"\nsignal = \"\"\n{mail}"), "");
    let list = || -> Value {
        let list = scene.steward(&["cancel", "list", "--json"]);
        serde_json::from_slice(&list.stdout).unwrap_or_else(|error| panic!("{error}"))
    };
    let proposed = wait::until("it is proposed", PATIENCE, || {
        scene.run(&[]);
        let list = list();
        let jobs = list["jobs"].as_array().unwrap_or_else(|| panic!("{list}"));
        let own = jobs.iter().find(|one| {
            one["job"] == job.id.as_str() && one["state"].as_str().unwrap().contains("approv")
        })?;
        Some(own["id"].as_str().unwrap().to_owned())
    });
    assert_eq!(job.state(), "RUNNING", "nobody has approved yet");
    assert_eq!(smtp.recipients(), ["stw-bob@hpc.example"]);
    let done = scene.steward(&["cancel", "approve", &proposed]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    wait::until_true("both mails are there", PATIENCE, || {
        scene.run(&[]);
        smtp.recipients().len() == 2
    });
    assert!(accounted(&job).starts_with("CANCELLED"), "{}", accounted(&job));
    for mail in smtp.messages() {
        let parsed = mail.parsed();
        let text = parsed["parts"][1]["text"].as_str().unwrap();
        assert!(text.contains(&job.id), "{text}");
        println!("{}\n{text}", parsed["headers"]["subject"][0]);
    }
    scene.run(&[]);
    assert_eq!(smtp.recipients().len(), 2, "each once");
}
