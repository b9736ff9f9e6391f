//! The rows of one run of a job, its own and those of its steps, become one [`Run`].

use std::borrow::Cow;
use std::time::Duration;

use super::field::Field;
use super::row::Row;
use crate::id::JobId;
use crate::job::{Run, Source};
use crate::slurm::memory::{self, Bare};
use crate::slurm::number::{canonical_u32, digits};
use crate::slurm::state::JobState;
use crate::slurm::{ParseError, duration, tres};
use crate::time::Timestamp;
use crate::unit::Bytes;

/// A value that could not be read. The rest of the row stands; the figure is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The field.
    pub field: Field,
    /// What is wrong with it.
    pub error: ParseError,
}

/// A run that is being put together.
#[derive(Debug)]
pub struct Draft<'a> {
    run: Run<'a>,
    /// CPU time of the job's own row, for a job without steps.
    own_cpu: Option<Duration>,
    own_memory: Option<Bytes>,
    steps_cpu: Option<Duration>,
    steps_memory: Option<Bytes>,
    extern_memory: Option<Bytes>,
    /// Whether there is a step that is not the extern one.
    worked: bool,
    oddities: Vec<Oddity>,
}

impl<'a> Draft<'a> {
    /// Begins with the job's own row.
    ///
    /// # Errors
    /// If the row does not say which run it is: its number or its time of submission.
    pub fn new(row: &Row<'a>) -> Result<Draft<'a>, Oddity> {
        let must = |field, error| Oddity { field, error };
        let id = row.get(Field::JobIdRaw);
        let job: JobId = id.parse().map_err(|error| must(Field::JobIdRaw, error))?;
        let submit = row.get(Field::Submit);
        let submit = Timestamp::from_slurm(submit)
            .and_then(|time| {
                time.ok_or_else(|| ParseError::new("time", submit, "a time of submission"))
            })
            .map_err(|error| must(Field::Submit, error))?;
        let mut odd = Oddities(Vec::new());
        let state = JobState::from(row.get(Field::State));
        let end = odd.time(row, Field::End);
        let node_count = odd.number(row, Field::AllocNodes);
        // Of a job without nodes sacct says how many CPUs it asked for: it was given none.
        let cpus = match node_count {
            Some(0) => Some(0),
            _ => odd.number(row, Field::AllocCpus),
        };
        let (req_cpus, req_nodes) =
            (odd.number(row, Field::ReqCpus), odd.number(row, Field::ReqNodes));
        let given = row.get(Field::AllocTres);
        let gpus = odd.read(Field::AllocTres, tres::gpus(given)).flatten();
        let (gpu_count, gpu_types) = match gpus {
            Some((count, types)) => (u32::try_from(count).ok(), types),
            // A list that names no GPU says that there is none; no list says nothing.
            None => ((!given.is_empty()).then_some(0), String::new()),
        };
        let size = (
            node_count.filter(|n| *n > 0).or(req_nodes).unwrap_or(1),
            cpus.filter(|n| *n > 0).or(req_cpus).unwrap_or(1),
        );
        let [billing, given_memory] = tres::amounts(given, ["billing", "mem"])
            .map(|amount| odd.read(Field::AllocTres, amount).flatten());
        let given_memory = given_memory.filter(|bytes| *bytes > 0).map(Bytes::new);
        let req_memory = odd.req_memory(row, size, given_memory);
        let (array_job, array_task, het_job, het_offset) = family(row.get(Field::JobId));
        let (exit_code, exit_signal) = odd.exit(row);
        let run = Run {
            cluster: row.get(Field::Cluster).into(),
            job,
            shown_id: row.get(Field::JobId).into(),
            array_job,
            array_task,
            het_job,
            het_offset,
            restart: 0,
            user: owner(row),
            uid: odd.number(row, Field::Uid),
            group: row.get(Field::Group).into(),
            account: row.get(Field::Account).into(),
            partition: row.get(Field::Partition).into(),
            qos: row.get(Field::Qos).into(),
            reservation: row.get(Field::Reservation).into(),
            name: row.get(Field::JobName).into(),
            ended: end.is_some() && state.ends_run(),
            cancelled_by: match &state {
                JobState::Cancelled { by } => by.map(crate::id::Uid::get),
                _ => None,
            },
            state: match &state {
                JobState::Cancelled { .. } => "CANCELLED".into(),
                _ => row.get(Field::State).into(),
            },
            exit_code,
            exit_signal,
            submit,
            eligible: odd.time(row, Field::Eligible),
            start: odd.time(row, Field::Start),
            end,
            elapsed: odd.number(row, Field::Elapsed).map(u64::from),
            time_limit: odd
                .read(Field::Timelimit, duration::limit(row.get(Field::Timelimit)))
                .flatten(),
            req_cpus,
            req_nodes,
            req_memory,
            memory: given_memory.or(req_memory),
            cpus,
            node_count,
            nodes: match row.get(Field::NodeList) {
                "None assigned" | "(null)" => "".into(),
                list => list.into(),
            },
            gpus: gpu_count,
            gpu_types: gpu_types.into(),
            billing,
            cpu_seconds: None,
            cpu_source: None,
            peak_memory: None,
            memory_source: None,
            disk_read: None,
            disk_written: None,
            energy: odd.energy(row),
            steps: Some(0),
            admin_comment: row.get(Field::AdminComment).into(),
            agent: None,
        };
        let own_cpu = odd.cpu(row);
        let sum = tres::amount(row.get(Field::TresUsageInTot), "mem");
        let sum = odd.read(Field::TresUsageInTot, sum).flatten();
        let own_memory = odd.memory(row, sum);
        Ok(Draft {
            run,
            own_cpu,
            own_memory,
            steps_cpu: None,
            steps_memory: None,
            extern_memory: None,
            worked: false,
            oddities: odd.0,
        })
    }

    /// What is known so far: of the job's own row all but what it used.
    #[must_use]
    pub fn run(&self) -> &Run<'a> {
        &self.run
    }

