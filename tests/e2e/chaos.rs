//! A minute of jobs, steps and processes that come and go a hundred times a second.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steward_tests::agent::Served;
use steward_tests::cgroups::JobGroup;
use steward_tests::exposition::Exposition;
use steward_tests::shared;
use steward_tests::wait;

const LENGTH: Duration = Duration::from_secs(60);
const EVENTS_A_SECOND: u32 = 100;
const ENOUGH: u32 = 60 * EVENTS_A_SECOND;
/// A machine that is busy with other tests needs longer for as many events.
const LONGEST: Duration = Duration::from_secs(180);
const LINGER: f64 = 2.0;
/// Fewer numbers than jobs, so that they are used again.
const IDS: std::ops::Range<u32> = 930_000..930_030;

/// What is true of a job number, as the one who makes the jobs knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Truth {
    /// Counts up with each run: only then may a counter begin anew.
    run: u32,
    ended: bool,
}

type Truths = Mutex<BTreeMap<u32, Truth>>;

/// Makes and ends things.
struct Chaos<'a> {
    node: &'a str,
    truths: &'a Truths,
    /// The steps of each job; each has a shell that starts and kills the others.
    jobs: BTreeMap<u32, Vec<JobGroup>>,
    hostile: String,
    random: u64,
}

impl Chaos<'_> {
    /// A number below `below`; the same ones in every test run.
    fn random(&mut self, below: usize) -> usize {
        // Knuth's MMIX.
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    fn truth(&self, id: u32, change: impl FnOnce(&mut Truth)) -> u32 {
        let mut truths = self.truths.lock().unwrap();
        let truth = truths.entry(id).or_default();
        change(truth);
        truth.run
    }

    /// A step with its shell, which does what it is told line by line.
    fn step(&self, id: u32, step: &str, run: u32) -> JobGroup {
        let mut group = JobGroup::make_step(self.node, 0, id, step);
        let mut shell = Command::new("bash");
        // The others do not know whose they are: they may move, and a shell of the job is enough.
        shell.args([
            "-c",
            "unset ${!SLURM_*}; while read -r line; do eval \"$line\"; done 2>/dev/null",
        ]);
        shell.env("SLURM_JOB_ID", id.to_string()).env("SLURM_RESTART_COUNT", run.to_string());
        group.add(shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
        group
    }

    /// A job that is not there begins: another run of its number.
    fn begin(&mut self, id: u32) {
        let run = self.truth(id, |truth| *truth = Truth { run: truth.run + 1, ended: false });
        let group = self.step(id, "step_batch", run);
        self.jobs.insert(id, vec![group]);
    }

    fn end(&mut self, id: u32) {
        let mut steps = self.jobs.remove(&id).unwrap();
        while let Some(step) = steps.pop() {
            step.remove(steps.is_empty());
        }
    }

    fn tell(&mut self, id: u32, line: &str) {
        let step = self.random(self.jobs[&id].len());
        let shell = self.jobs.get_mut(&id).unwrap()[step].first();
        writeln!(shell.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// One thing happens.
    fn event(&mut self) {
        let live: Vec<u32> = self.jobs.keys().copied().collect();
        let free: Vec<u32> = IDS.filter(|id| !self.jobs.contains_key(id)).collect();
        if live.len() < 5 {
            let id = free[self.random(free.len())];
            return self.begin(id);
        }
        let id = live[self.random(live.len())];
        match self.random(100) {
            0..40 => self.tell(id, "sleep 60 & p+=($!)"),
            40..72 => self.tell(id, "kill ${p[0]}; p=(\"${p[@]:1}\")"),
            // One that the shell waits for, and one that nobody of the job does.
            72..78 => self.tell(id, "(head -c 300000 /dev/zero; sleep 0.4) >/dev/null &"),
            78..84 => self.tell(id, "((head -c 300000 /dev/zero; sleep 0.4) >/dev/null &)"),
            84..88 => {
                let line = format!("{} 60 & p+=($!)", self.hostile);
                self.tell(id, &line);
            }
            88..90 => {
                // A process moves to another job; the shell itself stays.
                let to = live[self.random(live.len())];
                let from = &mut self.jobs.get_mut(&id).unwrap()[0];
                let shell = u64::from(from.first().id());
                if let Some(pid) = from.pids().into_iter().find(|pid| *pid != shell) {
                    // It may have ended meanwhile.
                    let _gone = self.jobs[&to][0].adopt(pid);
                }
            }
            90..91 if live.len() < 12 => {
                let id = free[self.random(free.len())];
                self.begin(id);
            }
            90..92 => {
                self.end(id);
                self.truth(id, |truth| truth.ended = true);
            }
            92..96 => {
                // The directory is made anew, its counts are zero, and the run goes on.
                self.end(id);
                let run = self.truth(id, |_| {});
                let group = self.step(id, "step_batch", run);
                self.jobs.insert(id, vec![group]);
            }
            96..97 => {
                self.end(id);
                self.begin(id);
            }
            97..99 if self.jobs[&id].len() < 3 => {
                let (run, number) = (self.truth(id, |_| {}), self.random(1000));
                let group = self.step(id, &format!("step_{number}"), run);
                self.jobs.get_mut(&id).unwrap().push(group);
            }
            _ => {
                if self.jobs[&id].len() > 1 {
                    let step = self.jobs.get_mut(&id).unwrap().pop().unwrap();
                    step.remove(false);
                }
            }
        }
    }
}

/// How often the counters of a job may begin anew: once for each new run, and soon after it began.
#[derive(Clone, Copy, Debug, Default)]
struct Renewal {
    run: u32,
    times: u32,
    /// The last scan in which they may.
    until: f64,
}

/// Looks at every exposition and remembers what the next one is judged by.
#[derive(Default)]
struct Judge {
    /// Every counter's last value, by its job, if it has one, and by its name and labels.
    counters: BTreeMap<Option<u32>, BTreeMap<String, f64>>,
    renewals: BTreeMap<u32, Renewal>,
    /// The last scan in which an ended job may be seen.
    until: BTreeMap<u32, f64>,
    looks: u64,
    compared: u64,
    renewed: u64,
    late: f64,
}

impl Judge {
    fn look(&mut self, agent: &Served, truths: &Truths) {
        let before = truths.lock().unwrap().clone();
        let Some(metrics) = agent.metrics() else { return };
        let after = truths.lock().unwrap().clone();
        self.looks += 1;
        let scan = scans(&metrics);
        let mut seen: BTreeMap<Option<u32>, BTreeMap<String, f64>> = BTreeMap::new();
        for sample in &metrics.samples {
            let job = sample.labels.get("slurm_job").map(|id| id.parse().unwrap());
            let counters = seen.entry(job).or_default();
            if sample.name.ends_with("_total") {
                counters.insert(format!("{}{:?}", sample.name, sample.labels), sample.value);
            }
        }
        for (job, truth) in &after {
            let renewal = self.renewals.entry(*job).or_default();
            if renewal.run != truth.run {
                // What a scan shows now may be a run before, for as long as that lingers.
                let times = if scan > renewal.until { 0 } else { renewal.times };
                *renewal = Renewal {
                    run: truth.run,
                    times: times + (truth.run - renewal.run),
                    until: scan + LINGER + 3.0,
                };
            }
            if !truth.ended || before.get(job) != Some(truth) {
                self.until.remove(job);
                continue;
            }
            // The scan under way when this was asked may have met the job.
            let until = *self.until.entry(*job).or_insert(scan + 1.0 + LINGER);
            if seen.contains_key(&Some(*job)) {
                assert!(scan <= until, "job {job} ended, and is there in scan {scan}");
                self.late = self.late.max(scan - (until - 1.0 - LINGER));
            }
        }
        self.counters.retain(|job, _| seen.contains_key(job));
        for (job, now) in seen {
            let kept = self.counters.entry(job).or_default();
            let back = now.iter().find(|(key, value)| kept.get(*key).is_some_and(|v| v > *value));
            if let Some((key, value)) = back {
                let renewal = job.and_then(|job| self.renewals.get_mut(&job));
                let why = format!("from {} to {value} in scan {scan}, {renewal:?}", kept[key]);
                let renewal = renewal.filter(|one| one.times > 0 && scan <= one.until);
                renewal.unwrap_or_else(|| panic!("{key} went {why}")).times -= 1;
                kept.clear();
                self.renewed += 1;
            }
            self.compared += u64::try_from(now.len()).unwrap();
            // One that is missing for a moment must not come back lower.
            kept.extend(now);
        }
    }
}

fn scans(metrics: &Exposition) -> f64 {
    metrics.all("steward_agent_scans_total", &[])[0].value
}

#[test]
fn a_minute_of_chaos_breaks_nothing_and_no_counter_goes_back() {
    let dir = shared::directory();
    // The kernel takes a process's name from the file's: quotes, braces, a newline, no UTF-8.
    let name = dir.path().join(OsStr::from_bytes(b"a\"}\n) R 1 (\xff"));
    std::os::unix::fs::symlink("/bin/sleep", &name).unwrap();
    let hostile = format!("{}/a*", dir.path().display());
    // One of its own: another clone may run this too.
    let node = &format!("stwchaos{}", std::process::id());
    // Without the leave to scan less often when it costs much.
    let config = dir.path().join("agent.toml");
    std::fs::write(
        &config,
        "interval = \"300ms\"\nlinger = 2\nlog = \"warn\"\n[quiet]\nshare = 1.0\n",
    )
    .unwrap();
    let mut agent = Served::start(&["--node", node, "--config", config.to_str().unwrap()]);
    // So that the node is there from the first to the last scan; it takes all with it at the end.
    let _keeper = JobGroup::make(node, 0, 929_999);
    wait::until("the first scan", Duration::from_secs(60), || agent.metrics());

    let truths = Truths::default();
    let over = AtomicBool::new(false);
    let mut judge = Judge::default();
    let events = thread::scope(|scope| {
        let events = scope.spawn(|| {
            let jobs = BTreeMap::new();
            let mut chaos = Chaos { node, truths: &truths, jobs, hostile, random: 1 };
            let begin = Instant::now();
            let mut events = 0_u32;
            while begin.elapsed() < LENGTH || events < ENOUGH {
                assert!(begin.elapsed() < LONGEST, "only {events} events in {LONGEST:?}");
                chaos.event();
                events += 1;
                let next = begin + Duration::from_secs(1) / EVENTS_A_SECOND * events;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            for id in chaos.jobs.keys().copied().collect::<Vec<_>>() {
                chaos.end(id);
                chaos.truth(id, |truth| truth.ended = true);
            }
            over.store(true, Ordering::Relaxed);
            events
        });
        while !over.load(Ordering::Relaxed) {
            judge.look(&agent, &truths);
            assert!(!events.is_finished() || over.load(Ordering::Relaxed), "no events any more");
            thread::sleep(Duration::from_millis(100));
        }
        events.join().unwrap()
    });
    let metrics = wait::until("the last job is gone", Duration::from_secs(30), || {
        judge.look(&agent, &truths);
        let metrics = agent.metrics()?;
        metrics.all("jobs_processes", &[]).is_empty().then_some(metrics)
    });

    let runs: u32 = truths.lock().unwrap().values().map(|truth| truth.run).sum();
    println!(
        "{events} events, {runs} runs of jobs, {} scans; {} looks, {} values of counters compared, \
         {} new beginnings; an ended job was there for {} scans at most",
        scans(&metrics),
        judge.looks,
        judge.compared,
        judge.renewed,
        judge.late
    );
    assert!(agent.process.is_running());
    let log = agent.log();
    assert!(!log.contains("panicked"), "{log}");
    // All that may go wrong is that something is gone; or, on a machine with far more to do than it
    // has cores for, that a process got no CPU while it held the lock of its own memory, and a
    // reader that waited for it was left behind. None may stay behind.
    let starved = 3.0;
    for error in metrics.all("steward_agent_errors_total", &[]) {
        let fine = match error.labels["reason"].as_str() {
            "vanished" => true,
            "stuck" => error.value <= starved,
            _ => error.value == 0.0,
        };
        assert!(fine, "{error:?}\n{log}");
    }
    assert_eq!(metrics.all("steward_agent_stuck_readers", &[])[0].value, 0.0, "{log}");
    // On a full machine a scan waits for its turn, and the next falls on a later multiple.
    assert!(scans(&metrics) > 30.0, "a good part of the scans that a minute has room for");
}
