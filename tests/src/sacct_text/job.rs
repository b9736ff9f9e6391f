//! A job as it might have been: drawn from distributions like those of a middling centre.

use super::random::Random;

/// Users; the first of them submit most.
const USERS: u64 = 400;
/// Accounts.
const ACCOUNTS: u64 = 60;
/// Nodes.
const NODES: u64 = 800;
const PARTITIONS: [&str; 17] = [
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "cpu",
    "bigmem",
    "gpu",
    "gpu",
    "gpu",
    "short",
    "short",
    "interactive",
];
/// A `%` becomes a number.
const NAMES: [&str; 15] = [
    "train_model",
    "python3",
    "snakejob.align.%",
    "wrap",
    "bash",
    "gromacs_md",
    "vasp_std",
    "lammps-npt",
    "fit_%",
    "nf-core_rnaseq_%",
    "R_batch",
    "interactive",
    "sys/dashboard/jupyter",
    "blast+_%",
    "orca opt",
];
const GPU_TYPES: [&str; 4] = ["a100", "v100", "h100", "l40s"];
const DAY: u64 = 86_400;
const MINUTE: u64 = 60;

/// How a job's id reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// `100`
    Plain,
    /// `100_7`
    Task { array: u64, index: u64 },
    /// `100_[1-500%20]`: an array that has not begun.
    Waiting,
    /// `100+1`
    Part { first: u64, offset: u64 },
}

/// How a run ended, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Completed,
    Failed,
    Cancelled,
    Timeout,
    OutOfMemory,
    NodeFail,
    Preempted,
    Requeued,
    Running,
    Pending,
}

impl State {
    /// As sacct prints it, without who cancelled.
    pub fn name(self) -> &'static str {
        match self {
            State::Completed => "COMPLETED",
            State::Failed => "FAILED",
            State::Cancelled => "CANCELLED",
            State::Timeout => "TIMEOUT",
            State::OutOfMemory => "OUT_OF_MEMORY",
            State::NodeFail => "NODE_FAIL",
            State::Preempted => "PREEMPTED",
            State::Requeued => "REQUEUED",
            State::Running => "RUNNING",
            State::Pending => "PENDING",
        }
    }
}

/// GPUs of a type.
#[derive(Debug, Clone, Copy)]
pub struct Gpus {
    pub model: &'static str,
    pub count: u64,
}

/// A step; times and CPUs are its job's.
#[derive(Debug, Clone)]
pub struct Step {
    pub kind: Kind,
    pub tasks: u64,
    /// CPU milliseconds of all its tasks.
    pub cpu: u64,
    /// Bytes of its greediest task, and of all its tasks together.
    pub memory: (u64, u64),
    /// Bytes read and written.
    pub disk: (u64, u64),
    pub pages: u64,
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Batch,
    Extern,
    /// An `srun` with its number.
    Srun(u64),
    /// An `srun --pty` without a batch script.
    Interactive,
}

/// One run of a job.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: u64,
    pub label: Label,
    pub user: u64,
    pub account: u64,
    pub partition: &'static str,
    pub name: String,
    pub state: State,
    pub exit: (u64, u64),
    pub submit: u64,
    pub start: Option<u64>,
    pub end: Option<u64>,
    /// Seconds it ran.
    pub elapsed: u64,
    /// Minutes.
    pub limit: u64,
    pub cpus: u64,
    pub nodes: u64,
    pub first_node: u64,
    /// MiB of the whole job.
    pub memory: u64,
    pub gpus: Option<Gpus>,
    pub constraint: &'static str,
    pub reservation: &'static str,
    pub backfilled: bool,
    pub steps: Vec<Step>,
}

impl Job {
    /// From when it could run: nobody here is held or waits for another.
    pub fn eligible(&self) -> u64 {
        self.submit
    }

    /// The job as it stood at this time; `None` if it was not there yet.
    pub fn seen_at(mut self, at: u64) -> Option<Job> {
        if self.submit >= at {
            return None;
        }
        if self.end.is_none_or(|end| end >= at) {
            self.end = None;
            self.exit = (0, 0);
            self.start = self.start.filter(|start| *start < at);
            (self.state, self.elapsed) = match self.start {
                Some(start) => (State::Running, at - start),
                None => (State::Pending, 0),
            };
            if self.start.is_none() {
                self.steps.clear();
            }
        }
        Some(self)
    }

    /// CPU milliseconds of all steps.
    pub fn cpu(&self) -> u64 {
        self.steps.iter().map(|step| step.cpu).sum()
    }
}

