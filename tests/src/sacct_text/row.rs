//! A job as `sacct -P -n --noconvert` of Slurm 22.05 prints it, with `SLURM_TIME_FORMAT=%s` and
//! [`SEAL`] behind that.

use std::io::Write;

use steward_common::slurm::sacct::{DELIMITER, Field, Layout};

use super::comment;
use super::job::{Job, Kind, Label, State, Step};
use super::seal::SEAL;

/// Writing to memory does not fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        write!($out, $($arguments)*).expect("memory")
    };
}

/// Appends the rows of the job and its steps.
pub fn write(layout: &Layout, job: &Job, comments: bool, out: &mut Vec<u8>) {
    row(
        layout,
        out,
        |out| put!(out, "{}", job.id),
        |field, out| match field {
            Field::AdminComment if comments => out.extend(comment::of(job).as_bytes()),
            field => job_field(job, field, out),
        },
    );
    for step in &job.steps {
        let step = Of { job, step };
        row(layout, out, |out| step.id(out), |field, out| step.field(field, out));
    }
}

fn row(
    layout: &Layout,
    out: &mut Vec<u8>,
    id: impl Fn(&mut Vec<u8>),
    text: impl Fn(Field, &mut Vec<u8>),
) {
    for field in layout.fields() {
        match field {
            Field::JobIdRaw => id(out),
            field => text(*field, out),
        }
        out.push(DELIMITER);
    }
    id(out);
    out.push(b'\n');
}

fn job_field(job: &Job, field: Field, out: &mut Vec<u8>) {
    let ran = job.start.is_some();
    match field {
        Field::JobIdRaw => put!(out, "{}", job.id),
        Field::JobId => label(job, out),
        Field::Cluster => out.extend(super::CLUSTER.as_bytes()),
        Field::User => put!(out, "user{:03}", job.user),
        Field::Uid => put!(out, "{}", uid(job)),
        Field::Group => put!(out, "grp{:02}", job.account),
        Field::Account => account(job, out),
        Field::Partition => out.extend(job.partition.as_bytes()),
        Field::Qos => out.extend(b"normal"),
        Field::State => {
            out.extend(job.state.name().as_bytes());
            if job.state == State::Cancelled {
                put!(out, " by {}", uid(job));
            }
        }
        Field::ExitCode => exit(job.exit, out),
        Field::DerivedExitCode => exit((0, job.exit.1), out),
        Field::Submit => put!(out, "{}{SEAL}", job.submit),
        Field::Eligible => put!(out, "{}{SEAL}", job.eligible()),
        Field::Start => match (job.start, job.state) {
            (Some(start), _) => put!(out, "{start}{SEAL}"),
            (None, State::Pending) => out.extend(b"Unknown"),
            (None, _) => out.extend(b"None"),
        },
        Field::End => end(job, out),
        Field::Elapsed => put!(out, "{}", job.elapsed),
        Field::Suspended => out.extend(b"00:00:00"),
        Field::Timelimit => put!(out, "{}", job.limit),
        // Also of a job that never started: then it is what was asked for.
        Field::AllocCpus | Field::ReqCpus => put!(out, "{}", job.cpus),
        Field::AllocNodes => put!(out, "{}", if ran { job.nodes } else { 0 }),
        Field::NodeList if ran => nodes(job, job.nodes, out),
        Field::NodeList => out.extend(b"None assigned"),
        Field::ReqNodes => put!(out, "{}", job.nodes),
        Field::ReqMem => put!(out, "{}M", job.memory),
        Field::AllocTres if !ran => {}
        Field::ReqTres | Field::AllocTres => tres(job, job.nodes, true, out),
        Field::TotalCpu => used(if job.state == State::Running { 0 } else { job.cpu() }, out),
        Field::UserCpu => used(if job.state == State::Running { 0 } else { user(job.cpu()) }, out),
        Field::SystemCpu if job.state == State::Running => used(0, out),
        Field::SystemCpu => used(job.cpu() - user(job.cpu()), out),
        Field::Energy if job.state == State::Running => {}
        Field::Energy => out.push(b'0'),
        Field::Priority => put!(out, "{}", 100_000 + job.id % 90_000),
        Field::Reservation => out.extend(job.reservation.as_bytes()),
        Field::Reason if job.state == State::Pending => out.extend(b"Priority"),
        Field::Reason => out.extend(b"None"),
        Field::Flags => {
            if ran {
                out.extend(if job.backfilled { &b"SchedBackfill,"[..] } else { b"SchedMain," });
            }
            // Slurm's spelling.
            out.extend(b"StartRecieved");
        }
        Field::Restarts => put!(out, "0"),
        Field::Constraints => out.extend(job.constraint.as_bytes()),
        Field::JobName => out.extend(job.name.as_bytes()),
        Field::WorkDir => {
            put!(out, "/scratch/user{:03}/run_{}", job.user, job.id % 1000);
        }
        Field::SubmitLine => submit_line(job, out),
        Field::NTasks
        | Field::MaxRss
        | Field::TresUsageInTot
        | Field::TresUsageInMax
        | Field::TresUsageOutTot
        | Field::Comment
        | Field::AdminComment => {}
    }
}

