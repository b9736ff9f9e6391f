//! cgroup v1: a tree by controller, `<controller>/slurm[_<node>]/uid_U/job_J/step_S/task_T`.

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
use super::scope::{Scopes, directories, has_subdirectories};
use crate::scheduler::Scheduler;

/// The controllers below which Slurm makes directories, the one that tracks all processes first.
const CONTROLLERS: [&str; 6] = ["freezer", "cpuacct", "memory", "cpuset", "devices", "cpu"];

/// Controllers that are mounted together under both names on hosts without the usual link.
const JOINT: [(&str, &str); 2] = [("cpuacct", "cpu,cpuacct"), ("cpu", "cpu,cpuacct")];

/// The v1 mounts below one root.
#[derive(Debug)]
pub struct V1 {
    controllers: Vec<(&'static str, Scopes)>,
}

impl V1 {
    /// The mounts at `root`; `None` if there is no controller that Slurm uses.
    #[must_use]
    pub fn new(root: &Path, scheduler: &Arc<dyn Scheduler>) -> Option<Self> {
        let scopes = |path: PathBuf| Scopes::new(&path, Version::V1, Arc::clone(scheduler));
        let controllers: Vec<_> = CONTROLLERS
            .into_iter()
            .filter_map(|name| mount(root, name).map(|path| (name, scopes(path))))
            .collect();
        (!controllers.is_empty()).then_some(Self { controllers })
    }

    /// The controllers that are mounted.
    pub fn controllers(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.controllers.iter().map(|(name, _)| *name)
    }

    /// Every job directory, those of one job put together.
    pub fn jobs(&mut self, full: bool, errors: &mut Errors) -> Vec<JobPlace> {
        // Slurm uses the same path in every controller that it uses: one search serves all.
        let mut places: Vec<JobPlace> = Vec::new();
        let mut leader: Option<Scopes> = None;
        for (controller, scopes) in &mut self.controllers {
            let jobs = match &leader {
                Some(leader) => scopes.jobs_like(leader, full, errors),
                None => scopes.jobs(full, errors),
            };
            if leader.is_none() && scopes.known().next().is_some() {
                leader = Some(scopes.clone());
            }
            for found in jobs {
                let dir = ((*controller).to_owned(), found.path);
                let same = places.iter_mut().find(|place| {
                    place.job == found.job && place.node == found.node && place.uid == found.uid
                });
                match same {
                    Some(place) => place.dirs.push(dir),
                    None => places.push(JobPlace {
                        node: found.node,
                        uid: found.uid,
                        job: found.job,
                        dirs: vec![dir],
                    }),
                }
            }
        }
        places
    }

    /// The nodes whose scopes name them.
    #[must_use]
    pub fn named_nodes(&self) -> BTreeSet<NodeName> {
        self.controllers
            .iter()
            .flat_map(|(_, scopes)| scopes.known())
            .filter_map(|scope| scope.node.clone())
            .collect()
    }

    /// The directories in which new jobs appear, of the controller that has them first.
    #[must_use]
    pub fn holders(&self) -> &[PathBuf] {
        let all = self.controllers.iter().map(|(_, scopes)| scopes.holders());
        all.into_iter().find(|holders| !holders.is_empty()).unwrap_or_default()
    }