/// Draws jobs in the order of their submission.
#[derive(Debug)]
pub struct Jobs {
    random: Random,
    /// Upper bounds of the users' shares.
    shares: Vec<f64>,
    now: u64,
    id: u64,
    /// The array, or the parts of a job, that the next jobs belong to.
    series: Series,
}

#[derive(Debug, Clone, Copy)]
enum Series {
    None,
    Array { array: u64, next: u64, left: u64 },
    Parts { first: u64, next: u64, left: u64 },
}

impl Jobs {
    /// `now` is the time after which nothing has happened yet.
    pub fn new(seed: u64, now: u64) -> Jobs {
        let mut sum = 0.0;
        let shares = (1..=USERS)
            .map(|rank| {
                sum += 1.0 / (rank as f64).powf(0.9);
                sum
            })
            .collect();
        Jobs { random: Random::new(seed), shares, now, id: 4_000_000, series: Series::None }
    }

    /// The runs of the next job, submitted at `submit`: more than one if it was requeued.
    pub fn next(&mut self, submit: u64) -> Vec<Job> {
        let mut run = self.draw(submit);
        if run.start.is_none() || !self.random.chance(0.004) {
            return vec![run];
        }
        // Cut off somewhere, put back, and submitted anew as far as the database is concerned.
        let mut before = run.clone();
        let start = before.start.unwrap_or(submit);
        before.elapsed = 1 + self.random.below(before.elapsed.max(1));
        before.state = State::Requeued;
        before.exit = (0, 0);
        let end = start + before.elapsed;
        before.end = Some(end);
        if end + 121 >= self.now {
            return vec![run];
        }
        before.steps = self.steps(&before);
        run.submit = end;
        let start = end + 121 + self.random.magnitude(0.0, 3.0);
        self.place(&mut run, start);
        vec![before, run]
    }

    fn draw(&mut self, submit: u64) -> Job {
        let random = &mut self.random;
        self.id += 1 + random.below(3);
        let share = random.unit() * self.shares.last().copied().unwrap_or(0.0);
        let user = self.shares.partition_point(|bound| *bound < share) as u64;
        let partition = random.pick(&PARTITIONS);
        let gpus = (partition == "gpu").then(|| Gpus {
            count: random.pick(&[1, 1, 1, 1, 2, 4, 8]),
            model: random.pick(&GPU_TYPES),
        });
        let cpus = random.pick(&[1, 1, 1, 1, 2, 4, 4, 8, 8, 16, 32, 48, 64, 128]);
        let nodes = if cpus < 64 || random.chance(0.6) { 1 } else { 2 + random.below(4) };
        let gib = match partition {
            "bigmem" => 1000,
            _ => random.pick(&[1, 2, 4, 4, 8, 16, 16, 32, 64, 128, 187, 250]),
        };
        let memory = gib * 1024 + if random.chance(0.02) { 512 } else { 0 };
        let long = random.chance(0.1);
        let elapsed =
            if long { 60 + random.below(2 * DAY) } else { random.magnitude(0.5, 5.0).max(1) };
        let limit = (elapsed as f64 / 60.0 * (1.0 + random.unit() * 8.0)) as u64;
        let limit = limit.clamp(10, 10_080);
        let wait = random.magnitude(0.0, 4.3);
        let mut job = Job {
            id: self.id,
            label: Label::Plain,
            user,
            account: user % ACCOUNTS,
            partition,
            name: name(random),
            state: State::Completed,
            exit: (0, 0),
            submit,
            start: None,
            end: None,
            elapsed,
            limit,
            cpus,
            nodes,
            first_node: 1 + random.below(NODES),
            memory,
            gpus,
            constraint: if gpus.is_some() && random.chance(0.1) { "a100|h100" } else { "" },
            reservation: if random.chance(0.005) { "course" } else { "" },
            backfilled: random.chance(0.5),
            steps: Vec::new(),
        };
        job.label = self.label();
        self.place(&mut job, submit + wait);
        job
    }