/// A step with its job.
struct Of<'a> {
    job: &'a Job,
    step: &'a Step,
}

impl Of<'_> {
    fn name(&self, out: &mut Vec<u8>) {
        match self.step.kind {
            Kind::Batch => out.extend(b"batch"),
            Kind::Extern => out.extend(b"extern"),
            Kind::Srun(number) => put!(out, "{number}"),
            Kind::Interactive => out.push(b'0'),
        }
    }

    fn id(&self, out: &mut Vec<u8>) {
        put!(out, "{}.", self.job.id);
        self.name(out);
    }

    /// A batch step has the first node only.
    fn nodes(&self) -> u64 {
        if self.step.kind == Kind::Batch { 1 } else { self.job.nodes }
    }

    fn cpus(&self) -> u64 {
        if self.step.kind == Kind::Batch {
            (self.job.cpus / self.job.nodes).max(1)
        } else {
            self.job.cpus
        }
    }

    fn state(&self) -> State {
        match (self.step.kind, self.job.state) {
            (_, State::Running) => State::Running,
            (Kind::Extern, _) => State::Completed,
            (_, State::Timeout | State::Preempted | State::Requeued | State::NodeFail) => {
                State::Cancelled
            }
            (_, state) => state,
        }
    }

    fn field(&self, field: Field, out: &mut Vec<u8>) {
        let Of { job, step } = *self;
        let runs = job.state == State::Running;
        match field {
            Field::JobIdRaw => self.id(out),
            Field::JobId => {
                label(job, out);
                out.push(b'.');
                self.name(out);
            }
            Field::Cluster => out.extend(super::CLUSTER.as_bytes()),
            Field::Account => account(job, out),
            Field::State => out.extend(self.state().name().as_bytes()),
            Field::ExitCode if step.kind == Kind::Extern => exit((0, 0), out),
            Field::ExitCode => exit(job.exit, out),
            Field::Submit | Field::Eligible | Field::Start => {
                put!(out, "{}{SEAL}", job.start.unwrap_or(0));
            }
            Field::End => end(job, out),
            Field::Elapsed => put!(out, "{}", job.elapsed),
            Field::Suspended => out.extend(b"00:00:00"),
            Field::AllocCpus | Field::ReqCpus => put!(out, "{}", self.cpus()),
            Field::AllocNodes | Field::ReqNodes => put!(out, "{}", self.nodes()),
            Field::NodeList => nodes(job, self.nodes(), out),
            Field::AllocTres => tres(job, self.nodes(), step.kind == Kind::Extern, out),
            Field::NTasks => put!(out, "{}", step.tasks),
            Field::TotalCpu => used(if runs { 0 } else { step.cpu }, out),
            Field::UserCpu => used(if runs { 0 } else { user(step.cpu) }, out),
            Field::SystemCpu => used(if runs { 0 } else { step.cpu - user(step.cpu) }, out),
            Field::MaxRss
            | Field::TresUsageInTot
            | Field::TresUsageInMax
            | Field::TresUsageOutTot
                if runs => {}
            Field::MaxRss => put!(out, "{}", step.memory.0),
            Field::TresUsageInTot => usage(step, step.memory.1, 1, out),
            Field::TresUsageInMax => usage(step, step.memory.0, step.tasks, out),
            Field::TresUsageOutTot => put!(out, "energy=0,fs/disk={}", step.disk.1),
            Field::Energy => out.push(b'0'),
            Field::JobName => match step.kind {
                Kind::Batch => out.extend(b"batch"),
                Kind::Extern => out.extend(b"extern"),
                Kind::Srun(_) => out.extend(b"srun_app"),
                Kind::Interactive => out.extend(b"interactive"),
            },
            Field::SubmitLine => match step.kind {
                Kind::Srun(number) => put!(out, "srun ./app input_{number}"),
                Kind::Interactive => out.extend(b"srun --pty bash"),
                Kind::Batch | Kind::Extern => {}
            },
            Field::User
            | Field::Uid
            | Field::Group
            | Field::Partition
            | Field::Qos
            | Field::DerivedExitCode
            | Field::Timelimit
            | Field::ReqMem
            | Field::ReqTres
            | Field::Priority
            | Field::Reservation
            | Field::Reason
            | Field::Flags
            | Field::Restarts
            | Field::Constraints
            | Field::WorkDir
            | Field::Comment
            | Field::AdminComment => {}
        }
    }
}

