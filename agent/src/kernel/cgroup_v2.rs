//! cgroup v2: one tree, `…/slurmstepd.scope/job_N/step_S/{slurm, user/task_T}`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steward_common::id::NodeName;
use steward_common::limit::Limit;
use steward_common::slurm::cgroup_path::Version;
use steward_common::unit::Bytes;

use super::cgroup::{CgroupStats, CpuStats, JobPlace, MemoryStats, cpus};
use super::count::{Count, Counts};
use super::error::{Errors, ReadError};
use super::file;
use super::io_stat;
use super::pressure;
use super::scope::Scopes;
use crate::scheduler::Scheduler;

/// The name under which [`JobPlace::dirs`] lists the one directory of a job.
pub const UNIFIED: &str = "unified";

/// A cgroup v2 mount.
#[derive(Debug)]
pub struct V2 {
    scopes: Scopes,
}

impl V2 {
    /// The mount at `root`.
    #[must_use]
    pub fn new(root: &Path, scheduler: &Arc<dyn Scheduler>) -> Self {
        Self { scopes: Scopes::new(root, Version::V2, Arc::clone(scheduler)) }
    }

    /// Every job directory.
    pub fn jobs(&mut self, full: bool, errors: &mut Errors) -> Vec<JobPlace> {
        self.scopes
            .jobs(full, errors)
            .into_iter()
            .map(|found| JobPlace {
                node: found.node,
                uid: found.uid,
                job: found.job,
                dirs: vec![(UNIFIED.to_owned(), found.path)],
            })
            .collect()
    }

    /// The nodes whose scopes name them.
    #[must_use]
    pub fn named_nodes(&self) -> BTreeSet<NodeName> {
        self.scopes.known().filter_map(|scope| scope.node.clone()).collect()
    }

    /// The directories in which new jobs appear.
    #[must_use]
    pub fn holders(&self) -> &[PathBuf] {
        self.scopes.holders()
    }

    /// The scope directories.
    #[must_use]
    pub fn scopes(&self) -> Vec<&Path> {
        self.scopes.known().map(|scope| scope.path.as_path()).collect()
    }
}

/// What the files of a job say.
#[must_use]
pub fn read(place: &JobPlace, errors: &mut Errors) -> CgroupStats {
    let Some(dir) = place.dir(UNIFIED) else {
        return CgroupStats::default();
    };
    let mut counts = Counts::new();
    CgroupStats {
        cpu: cpu(dir, &mut counts, errors),
        memory: memory(dir, &mut counts, errors),
        cpuset: cpuset(dir, errors),
        tasks: errors.take_optional(file::optional_number(&dir.join("pids.current"))),
        counts: {
            stalls(dir, &mut counts, errors);
            block_io(dir, &mut counts, errors);
            counts
        },
    }
}

fn cpu(dir: &Path, counts: &mut Counts, errors: &mut Errors) -> CpuStats {
    let path = dir.join("cpu.stat");
    let Some(text) = errors.take(file::text(&path)) else {
        return CpuStats::default();
    };
    let mut number = |key| errors.take_optional(file::keyed(&path, &text, key));
    // Only there with the cpu controller.
    let throttling = [
        (Count::CpuPeriods, number("nr_periods")),
        (Count::CpuThrottled, number("nr_throttled")),
        (Count::CpuThrottledNanos, number("throttled_usec").map(|us| us.saturating_mul(1000))),
    ];
    counts.extend(throttling.into_iter().filter_map(|(count, value)| Some((count, value?))));
    let mut micros = |key| number(key).map(Duration::from_micros);
    CpuStats {
        total: micros("usage_usec"),
        user: micros("user_usec"),
        system: micros("system_usec"),
        cores: None,
    }
}

/// Time in which tasks of the job waited, where the kernel keeps account of it.
fn stalls(dir: &Path, counts: &mut Counts, errors: &mut Errors) {
    for (name, some, full) in [
        ("cpu.pressure", Count::StallCpuSome, Count::StallCpuFull),
        ("memory.pressure", Count::StallMemorySome, Count::StallMemoryFull),
        ("io.pressure", Count::StallIoSome, Count::StallIoFull),
    ] {
        let Some(stall) = errors.take_optional(pressure::read(&dir.join(name))) else { continue };
        let micros = |time: Option<Duration>| u64::try_from(time?.as_micros()).ok();
        let values = [(some, micros(stall.some)), (full, micros(stall.full))];
        counts.extend(values.into_iter().filter_map(|(count, value)| Some((count, value?))));
    }
}