    /// Adds the row of a step.
    pub fn step(&mut self, row: &Row<'a>) {
        let mut odd = Oddities(std::mem::take(&mut self.oddities));
        self.run.steps = self.run.steps.map(|steps| steps.saturating_add(1));
        if let Some(cpu) = odd.cpu(row) {
            self.steps_cpu = Some(self.steps_cpu.unwrap_or_default().saturating_add(cpu));
        }
        let used = row.get(Field::TresUsageInTot);
        let [memory, read] = match tres::usual_usage(used) {
            Some(amounts) => amounts.map(Some),
            None => tres::amounts(used, ["mem", "fs/disk"])
                .map(|used| odd.read(Field::TresUsageInTot, used).flatten()),
        };
        let memory = odd.memory(row, memory);
        // The extern step holds a process that only waits, not the job's work.
        if row.id().1 == Some("extern") {
            self.extern_memory = memory;
        } else {
            self.steps_memory = self.steps_memory.max(memory);
            self.worked = true;
        }
        let written = tres::amount(row.get(Field::TresUsageOutTot), "fs/disk");
        let written = odd.read(Field::TresUsageOutTot, written).flatten();
        for (sum, more) in [(&mut self.run.disk_read, read), (&mut self.run.disk_written, written)]
        {
            *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0).saturating_add(more)));
        }
        self.run.energy = self.run.energy.max(odd.energy(row));
        self.oddities = odd.0;
    }

    /// The run after its last step, and what could not be read of it.
    #[must_use]
    pub fn finish(mut self) -> (Run<'a>, Vec<Oddity>) {
        self.end();
        (self.run, self.oddities)
    }

    /// The same in its place: a run is large, and is not moved for each of a million.
    pub fn end(&mut self) -> (&mut Run<'a>, &[Oddity]) {
        let Draft { run, oddities, .. } = self;
        let (cpu, memory, source) = if run.steps > Some(0) {
            let memory = if self.worked { self.steps_memory } else { self.extern_memory };
            (self.steps_cpu, memory, Source::Steps)
        } else {
            (self.own_cpu, self.own_memory, Source::Job)
        };
        // A process takes at least a millisecond to begin: exactly none means that the use of
        // this run has not been recorded, as while it runs or when its node was lost.
        if let Some(cpu) = cpu.filter(|cpu| !cpu.is_zero()) {
            run.cpu_seconds = Some(cpu.as_secs_f64());
            run.cpu_source = Some(source);
        }
        if let Some(memory) = memory {
            run.peak_memory = Some(memory);
            run.memory_source = Some(source);
        }
        (run, oddities)
    }
}

/// When the run of this row ended, `None` if it has not: enough to know whose part it is, and far less
/// than a [`Draft`].
///
/// # Errors
/// If the row does not say it.
pub fn ended(row: &Row<'_>) -> Result<Option<Timestamp>, ParseError> {
    let end = Timestamp::from_slurm(row.get(Field::End))?;
    Ok(end.filter(|_| JobState::from(row.get(Field::State)).ends_run()))
}