fn uid(job: &Job) -> u64 {
    20_000 + job.user
}

fn account(job: &Job, out: &mut Vec<u8>) {
    put!(out, "def-pi{:02}", job.account);
}

fn exit((code, signal): (u64, u64), out: &mut Vec<u8>) {
    put!(out, "{code}:{signal}");
}

fn label(job: &Job, out: &mut Vec<u8>) {
    match job.label {
        Label::Plain => put!(out, "{}", job.id),
        Label::Task { array, index } => put!(out, "{array}_{index}"),
        Label::Waiting => put!(out, "{}_[1-500%20]", job.id),
        Label::Part { first, offset } => put!(out, "{first}+{offset}"),
    }
}

fn end(job: &Job, out: &mut Vec<u8>) {
    match job.end {
        Some(end) => put!(out, "{end}{SEAL}"),
        None => out.extend(b"Unknown"),
    }
}

fn nodes(job: &Job, count: u64, out: &mut Vec<u8>) {
    let first = job.first_node;
    match count {
        1 => put!(out, "c{first:04}"),
        _ => put!(out, "c[{first:04}-{:04}]", first + count - 1),
    }
}

/// What is held on `nodes` of the job's nodes.
fn tres(job: &Job, nodes: u64, billing: bool, out: &mut Vec<u8>) {
    let share = |amount: u64| (amount * nodes / job.nodes).max(1);
    let cpus = share(job.cpus);
    if billing {
        put!(out, "billing={cpus},");
    }
    put!(out, "cpu={cpus}");
    if let Some(gpus) = job.gpus {
        let count = share(gpus.count);
        put!(out, ",gres/gpu:{}={count},gres/gpu={count}", gpus.model);
    }
    put!(out, ",mem={}M,node={nodes}", share(job.memory));
}

/// What was used; `tasks` is over how many tasks CPU time and reading are spread.
fn usage(step: &Step, memory: u64, tasks: u64, out: &mut Vec<u8>) {
    out.extend(b"cpu=");
    clock(step.cpu / 1000 / tasks, out);
    let (disk, pages) = (step.disk.0 / tasks, step.pages);
    put!(out, ",energy=0,fs/disk={disk},mem={memory},pages={pages},vmem={}", memory + pages * 4096);
}

/// Milliseconds of CPU time in user mode, of all.
fn user(cpu: u64) -> u64 {
    cpu / 100 * 93
}

/// CPU time: with milliseconds if it is under an hour, and not nothing.
fn used(milliseconds: u64, out: &mut Vec<u8>) {
    let seconds = milliseconds / 1000;
    if milliseconds == 0 || seconds >= 3600 {
        return clock(seconds, out);
    }
    put!(out, "{:02}:{:02}.{:03}", seconds / 60, seconds % 60, milliseconds % 1000);
}

fn clock(seconds: u64, out: &mut Vec<u8>) {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    if days > 0 {
        put!(out, "{days}-");
    }
    put!(out, "{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60);
}

fn submit_line(job: &Job, out: &mut Vec<u8>) {
    put!(out, "sbatch --time=");
    clock(job.limit * 60, out);
    put!(out, " --mem={}G", job.memory / 1024);
    if let Some(gpus) = job.gpus {
        put!(out, " --gres=gpu:{}:{}", gpus.model, gpus.count);
    }
    if job.cpus > 1 {
        put!(out, " -c{}", job.cpus);
    }
    put!(out, " job_{}.sh", job.id % 1000);
}