fn block_io(dir: &Path, counts: &mut Counts, errors: &mut Errors) {
    let Some(io) = errors.take_optional(io_stat::read(&dir.join("io.stat"))) else { return };
    counts.extend([
        (Count::BlockReadBytes, io.read_bytes),
        (Count::BlockReads, io.reads),
        (Count::BlockWriteBytes, io.write_bytes),
        (Count::BlockWrites, io.writes),
    ]);
}

fn memory(dir: &Path, counts: &mut Counts, errors: &mut Errors) -> MemoryStats {
    let events_path = dir.join("memory.events");
    if let Some(text) = errors.take_optional(file::optional_text(&events_path)) {
        for (count, key) in [(Count::MemoryLimitHits, "max"), (Count::MemoryOomKills, "oom_kill")] {
            let value = errors.take_optional(file::keyed(&events_path, &text, key));
            counts.extend(value.map(|value| (count, value)));
        }
    }
    let mut number =
        |name: &str| errors.take_optional(file::optional_number(&dir.join(name))).map(Bytes::new);
    let usage = number("memory.current");
    let peak = number("memory.peak");
    let swap = number("memory.swap.current");
    let limit_path = dir.join("memory.max");
    let limit = errors
        .take_optional(file::optional_text(&limit_path))
        .and_then(|text| errors.take(limit(&limit_path, &text)));
    let stat_path = dir.join("memory.stat");
    let stat = errors.take_optional(file::optional_text(&stat_path));
    let mut keyed = |key| {
        let text = stat.as_deref()?;
        errors.take_optional(file::keyed(&stat_path, text, key)).map(Bytes::new)
    };
    MemoryStats {
        usage,
        peak,
        anon: keyed("anon"),
        file: keyed("file"),
        shmem: keyed("shmem"),
        kernel: keyed("kernel"),
        swap,
        slurm: usage,
        limit,
    }
}

fn limit(path: &Path, text: &str) -> Result<Limit<Bytes>, ReadError> {
    match text.trim() {
        "max" => Ok(Limit::Unlimited),
        other => file::number(path, other).map(|bytes| Limit::At(Bytes::new(bytes))),
    }
}

fn cpuset(dir: &Path, errors: &mut Errors) -> Option<Vec<u32>> {
    const NAME: &str = "cpuset.cpus.effective";
    let own = cpus(&dir.join(NAME), errors)?;
    let parent = cpus(&dir.parent()?.join(NAME), errors)?;
    (own.len() < parent.len()).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn max_is_unlimited_and_a_number_is_a_limit() {
        let path = Path::new("memory.max");
        assert_eq!(limit(path, "max\n").unwrap(), Limit::Unlimited);
        assert_eq!(limit(path, "0\n").unwrap(), Limit::At(Bytes::new(0)));
        for bad in ["", "-1", "maximum", "1 2"] {
            assert!(limit(path, bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_a_limit_and_nothing_else_is(bytes: u64, bad in "\\PC{0,12}|-?[1-9][0-9]{20,30}") {
            let path = Path::new("memory.max");
            prop_assert_eq!(limit(path, &format!("{bytes}\n")).unwrap(), Limit::At(Bytes::new(bytes)));
            match limit(path, &bad) {
                Ok(Limit::Unlimited) => prop_assert_eq!(bad.trim(), "max"),
                Ok(Limit::At(read)) => prop_assert_eq!(bad.trim().parse::<u64>(), Ok(read.get())),
                Err(error) => prop_assert!(error.to_string().contains("memory.max")),
            }
        }

        #[test]
        fn a_file_says_what_it_says_and_what_it_lacks_is_absent(
            usage in proptest::option::of(any::<u64>()), user in proptest::option::of(any::<u64>()),
            bad in "-[0-9]{1,20}|max|[1-9][0-9]{20,30}|",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let write = |usage: Option<String>| {
                let usage = usage.map(|value| format!("usage_usec {value}\n")).unwrap_or_default();
                let user = user.map(|value| format!("user_usec {value}\n")).unwrap_or_default();
                std::fs::write(dir.path().join("cpu.stat"), usage + &user).unwrap();
            };
            let mut errors = Errors::default();
            write(usage.map(|value| value.to_string()));
            let read = cpu(dir.path(), &mut Counts::new(), &mut errors);
            prop_assert_eq!(read.total, usage.map(Duration::from_micros));
            prop_assert_eq!((read.user, read.system), (user.map(Duration::from_micros), None));
            prop_assert_eq!(errors.counts().count(), 0);
            write(Some(bad));
            let read = cpu(dir.path(), &mut Counts::new(), &mut errors);
            prop_assert_eq!((read.total, read.user), (None, user.map(Duration::from_micros)));
            prop_assert_eq!(errors.counts().map(|(_, count)| count).sum::<u64>(), 1);
        }
    }
}