/// The owner of a job, by number if sacct has no name for it.
#[must_use]
pub fn owner<'a>(row: &Row<'a>) -> Cow<'a, str> {
    match (row.get(Field::User), row.get(Field::Uid)) {
        ("", "") => "MISSING_USER".into(),
        ("", uid) => format!("uid_{uid}").into(),
        (user, _) => user.into(),
    }
}

/// The array and the task, the heterogeneous job and the offset.
pub type Family = (Option<u32>, Option<u32>, Option<u32>, Option<u32>);

/// The array or heterogeneous job in `100_7`, `100_[1-9]`, `100+1`.
#[must_use]
pub fn family(id: &str) -> Family {
    let Some(end) = id.bytes().position(|byte| !byte.is_ascii_digit()) else {
        return (None, None, None, None);
    };
    let (job, rest) = (id.get(..end).and_then(canonical_u32), id.get(end..).unwrap_or_default());
    match (rest.strip_prefix('_'), rest.strip_prefix('+')) {
        (Some(task), _) => (job, canonical_u32(task), None, None),
        (_, Some(offset)) => (None, None, job, canonical_u32(offset)),
        (None, None) => (None, None, None, None),
    }
}

/// Reads values of a row and keeps those that are none.
struct Oddities(Vec<Oddity>);

impl Oddities {
    fn read<T>(&mut self, field: Field, value: Result<T, ParseError>) -> Option<T> {
        value.map_err(|error| self.0.push(Oddity { field, error })).ok()
    }

    fn time(&mut self, row: &Row<'_>, field: Field) -> Option<Timestamp> {
        self.read(field, Timestamp::from_slurm(row.get(field))).flatten()
    }

    fn number(&mut self, row: &Row<'_>, field: Field) -> Option<u32> {
        let text = row.get(field);
        if text.is_empty() {
            return None;
        }
        let number = digits(text).and_then(|number| u32::try_from(number).ok());
        self.read(field, number.ok_or_else(|| ParseError::new("number", text, "a whole number")))
    }

    fn cpu(&mut self, row: &Row<'_>) -> Option<Duration> {
        self.read(Field::TotalCpu, duration::elapsed(row.get(Field::TotalCpu))).flatten()
    }

    fn energy(&mut self, row: &Row<'_>) -> Option<u64> {
        let text = row.get(Field::Energy);
        // Without a sensor Slurm prints nothing, 0, or its "no value".
        if matches!(text.as_bytes(), b"" | b"0") || text == "18446744073709551614" {
            return None;
        }
        let joules = memory::size(text, Bare::Bytes).map(|size| size.map(Bytes::get));
        self.read(Field::Energy, joules).flatten()
    }

    /// What all tasks of the row used together. Slurm adds up the highest figure of each task,
    /// which is at least what they ever used at one time. Without that `sum` the highest of one
    /// task is the whole only if there is one task.
    fn memory(&mut self, row: &Row<'_>, sum: Option<u64>) -> Option<Bytes> {
        let sum = sum.map(Bytes::new);
        let one_task = || matches!(row.get(Field::NTasks), "" | "1");
        let highest = || {
            let size = memory::size(row.get(Field::MaxRss), Bare::Bytes);
            self.read(Field::MaxRss, size).flatten()
        };
        let found = sum.or_else(|| one_task().then(highest).flatten());
        // A process without memory does not exist: 0 means that Slurm took no sample in time.
        found.filter(|bytes| bytes.get() > 0)
    }

    fn req_memory(
        &mut self,
        row: &Row<'_>,
        (nodes, cpus): (u32, u32),
        given: Option<Bytes>,
    ) -> Option<Bytes> {
        let asked = self.read(Field::ReqMem, memory::request(row.get(Field::ReqMem))).flatten();
        match asked {
            Some(asked) => asked.in_all(u64::from(nodes), u64::from(cpus)),
            // All memory of the nodes is asked for as none: what was given says how much that is.
            None => given,
        }
    }

    fn exit(&mut self, row: &Row<'_>) -> (Option<u32>, Option<u32>) {
        let text = row.get(Field::ExitCode);
        match text {
            "" => return (None, None),
            "0:0" => return (Some(0), Some(0)),
            _ => {}
        }
        let read = || {
            let (code, signal) = text.split_once(':')?;
            Some((canonical_u32(code)?, canonical_u32(signal)?))
        };
        let pair = read().ok_or_else(|| ParseError::new("exit code", text, "a pair such as 1:0"));
        self.read(Field::ExitCode, pair).unzip()
    }
}
