//! Bad input and faults: a clear line that names the file, and nothing else breaks.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use nix::sys::signal::Signal;
use steward_tests::agent::{Process, RunningAgent, command, config, run};
use steward_tests::cgroups::JobGroup;
use steward_tests::exposition::Exposition;
use steward_tests::service::copy_program;
use steward_tests::shared;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(60);

/// Asserts a failure with one line on standard error that has all `parts`.
fn fails(output: &Output, code: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "not one line: {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

fn file(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.toml");
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (dir, path)
}

#[test]
fn a_missing_cgroup_root_is_named_and_every_command_says_so() {
    let (_dir, path) = file("[paths]\ncgroup = \"/no/such/cgroup\"\n");
    for verb in ["run", "once"] {
        let output = run(&[verb, "--config", &path, "--listen", "127.0.0.1:0"]);
        fails(&output, 1, &["steward-agent: ", "/no/such/cgroup", "paths.cgroup"]);
    }
    let output = run(&["check", "--config", &path]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("TROUBLE") && text.contains("/no/such/cgroup"), "{text}");
}

#[test]
fn a_root_without_a_hierarchy_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let (_dir, path) = file(&format!("[paths]\ncgroup = {:?}\n", empty.path()));
    fails(&run(&["once", "--config", &path]), 1, &[empty.path().to_str().unwrap(), "controller"]);
}

#[test]
fn a_wrong_configuration_is_refused_with_file_line_and_column() {
    for (text, parts) in [
        ("interval = \"15s\"\nlingre = 1\n", vec![":2:1: ", "lingre", "linger"]),
        ("linger = \"two\"\n", vec![":1:10: ", "string", "u32"]),
        ("[push]\ngateway = 9091\n", vec![":2:11: "]),
        ("[exclude\n", vec![":1:"]),
        ("[push]\ngateway = \"ftp://x\"\n", vec!["push.gateway", "http"]),
    ] {
        let (_dir, path) = file(text);
        let mut parts = parts;
        if !text.contains("ftp") {
            parts.push(&path);
        }
        fails(&run(&["run", "--config", &path]), 2, &parts);
    }
    fails(&run(&["run", "--config", "/no/such/file"]), 2, &["/no/such/file"]);
}

#[test]
fn a_taken_address_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fails(&run(&["run", "--listen", &address]), 1, &["scrape.listen", &address]);
}

#[test]
fn an_unknown_cluster_withholds_everything_and_says_what_to_do() {
    let (_dir, path) = file("[paths]\nslurm_conf = \"/dev/null\"\n");
    let idle = tempfile::tempdir().unwrap();
    fs::create_dir_all(idle.path().join("cpuacct")).unwrap();
    let (_dir2, path2) =
        file(&format!("[paths]\nslurm_conf = \"/dev/null\"\ncgroup = {:?}\n", idle.path()));
    let output = run(&["once", "--config", &path2, "--window", "100ms"]);
    fails(&output, 1, &["cluster", "--cluster"]);
    assert!(output.stdout.is_empty());
    let known = run(&["once", "--config", &path, "--window", "100ms", "--cluster", "c1"]);
    assert!(known.status.success(), "{known:?}");
    let text = String::from_utf8_lossy(&known.stdout);
    let metrics = Exposition::parse(&text);
    assert!(!metrics.samples.is_empty());
    assert!(metrics.samples.iter().all(|sample| sample.labels["cluster"] == "c1"));
}

#[test]
fn without_privilege_what_cannot_be_read_is_absent_counted_and_named() {
    let mut group = JobGroup::make("stwpriv", 0, 900_020);
    group.add(Command::new("sleep").arg("600"));
    // A copy that nobody may run too: the build directory may be closed to others.
    let dir = shared::directory();
    let copy = dir.path().join("steward-agent");
    copy_program(Path::new(command(&[]).get_program()), &copy);
    let agent = |args: &[&str]| {
        Command::new("runuser")
            .args(["-u", "nobody", "--"])
            .arg(&copy)
            .args(args)
            .args(["--cluster", "c1", "--node", "stwpriv"])
            .output()
            .unwrap()
    };
    let output = agent(&["once", "--window", "100ms"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("/io: permission denied"), "{complaint}");
    let metrics = Exposition::parse(&String::from_utf8_lossy(&output.stdout));
    // The cgroup answers everyone; other users' I/O and files do not, and are not 0.
    assert!(metrics.job("jobs_cpu_time_total", "900020").is_some());
    assert_eq!(metrics.job("jobs_spawned_processes", "900020"), Some(1.0));
    for absent in ["jobs_read_mb", "jobs_write_count", "jobs_opened_files", "jobs_uses_scratch"] {
        assert_eq!(metrics.job(absent, "900020"), None, "{absent}");
    }
    let denied = metrics.all("steward_agent_errors_total", &[("reason", "permission")]);
    assert!(denied.iter().all(|sample| sample.value > 0.0) && !denied.is_empty());

    let output = agent(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("CAP_SYS_PTRACE"));
}

#[test]
fn a_hostile_process_name_is_one_label_and_breaks_no_number() {
    let agent = RunningAgent::start(config());
    let mut group = JobGroup::make("stwname", 0, 900_021);
    // A comm with a quote, a brace, a newline, parentheses and bytes that are not UTF-8.
    let rename = "import ctypes, time\n\
                  ctypes.CDLL(None).prctl(15, b'a\"}\\n) R 1 (\\xff', 0, 0, 0)\n\
                  time.sleep(600)\n";
    group.add(Command::new("/usr/bin/python3").args(["-c", rename]));
    let sample = agent.wait_for("the renamed process", PATIENCE, |metrics| {
        let found = metrics.all("jobs_thread_count", &[("slurm_job", "900021")]);
        found.into_iter().find(|one| one.labels["proc_name"].starts_with("a\"")).cloned()
    });
    assert_eq!(sample.labels["proc_name"], "a\"}\n) R 1 (\u{fffd}");
    assert_eq!(sample.value, 1.0);
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    let program = command(&["metrics"]);
    let line = format!("{} metrics | head -1", program.get_program().display());
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &line]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// From another pid namespace a cgroup's processes have no numbers: that is trouble, not an empty
/// node.
#[test]
fn an_agent_outside_the_hosts_pid_namespace_says_so() {
    let mut group = JobGroup::make("stwns", 0, 900_022);
    group.add(Command::new("sleep").arg("600"));
    let program = command(&["check", "--node", "stwns", "--listen", "127.0.0.1:0"]);
    let output = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--mount-proc"])
        .arg(program.get_program())
        .args(program.get_args())
        .env("SLURM_CONF", steward_tests::testbed::Testbed::get().slurm_conf())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("another pid namespace"), "{text}");
}