    /// Gives the job its start, end, state and steps.
    fn place(&mut self, job: &mut Job, start: u64) {
        let random = &mut self.random;
        let chance = random.unit();
        (job.state, job.exit) = match chance {
            x if x < 0.78 => (State::Completed, (0, 0)),
            x if x < 0.86 => (State::Failed, (1 + random.below(3), 0)),
            x if x < 0.93 => (State::Cancelled, (0, 0)),
            x if x < 0.97 => (State::Timeout, (0, 0)),
            x if x < 0.995 => (State::OutOfMemory, (0, 125)),
            x if x < 0.997 => (State::NodeFail, (1, 0)),
            _ => (State::Preempted, (0, 0)),
        };
        if job.state == State::Timeout {
            job.elapsed = job.limit * MINUTE + random.below(30);
        }
        let never = job.state == State::Cancelled && random.chance(0.25);
        let end = if never { start } else { start + job.elapsed };
        job.start = (!never && start < self.now).then_some(start);
        job.end = (end < self.now).then_some(end);
        match (job.start, job.end) {
            (None, None) => {
                (job.state, job.exit, job.elapsed) = (State::Pending, (0, 0), 0);
                if matches!(job.label, Label::Plain) && random.chance(0.2) {
                    job.label = Label::Waiting;
                }
            }
            (None, Some(_)) => job.elapsed = 0,
            (Some(start), None) => {
                (job.state, job.exit, job.elapsed) = (State::Running, (0, 0), self.now - start);
            }
            (Some(_), Some(_)) => {}
        }
        job.steps = self.steps(job);
    }

    fn label(&mut self) -> Label {
        match self.series {
            Series::Array { array, next, left } if left > 0 => {
                self.series = Series::Array { array, next: next + 1, left: left - 1 };
                return Label::Task { array, index: next };
            }
            Series::Parts { first, next, left } if left > 0 => {
                self.series = Series::Parts { first, next: next + 1, left: left - 1 };
                return Label::Part { first, offset: next };
            }
            _ => {}
        }
        let chance = self.random.unit();
        if chance < 0.01 {
            let left = self.random.magnitude(0.0, 2.2);
            self.series = Series::Array { array: self.id, next: 1, left };
            Label::Task { array: self.id, index: 0 }
        } else if chance < 0.011 {
            self.series = Series::Parts { first: self.id, next: 1, left: 1 };
            Label::Part { first: self.id, offset: 0 }
        } else {
            Label::Plain
        }
    }

    fn steps(&mut self, job: &Job) -> Vec<Step> {
        if job.start.is_none() {
            return Vec::new();
        }
        let random = &mut self.random;
        let efficiency = if job.cpus == 1 { random.unit().powf(0.6) } else { random.unit() };
        let cpu = (job.elapsed as f64 * 1000.0 * job.cpus as f64 * efficiency) as u64;
        let bytes = job.memory as f64 * 1_048_576.0;
        let peak = pages(bytes * random.unit().powi(2) * 0.98) + 1_228_800;
        let little = (4 + random.below(200)) * 4096;
        if random.chance(0.05) {
            return vec![
                step(random, Kind::Extern, job.nodes, 2, little),
                step(random, Kind::Interactive, 1, cpu, peak),
            ];
        }
        let inner = if random.chance(0.7) { 0 } else { 1 + random.below(4) };
        let (own, memory) = if inner == 0 { (cpu, peak) } else { (cpu / 50, 4_198_400) };
        let mut steps = vec![
            step(random, Kind::Batch, 1, own, memory),
            step(random, Kind::Extern, job.nodes, 2, little),
        ];
        let tasks = job.nodes * (job.cpus / 4).max(1);
        for number in 0..inner {
            steps.push(step(random, Kind::Srun(number), tasks, cpu / 50 * 49 / inner, peak));
        }
        steps
    }
}

/// Whole pages.
fn pages(bytes: f64) -> u64 {
    bytes as u64 / 4096 * 4096
}

fn step(random: &mut Random, kind: Kind, tasks: u64, cpu: u64, memory: u64) -> Step {
    let greediest = match tasks {
        1 => memory,
        _ => pages(memory as f64 / tasks as f64 * (1.0 + random.unit())),
    };
    // What only waits reads its own program, and no more.
    let (disk, pages) = match kind {
        Kind::Extern => ((6976 * tasks, tasks), 0),
        _ => ((random.magnitude(3.0, 10.0), random.magnitude(1.0, 9.0)), random.below(4)),
    };
    Step { kind, tasks, cpu, memory: (greediest.min(memory), memory), disk, pages }
}

fn name(random: &mut Random) -> String {
    let mut name = random.pick(&NAMES).replace('%', &random.below(1000).to_string());
    match random.unit() {
        x if x < 0.0005 => name.push_str("|x"),
        x if x < 0.00052 => name.push_str("\nsecond line"),
        x if x < 0.000525 => name.push_str("\x1fx"),
        x if x < 0.0006 => name.push_str(" größer \"als\" ein 'Byte'"),
        _ => {}
    }
    name
}
