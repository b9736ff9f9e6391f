//! The rows of one run of a job, its own and those of its steps, become one [`Run`].

use std::borrow::Cow;
use std::time::Duration;

use super::field::Field;
use super::row::Row;
use super::values::{Given, Oddities, Oddity};
use crate::alike::same;
use crate::id::JobId;
use crate::job::{Run, Source};
use crate::slurm::ParseError;
use crate::slurm::number::canonical_u32;
use crate::slurm::state::JobState;
use crate::slurm::tres::usual;
use crate::time::Timestamp;
use crate::unit::Bytes;

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
    oddities: Oddities,
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
        let none = || ParseError::new("time", row.get(Field::Submit), "a time of submission");
        let submit = row.time(Field::Submit).and_then(|time| time.ok_or_else(none));
        let submit = submit.map_err(|error| must(Field::Submit, error))?;
        let mut odd = Oddities(Vec::new());
        let state_text = row.get(Field::State);
        let state = JobState::from(state_text);
        let end = odd.time(row, Field::End);
        let node_count = odd.number(row, Field::AllocNodes);
        // Of a job without nodes sacct says how many CPUs it asked for: it was given none.
        let cpus = match node_count {
            Some(0) => Some(0),
            _ => odd.number(row, Field::AllocCpus),
        };
        let (req_cpus, req_nodes) =
            (odd.number(row, Field::ReqCpus), odd.number(row, Field::ReqNodes));
        let size = (
            node_count.filter(|n| *n > 0).or(req_nodes).unwrap_or(1),
            cpus.filter(|n| *n > 0).or(req_cpus).unwrap_or(1),
        );
        let Given { gpus, gpu_types, billing, memory: given_memory } = odd.given(row);
        let req_memory = odd.req_memory(row, size, given_memory);
        let shown_id = row.get(Field::JobId);
        // Most jobs are of no family: people see Slurm's number.
        let (array_job, array_task, het_job, het_offset) =
            if same(shown_id.as_bytes(), id.as_bytes()) { NO_FAMILY } else { family(shown_id) };
        let (exit_code, exit_signal) = odd.exit(row);
        let run = Run {
            cluster: row.get(Field::Cluster).into(),
            job,
            shown_id: shown_id.into(),
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
                _ => state_text.into(),
            },
            exit_code,
            exit_signal,
            submit,
            eligible: odd.time(row, Field::Eligible),
            start: odd.time(row, Field::Start),
            end,
            elapsed: odd.number(row, Field::Elapsed).map(u64::from),
            time_limit: odd.time_limit(row),
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
            gpus,
            gpu_types,
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
        let (own_cpu, own_memory) = (odd.cpu(row), odd.own_memory(row));
        Ok(Draft {
            run,
            own_cpu,
            own_memory,
            steps_cpu: None,
            steps_memory: None,
            extern_memory: None,
            worked: false,
            oddities: odd,
        })
    }

    /// What is known so far: of the job's own row all but what it used.
    #[must_use]
    pub fn run(&self) -> &Run<'a> {
        &self.run
    }

    /// Adds the row of a step.
    pub fn step(&mut self, row: &Row<'a>) {
        let odd = &mut self.oddities;
        self.run.steps = self.run.steps.map(|steps| steps.saturating_add(1));
        if let Some(cpu) = odd.cpu(row) {
            self.steps_cpu = Some(self.steps_cpu.unwrap_or_default().saturating_add(cpu));
        }
        let [memory, read] = match usual::used(row.bytes(Field::TresUsageInTot)) {
            Some(amounts) => amounts.map(Some),
            None => odd.amounts(row, Field::TresUsageInTot, ["mem", "fs/disk"]),
        };
        let memory = odd.memory(row, memory);
        // The extern step holds a process that only waits, not the job's work.
        if is_extern(row.bytes(Field::JobIdRaw)) {
            self.extern_memory = memory;
        } else {
            self.steps_memory = self.steps_memory.max(memory);
            self.worked = true;
        }
        let [written] = match usual::written(row.bytes(Field::TresUsageOutTot)) {
            Some(amount) => [Some(amount)],
            None => odd.amounts(row, Field::TresUsageOutTot, ["fs/disk"]),
        };
        add(&mut self.run.disk_read, read);
        add(&mut self.run.disk_written, written);
        self.run.energy = self.run.energy.max(odd.energy(row));
    }

    /// The run after its last step, and what could not be read of it.
    #[must_use]
    pub fn finish(mut self) -> (Run<'a>, Vec<Oddity>) {
        self.end();
        (self.run, self.oddities.0)
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
        (run, &oddities.0)
    }
}

/// When the run of this row ended, `None` if it has not: enough to know whose part it is, and far less
/// than a [`Draft`].
///
/// # Errors
/// If the row does not say it.
#[inline]
pub fn ended(row: &Row<'_>) -> Result<Option<Timestamp>, ParseError> {
    let end = row.time(Field::End)?;
    Ok(end.filter(|_| JobState::from(row.get(Field::State)).ends_run()))
}

/// The owner of a job, by number if sacct has no name for it.
#[must_use]
#[inline]
pub fn owner<'a>(row: &Row<'a>) -> Cow<'a, str> {
    match row.get(Field::User) {
        "" => match row.get(Field::Uid) {
            "" => "MISSING_USER".into(),
            uid => format!("uid_{uid}").into(),
        },
        user => user.into(),
    }
}

/// Adds what one step used, if that is known.
#[inline]
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// Whether this is the id of an extern step.
#[inline]
fn is_extern(id: &[u8]) -> bool {
    id.strip_suffix(b".extern").is_some_and(|job| !job.contains(&b'.'))
}

/// The array and the task, the heterogeneous job and the offset.
pub type Family = (Option<u32>, Option<u32>, Option<u32>, Option<u32>);

/// That of a job of neither.
const NO_FAMILY: Family = (None, None, None, None);

/// The array or heterogeneous job in `100_7`, `100_[1-9]`, `100+1`.
#[must_use]
pub fn family(id: &str) -> Family {
    let Some(end) = id.bytes().position(|byte| !byte.is_ascii_digit()) else {
        return NO_FAMILY;
    };
    let (job, rest) = (id.get(..end).and_then(canonical_u32), id.get(end..).unwrap_or_default());
    match (rest.strip_prefix('_'), rest.strip_prefix('+')) {
        (Some(task), _) => (job, canonical_u32(task), None, None),
        (_, Some(offset)) => (None, None, job, canonical_u32(offset)),
        (None, None) => NO_FAMILY,
    }
}
