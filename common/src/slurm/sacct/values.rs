//! The values of a row's fields, and what is wrong with those that cannot be read.

use std::borrow::Cow;
use std::time::Duration;

use super::field::Field;
use super::row::Row;
use crate::slurm::duration::TimeLimit;
use crate::slurm::memory::{self, Bare};
use crate::slurm::number::{canonical_u32, digits, small};
use crate::slurm::tres::{self, usual};
use crate::slurm::{ParseError, duration};
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

/// What AllocTRES says.
pub(super) struct Given<'a> {
    pub gpus: Option<u32>,
    pub gpu_types: Cow<'a, str>,
    pub billing: Option<u64>,
    pub memory: Option<Bytes>,
}

/// Reads values of a row and keeps those that are none. What nearly all rows have is read from bytes in
/// their place; the rest in functions of their own, which are seldom called.
#[derive(Debug)]
pub(super) struct Oddities(pub Vec<Oddity>);

impl Oddities {
    fn read<T>(&mut self, field: Field, value: Result<T, ParseError>) -> Option<T> {
        value.map_err(|error| self.0.push(Oddity { field, error })).ok()
    }

    #[inline]
    pub fn time(&mut self, row: &Row<'_>, field: Field) -> Option<Timestamp> {
        Timestamp::usual(row.bytes(field)).or_else(|| self.any_time(row, field))
    }

    #[inline(never)]
    fn any_time(&mut self, row: &Row<'_>, field: Field) -> Option<Timestamp> {
        self.read(field, Timestamp::from_slurm(row.get(field))).flatten()
    }

    #[inline]
    pub fn number(&mut self, row: &Row<'_>, field: Field) -> Option<u32> {
        small(row.bytes(field)).or_else(|| self.any_number(row, field))
    }

    #[inline(never)]
    fn any_number(&mut self, row: &Row<'_>, field: Field) -> Option<u32> {
        let text = row.get(field);
        if text.is_empty() {
            return None;
        }
        let number = digits(text).and_then(|number| u32::try_from(number).ok());
        self.read(field, number.ok_or_else(|| ParseError::new("number", text, "a whole number")))
    }

    #[inline]
    pub fn cpu(&mut self, row: &Row<'_>) -> Option<Duration> {
        duration::usual(row.bytes(Field::TotalCpu)).or_else(|| self.any_cpu(row))
    }

    #[inline(never)]
    fn any_cpu(&mut self, row: &Row<'_>) -> Option<Duration> {
        self.read(Field::TotalCpu, duration::elapsed(row.get(Field::TotalCpu))).flatten()
    }

    #[inline]
    pub fn time_limit(&mut self, row: &Row<'_>) -> Option<TimeLimit> {
        match small(row.bytes(Field::Timelimit)) {
            Some(minutes) => Some(TimeLimit::minutes(minutes)),
            None => self.any_time_limit(row),
        }
    }

    #[inline(never)]
    fn any_time_limit(&mut self, row: &Row<'_>) -> Option<TimeLimit> {
        self.read(Field::Timelimit, duration::limit(row.get(Field::Timelimit))).flatten()
    }