    /// The scope directories.
    #[must_use]
    pub fn scopes(&self) -> Vec<&Path> {
        self.controllers
            .iter()
            .flat_map(|(_, scopes)| scopes.known())
            .map(|scope| scope.path.as_path())
            .collect()
    }
}

fn mount(root: &Path, controller: &str) -> Option<PathBuf> {
    let joint = JOINT.into_iter().filter(|(name, _)| *name == controller).map(|(_, dir)| dir);
    std::iter::once(controller).chain(joint).map(|name| root.join(name)).find(|path| path.is_dir())
}

/// What the files of a job say.
#[must_use]
pub fn read(place: &JobPlace, errors: &mut Errors) -> CgroupStats {
    let mut counts = Counts::new();
    if let Some(dir) = place.dir("cpu") {
        throttling(dir, &mut counts, errors);
    }
    CgroupStats {
        counts,
        tasks: None,
        cpu: place.dir("cpuacct").map(|dir| cpu(dir, place, errors)).unwrap_or_default(),
        memory: place.dir("memory").map(|dir| memory(dir, errors)).unwrap_or_default(),
        cpuset: place.dir("cpuset").and_then(|dir| cpuset(dir, errors)),
    }
}

fn cpu(dir: &Path, place: &JobPlace, errors: &mut Errors) -> CpuStats {
    let total = errors
        .take_optional(file::optional_number(&dir.join("cpuacct.usage")))
        .map(Duration::from_nanos);
    let stat_path = dir.join("cpuacct.stat");
    let stat = errors.take_optional(file::optional_text(&stat_path));
    let mut ticks = |key| {
        let text = stat.as_deref()?;
        errors.take_optional(file::keyed(&stat_path, text, key)).map(from_ticks)
    };
    let user = ticks("user");
    let system = ticks("system");
    CpuStats { total, user, system, cores: cores(dir, place, errors) }
}

/// Slurm makes no directory of the cpu controller, but where it is mounted with cpuacct there is one.
fn throttling(dir: &Path, counts: &mut Counts, errors: &mut Errors) {
    let path = dir.join("cpu.stat");
    let Some(text) = errors.take_optional(file::optional_text(&path)) else { return };
    for (count, key) in [
        (Count::CpuPeriods, "nr_periods"),
        (Count::CpuThrottled, "nr_throttled"),
        (Count::CpuThrottledNanos, "throttled_time"),
    ] {
        let value = errors.take_optional(file::keyed(&path, &text, key));
        counts.extend(value.map(|value| (count, value)));
    }
}

/// How often the memory limit was reached in the job's own directory: the cheap sign that it is
/// worth asking [`memory_events`].
pub fn limit_hits(place: &JobPlace, errors: &mut Errors) -> Option<u64> {
    let path = place.dir("memory")?.join("memory.failcnt");
    errors.take_optional(file::optional_number(&path))
}

/// Limits reached and processes killed, by directory: v1 counts each only where it happened.
pub fn memory_events(place: &JobPlace, errors: &mut Errors) -> Vec<(PathBuf, Counts)> {
    let mut found = Vec::new();
    if let Some(dir) = place.dir("memory") {
        memory_events_below(dir, &mut found, errors);
    }
    found
}

fn memory_events_below(dir: &Path, into: &mut Vec<(PathBuf, Counts)>, errors: &mut Errors) {
    let mut counts = Counts::new();
    let hits = errors.take_optional(file::optional_number(&dir.join("memory.failcnt")));
    counts.extend(hits.map(|hits| (Count::MemoryLimitHits, hits)));
    let path = dir.join("memory.oom_control");
    // Since Linux 4.13.
    let kills = errors
        .take_optional(file::optional_text(&path))
        .and_then(|text| errors.take_optional(file::keyed(&path, &text, "oom_kill")));
    counts.extend(kills.map(|kills| (Count::MemoryOomKills, kills)));
    into.push((dir.to_path_buf(), counts));
    if has_subdirectories(dir) {
        for (_, child) in directories(dir, errors) {
            memory_events_below(&child, into, errors);
        }
    }
}

/// `cpuacct.stat` counts in USER_HZ.
fn from_ticks(ticks: u64) -> Duration {
    let hz = procfs::ticks_per_second().max(1);
    // Whole seconds and the rest apart, so that no count of ticks can overflow.
    Duration::from_secs(ticks / hz) + Duration::from_nanos(ticks % hz * 1_000_000_000 / hz)
}

fn cores(dir: &Path, place: &JobPlace, errors: &mut Errors) -> Option<Vec<(u32, Duration)>> {
    let path = dir.join("cpuacct.usage_percpu");
    let text = errors.take_optional(file::optional_text(&path))?;
    let all = errors.take(per_cpu(&path, &text))?;
    let confined = place.dir("cpuset").and_then(|dir| cpus(&dir.join("cpuset.cpus"), errors));
    Some(match confined {
        Some(own) => all.into_iter().filter(|(core, _)| own.contains(core)).collect(),
        None => all,
    })
}

/// One number of nanoseconds for each possible CPU, in order.
fn per_cpu(path: &Path, text: &str) -> Result<Vec<(u32, Duration)>, ReadError> {
    (0..)
        .zip(text.split_whitespace())
        .map(|(core, nanos)| Ok((core, Duration::from_nanos(file::number(path, nanos)?))))
        .collect()
}

fn memory(dir: &Path, errors: &mut Errors) -> MemoryStats {
    let mut number =
        |name: &str| errors.take_optional(file::optional_number(&dir.join(name))).map(Bytes::new);
    let usage = number("memory.usage_in_bytes");
    let peak = number("memory.max_usage_in_bytes");
    let kernel = number("memory.kmem.usage_in_bytes");
    let limit = number("memory.limit_in_bytes").map(limit);
    let stat_path = dir.join("memory.stat");
    let stat = errors.take_optional(file::optional_text(&stat_path));
    let mut keyed = |key| {
        let text = stat.as_deref()?;
        errors.take_optional(file::keyed(&stat_path, text, key)).map(Bytes::new)
    };
    let anon = keyed("total_rss");
    MemoryStats {
        usage,
        peak,
        anon,
        file: keyed("total_cache"),
        shmem: keyed("total_shmem"),
        kernel,
        swap: keyed("total_swap"),
        slurm: anon,
        limit,
    }
}

/// v1 writes "no limit" as the largest count of pages, in bytes; pages have up to 64 KiB.
fn limit(bytes: Bytes) -> Limit<Bytes> {
    const LARGEST: u64 = i64::MAX.unsigned_abs() - 0xffff;
    if bytes.get() >= LARGEST { Limit::Unlimited } else { Limit::At(bytes) }
}

/// Compared with the scope's, two levels up: the user's holds only what the user's jobs have.
fn cpuset(dir: &Path, errors: &mut Errors) -> Option<Vec<u32>> {
    const NAME: &str = "cpuset.cpus";
    let own = cpus(&dir.join(NAME), errors)?;
    let scope = cpus(&dir.parent()?.parent()?.join(NAME), errors)?;
    (own.len() < scope.len()).then_some(own)
}

/// The directory that holds all processes of a job.
#[must_use]
pub fn tracking_dir(place: &JobPlace) -> Option<&Path> {
    CONTROLLERS.iter().find_map(|controller| place.dir(controller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_seconds_over_user_hz_and_cannot_overflow() {
        let hz = procfs::ticks_per_second();
        assert_eq!(from_ticks(hz * 30 + hz / 2), Duration::from_millis(30_500));
        assert!(from_ticks(u64::MAX) > Duration::from_secs(1));
    }

    #[test]
    fn the_largest_page_count_is_no_limit_for_every_page_size() {
        for page in [4096, 16384, 65536] {
            let written = i64::MAX.unsigned_abs() / page * page;
            assert_eq!(limit(Bytes::new(written)), Limit::Unlimited);
        }
        let four_tib = Bytes::new(4 << 40);
        assert_eq!(limit(four_tib), Limit::At(four_tib));
    }

    #[test]
    fn each_core_keeps_its_number() {
        let path = Path::new("cpuacct.usage_percpu");
        let cores = per_cpu(path, "5 0 7000000000\n").unwrap();
        assert_eq!(
            cores,
            [(0, Duration::from_nanos(5)), (1, Duration::ZERO), (2, Duration::from_secs(7))]
        );
        assert!(per_cpu(path, "5 x").is_err());
    }

    proptest! {
        #[test]
        fn ticks_keep_their_order_and_their_seconds(ticks: u64, more in 0_u64..1000) {
            let hz = procfs::ticks_per_second();
            prop_assert_eq!(from_ticks(ticks).as_secs(), ticks / hz);
            prop_assert!(from_ticks(ticks.saturating_add(more)) >= from_ticks(ticks));
        }

        #[test]
        fn every_core_is_read_and_one_that_is_no_number_spoils_the_line(
            nanos in proptest::collection::vec(any::<u64>(), 0..40),
            bad in "-[0-9]{1,20}|max|[1-9][0-9]{20,30}|[a-z]{1,5}", at: prop::sample::Index,
        ) {
            let path = Path::new("cpuacct.usage_percpu");
            let mut words: Vec<String> = nanos.iter().map(u64::to_string).collect();
            let read = per_cpu(path, &(words.join(" ") + " \n")).unwrap();
            let expected = (0..).zip(nanos.iter().map(|nanos| Duration::from_nanos(*nanos)));
            prop_assert_eq!(read, expected.collect::<Vec<_>>());
            words.insert(at.index(words.len() + 1), bad);
            prop_assert!(per_cpu(path, &words.join(" ")).is_err());
        }

        #[test]
        fn a_limit_is_itself_up_to_the_largest_count_of_pages(
            bytes in prop_oneof![any::<u64>(), (1_u64 << 63) - 0x1_8000..(1_u64 << 63) + 1],
        ) {
            let largest = i64::MAX.unsigned_abs() / 65536 * 65536;
            let expected =
                if bytes < largest { Limit::At(Bytes::new(bytes)) } else { Limit::Unlimited };
            prop_assert_eq!(limit(Bytes::new(bytes)), expected);
        }
    }
}
