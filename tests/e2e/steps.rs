//! Steps that come and go, with an agent that is killed on the way: sums against accounting and
//! against what the job's processes say of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use steward_common::slurm::duration;
use steward_tests::agent::Served;
use steward_tests::exposition::Exposition;
use steward_tests::shared;
use steward_tests::slurm::{Job, submit};
use steward_tests::wait;

/// A step: a second of CPU, a child that reads 2 MiB and writes 1 MiB, and the same itself. With an
/// odd number nobody waits for the child, so that the kernel adds its I/O to no process of the job.
/// Each says what its own I/O was and stays until scans have seen it, so that nothing is lost.
const STEP: &str = r#"
import os, sys, time
dir, number = sys.argv[1], int(sys.argv[2])
def work(name):
    with open("/dev/zero", "rb", 0) as zero: data = zero.read(1 << 20) + zero.read(1 << 20)
    with open(f"{dir}/data.{name}", "wb", 0) as out: out.write(data[:1 << 20])
def tell(name):
    text = open("/proc/self/io").read()
    open(f"{dir}/io.{name}.new", "w").write(text)
    os.rename(f"{dir}/io.{name}.new", f"{dir}/io.{name}")
    while not os.path.exists(f"{dir}/seen.{name}"): time.sleep(0.1)
child = os.fork()
if child == 0:
    work(f"{number}.child")
    if number % 2: tell(f"{number}.child")
    os._exit(0)
if number % 2:
    while not os.path.exists(f"{dir}/seen.{number}.child"): time.sleep(0.1)
else: os.waitpid(child, 0)
work(number)
while time.process_time() < 1: pass
tell(number)
"#;

fn script(dir: &Path, steps: u32) -> String {
    let dir = dir.display();
    format!(
        "#!/bin/bash\n\
         for n in $(seq {steps}); do srun -n1 /usr/bin/python3 {dir}/step.py {dir} $n; done\n\
         cat /proc/$$/io > {dir}/io.batch; cat {dir}/seen.batch\n"
    )
}

/// What the job knows of one count: its shell with all that it waited for, the steps, and the
/// children that nobody waited for.
fn own(dir: &Path, key: &str) -> u64 {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("io."))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_start_matches(':').trim().parse::<u64>().unwrap()
        })
        .sum()
}

/// A field of each step's row in accounting, once all have ended.
fn accounted(job: &Job, count: u32, field: &str) -> BTreeMap<String, String> {
    wait::until("accounting has every step", Duration::from_secs(60), || {
        let rows = job.sacct(&format!("JobID,State,{field}"));
        let steps: Vec<Vec<&str>> = rows
            .iter()
            .map(|row| row.split('|').collect::<Vec<_>>())
            .filter(|row| row[0].contains('.'))
            .collect();
        // The steps, the script and Slurm's own.
        let all = steps.len() == count as usize + 2 && steps.iter().all(|r| r[1] == "COMPLETED");
        all.then(|| steps.iter().map(|r| (r[0].to_owned(), r[2].to_owned())).collect())
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Sums {
    cpu: f64,
    read: f64,
    written: f64,
}

fn sums(metrics: &Exposition, job: &str) -> Option<Sums> {
    let bytes = |direction| {
        let labels = [("slurm_job", job), ("direction", direction)];
        metrics.value("jobs_io_requested_bytes_total", &labels)
    };
    Some(Sums {
        cpu: metrics.job("jobs_cpu_time_total", job)?,
        read: bytes("read")?,
        written: bytes("write")?,
    })
}

/// The names under which the processes that are to be seen have told what they did.
fn told(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| Some(name.to_str()?.strip_prefix("io.")?.to_owned()));
    names.filter(|name| !name.ends_with(".new")).collect()
}

/// A job of so many steps; the agent is killed when step `kill` has done all it does and has not
/// ended yet, and another takes over.
fn add_up(steps: u32, kill: u32) {
    let dir = shared::directory();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("step.py"), STEP).unwrap();
    // The script waits here at its end, in a process that does next to nothing.
    nix::unistd::mkfifo(&file("seen.batch"), nix::sys::stat::Mode::from_bits_truncate(0o644))
        .unwrap();
    let state = file("state.json");
    let start = || {
        let state = state.to_str().unwrap();
        Served::start(&["--node", "n1", "--interval", "500ms", "--linger", "0", "--state", state])
    };
    let mut agent = start();
    let job = submit("stw-carol", &["-n1", "-w", "n1"], &script(dir.path(), steps));
    let mut kill = Some(kill.to_string());
    let mut waiting: BTreeMap<String, f64> = BTreeMap::new();
    let mut last = Sums::default();
    wait::until_true("the steps are over", Duration::from_secs(400), || {
        let Some(metrics) = agent.metrics() else { return false };
        let Some(now) = sums(&metrics, &job.id) else {
            return last != Sums::default() && metrics.of_job(&job.id).is_empty();
        };
        let grew = now.cpu >= last.cpu && now.read >= last.read && now.written >= last.written;
        assert!(grew, "back from {last:?} to {now:?}");
        last = now;
        let scan = metrics.all("steward_agent_scans_total", &[])[0].value;
        for name in told(dir.path()) {
            let from = *waiting.entry(name.clone()).or_insert(scan);
            let seen = file(&format!("seen.{name}"));
            // The scan under way when it was told may have read it before.
            if scan < from + 2.0 || (seen.exists() && name != "batch") {
                continue;
            }
            if kill.as_ref() == Some(&name) {
                kill = None;
                assert_eq!(agent.process.signal(Signal::SIGKILL), None);
                agent = start();
                // It counts its scans anew.
                waiting.clear();
                break;
            }
            // Without a reader the pipe cannot be opened yet.
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).custom_flags(nix::libc::O_NONBLOCK);
            let _not_yet = options.open(&seen);
        }
        false
    });
    assert_eq!(kill, None, "the agent was not killed");
    job.wait_ended(Duration::from_secs(120));

    let cpu: f64 = accounted(&job, steps, "TotalCPU")
        .values()
        .map(|text| duration::elapsed(text).unwrap().unwrap().as_secs_f64())
        .sum();
    let (read, written) = (own(dir.path(), "rchar"), own(dir.path(), "wchar"));
    println!("job {}: agent {last:?}; sacct {cpu:.3} s; job read {read}, wrote {written}", job.id);
    for field in ["MaxDiskRead", "AveDiskRead", "TRESUsageInTot", "TRESUsageOutTot"] {
        println!("  sacct {field}: {:?}", accounted(&job, steps, field));
    }
    assert!(cpu > f64::from(steps), "sacct has {cpu} s");
    assert!((last.cpu - cpu).abs() < (cpu * 0.02).max(0.3), "agent {last:?}, sacct {cpu}");
    // Not seen by one side: what a process did after it told, and the programs that the shell
    // began after that.
    for (what, agent, own) in [("read", last.read, read), ("written", last.written, written)] {
        let own = own as f64;
        assert!((agent - own).abs() < 64.0 * 1024.0, "{what}: agent {agent}, job {own}");
    }
}

#[test]
fn steps_that_come_and_go_add_up_over_a_killed_agent() {
    add_up(10, 4);
}

/// A zombie is in no cgroup: the second agent cannot find what the first one knew.
#[test]
fn what_a_zombie_did_is_not_lost_with_a_killed_agent() {
    add_up(2, 1);
}