/// The reader of one job hangs: the others are read on, nobody reads that one a second time, and
/// it is there again as soon as its reader comes back.
#[test]
fn a_job_whose_reader_hangs_does_not_delay_the_others() {
    let recorded = steward_tests::fixture::Fixture::open("v2-slurm-22.05");
    let [stuck, well] = [&recorded.jobs[0], &recorded.jobs[1]].map(|job| job.id.to_string());
    let dir = recorded.cgroup().join(format!("system.slice/n1_slurmstepd.scope/job_{stuck}"));
    let file = dir.join("cpu.stat");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let mut settings = recorded.config();
    settings.interval = steward_tests::agent::Span(Duration::from_millis(300));
    settings.scrape.listen = ([127, 0, 0, 1], 0).into();
    settings.paths.state = std::path::PathBuf::new();
    settings.linger = 0;
    let agent = RunningAgent::start(settings);
    agent.wait_scans(3);
    let metrics = agent.metrics();
    assert!(metrics.job("jobs_processes", &well).is_some(), "the other job");
    assert!(metrics.of_job(&stuck).is_empty(), "nothing is made up of the one that hangs");
    let own = |name: &str| agent.metrics().all(name, &[])[0].value;
    assert_eq!(own("steward_agent_stuck_readers"), 1.0);
    let errors = agent.metrics().value("steward_agent_errors_total", &[("reason", "stuck")]);
    assert_eq!(errors, Some(1.0), "one reader, once");
    // The first scan waited for it, the later ones did not.
    assert!(own("steward_agent_last_scan_duration_seconds") < 0.5);

    // The reader comes back, the file is a file again.
    let pipe = wait::until("the reader at its end", PATIENCE, || {
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(nix::libc::O_NONBLOCK);
        options.open(&file).ok()
    });
    fs::remove_file(&file).unwrap();
    fs::write(&file, &text).unwrap();
    drop(pipe);
    agent.wait_for("the job again", PATIENCE, |metrics| metrics.job("jobs_processes", &stuck));
    wait::until_true("no reader hangs", PATIENCE, || own("steward_agent_stuck_readers") == 0.0);
}

/// Another scheduler's jobs, told by a pattern.
#[test]
fn directories_of_another_scheduler_are_jobs_by_a_pattern() {
    let mut group = JobGroup::make("stwother", 1002, 900_023);
    group.add(Command::new("sleep").arg("600"));
    let mut settings = steward_tests::agent::config();
    settings.node = "other1".parse().ok();
    let pattern = if steward_tests::testbed::Testbed::get().is_v1() {
        "slurm_stwother/uid_{uid}/job_{job}"
    } else {
        "system.slice/stwother_slurmstepd.scope/job_{job}"
    };
    settings.scheduler.pattern = Some(pattern.to_owned());
    let agent = RunningAgent::start(settings);
    let metrics = agent.wait_for("the job", PATIENCE, |metrics| {
        metrics.job("jobs_processes", "900023").map(|_| metrics.clone())
    });
    assert_eq!(metrics.job("jobs_processes", "900023"), Some(1.0));
    let info = metrics.all("jobs_info", &[("slurm_job", "900023"), ("instance", "other1")]);
    assert_eq!(info.len(), 1);
    assert_eq!(metrics.all("jobs_info", &[]).len(), 1, "and no other job");
    drop(group);
    agent.wait_for("the job is gone", PATIENCE, |metrics| {
        metrics.of_job("900023").is_empty().then_some(())
    });
}

/// A read that never returns: the agent cannot be kept from ending by it.
#[test]
fn a_file_that_never_answers_does_not_keep_the_agent_from_ending() {
    let recorded = steward_tests::fixture::Fixture::open("v2-slurm-22.05");
    let job = recorded.cgroup().join("system.slice/n1_slurmstepd.scope/job_1");
    fs::remove_file(job.join("cpu.stat")).unwrap();
    // A pipe that nobody writes to keeps its reader for ever.
    nix::unistd::mkfifo(&job.join("cpu.stat"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let (_dir, path) = file(&format!(
        "cluster = \"c1\"\n[paths]\ncgroup = {:?}\nproc = {:?}\n",
        recorded.cgroup(),
        recorded.proc()
    ));
    let mut agent = Process::start(&[
        "run",
        "--config",
        &path,
        "--listen",
        "127.0.0.1:0",
        "--interval",
        "200ms",
    ]);
    // This end opens only once the agent waits at the other, and never writes.
    let _silent = wait::until("the agent hangs in its scan", PATIENCE, || {
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(nix::libc::O_NONBLOCK);
        options.open(job.join("cpu.stat")).ok()
    });
    assert_eq!(agent.signal(Signal::SIGTERM), Some(0));
}