    #[inline]
    pub fn given<'a>(&mut self, row: &Row<'a>) -> Given<'a> {
        match usual::given(row.get(Field::AllocTres)) {
            Some(given) => Given {
                gpus: u32::try_from(given.gpus).ok(),
                gpu_types: given.gpu_types.into(),
                billing: Some(given.billing),
                memory: Some(given.memory).filter(|bytes| *bytes > 0).map(Bytes::new),
            },
            None => self.any_given(row),
        }
    }

    #[inline(never)]
    fn any_given<'a>(&mut self, row: &Row<'a>) -> Given<'a> {
        let list = row.get(Field::AllocTres);
        let (gpus, gpu_types) = match self.read(Field::AllocTres, tres::gpus(list)).flatten() {
            Some((count, types)) => (u32::try_from(count).ok(), types),
            // A list that names no GPU says that there is none; no list says nothing.
            None => ((!list.is_empty()).then_some(0), String::new()),
        };
        let [billing, memory] = self.amounts(row, Field::AllocTres, ["billing", "mem"]);
        let memory = memory.filter(|bytes| *bytes > 0).map(Bytes::new);
        Given { gpus, gpu_types: gpu_types.into(), billing, memory }
    }

    /// The amounts of several resources of a list.
    #[inline]
    pub fn amounts<const N: usize>(
        &mut self,
        row: &Row<'_>,
        field: Field,
        names: [&str; N],
    ) -> [Option<u64>; N] {
        let list = row.get(field);
        if list.is_empty() {
            return [None; N];
        }
        tres::amounts(list, names).map(|amount| self.read(field, amount).flatten())
    }

    #[inline]
    pub fn energy(&mut self, row: &Row<'_>) -> Option<u64> {
        // Without a sensor Slurm prints nothing, 0, or its "no value".
        match row.bytes(Field::Energy) {
            b"" | b"0" | b"18446744073709551614" => None,
            _ => self.any_energy(row),
        }
    }

    #[inline(never)]
    fn any_energy(&mut self, row: &Row<'_>) -> Option<u64> {
        let text = row.get(Field::Energy);
        let joules = memory::size(text, Bare::Bytes).map(|size| size.map(Bytes::get));
        self.read(Field::Energy, joules).flatten()
    }

    /// What all tasks of the row used together. Slurm adds up the highest figure of each task,
    /// which is at least what they ever used at one time. Without that `sum` the highest of one
    /// task is the whole only if there is one task.
    #[inline]
    pub fn memory(&mut self, row: &Row<'_>, sum: Option<u64>) -> Option<Bytes> {
        let found = match sum {
            Some(sum) => Some(Bytes::new(sum)),
            None if row.bytes(Field::MaxRss).is_empty() => None,
            None => self.highest(row),
        };
        // A process without memory does not exist: 0 means that Slurm took no sample in time.
        found.filter(|bytes| bytes.get() > 0)
    }

    #[inline]
    pub fn own_memory(&mut self, row: &Row<'_>) -> Option<Bytes> {
        // Nearly always only the steps say it.
        let is_said = !row.bytes(Field::TresUsageInTot).is_empty();
        let sum = is_said.then(|| self.amounts(row, Field::TresUsageInTot, ["mem"]));
        self.memory(row, sum.and_then(|[sum]| sum))
    }

    #[inline(never)]
    fn highest(&mut self, row: &Row<'_>) -> Option<Bytes> {
        if !matches!(row.bytes(Field::NTasks), b"" | b"1") {
            return None;
        }
        let size = memory::size(row.get(Field::MaxRss), Bare::Bytes);
        self.read(Field::MaxRss, size).flatten()
    }

    #[inline]
    pub fn req_memory(
        &mut self,
        row: &Row<'_>,
        size: (u32, u32),
        given: Option<Bytes>,
    ) -> Option<Bytes> {
        let usual = memory::usual_request(row.bytes(Field::ReqMem));
        usual.or_else(|| self.any_req_memory(row, size, given))
    }

    #[inline(never)]
    fn any_req_memory(
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

    #[inline]
    pub fn exit(&mut self, row: &Row<'_>) -> (Option<u32>, Option<u32>) {
        match row.bytes(Field::ExitCode) {
            b"" => (None, None),
            b"0:0" => (Some(0), Some(0)),
            _ => self.any_exit(row),
        }
    }

    #[inline(never)]
    fn any_exit(&mut self, row: &Row<'_>) -> (Option<u32>, Option<u32>) {
        let text = row.get(Field::ExitCode);
        let read = || {
            let (code, signal) = text.split_once(':')?;
            Some((canonical_u32(code)?, canonical_u32(signal)?))
        };
        let pair = read().ok_or_else(|| ParseError::new("exit code", text, "a pair such as 1:0"));
        self.read(Field::ExitCode, pair).unzip()
    }
}
