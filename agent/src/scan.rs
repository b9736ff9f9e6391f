//! One scan: from directories and processes to nodes with their jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use steward_common::id::{JobId, NodeName, Uid};
use steward_common::slurm::cgroup_path::JobDir;
use steward_common::slurm::sluid::Sluid;
use steward_common::unit::Bytes;

use crate::config::{Config, Scratch};
use crate::host::Host;
use crate::kernel::cgroup::{Hierarchy, JobPlace, NoHierarchy, Pid};
use crate::kernel::environment::{self, Environment};
use crate::kernel::error::{Errors, ReadError, Reason};
use crate::kernel::mount::{Mount, MountTables};
use crate::kernel::process::{Handle, ProcessId, Stat};
use crate::kernel::{descriptor, stepd};
use crate::ledger::{CpuLedger, IoLedger, Seen};
use crate::names::Names;
use crate::node::{Files, JobSample, Node, Processes};

/// How many environments of one job are looked at in one scan; the first is nearly always the one.
const ENVIRONMENTS_A_SCAN: usize = 4;

/// What one scan found.
#[derive(Debug)]
pub struct Scan {
    /// The nodes of this host; none while the cluster's name is not known.
    pub nodes: Vec<Node>,
    /// What could not be read.
    pub errors: Errors,
}

/// Scans, and remembers what the next scan must know.
#[derive(Debug)]
pub struct Scanner {
    config: Config,
    host: Host,
    hierarchy: Hierarchy,
    names: Names,
    runs: BTreeMap<(NodeName, JobId), Run>,
    sluids: HashMap<Sluid, JobId>,
}

/// A job on a node from its first sight to its last.
#[derive(Debug, Default)]
struct Run {
    sluid: Option<Sluid>,
    cpu: CpuLedger,
    io: IoLedger,
    environment: Option<Environment>,
    environments_read: HashSet<(ProcessId, String)>,
    owner: Option<Uid>,
    before: Option<(Instant, Duration)>,
    last: Option<JobSample>,
    lingered: u32,
}

impl Scanner {
    /// Looks where things are.
    ///
    /// # Errors
    /// If there is no cgroup hierarchy.
    pub fn new(config: Config) -> Result<Self, NoHierarchy> {
        let hierarchy = Hierarchy::detect(&config.paths.cgroup)?;
        let host = Host::discover(&config);
        Ok(Self {
            config,
            host,
            hierarchy,
            names: Names::default(),
            runs: BTreeMap::new(),
            sluids: HashMap::new(),
        })
    }

    /// Who this host is.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The hierarchy it reads.
    #[must_use]
    pub const fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// How many step and task directories the jobs of `node` have.
    #[must_use]
    pub fn steps_and_tasks(&mut self, node: &NodeName) -> (usize, usize) {
        let mut errors = Errors::default();
        let places = self.hierarchy.jobs(&mut errors);
        places
            .iter()
            .filter(|place| self.host.node_of(place.node.as_ref()).as_ref() == Some(node))
            .map(|place| place.steps_and_tasks(&mut errors))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Reads everything once. `now` is the time to which rates refer.
    pub fn scan(&mut self, now: Instant) -> Scan {
        let mut errors = Errors::default();
        let mut mounts = MountTables::new(&self.config.paths.proc, &mut errors);
        let mut running: BTreeMap<NodeName, Vec<JobSample>> = BTreeMap::new();
        let mut leftovers: BTreeMap<NodeName, u64> = BTreeMap::new();
        let mut seen: BTreeSet<(NodeName, JobId)> = BTreeSet::new();

        let places = self.hierarchy.jobs(&mut errors);
        let live_steps = stepd::LiveSteps::new(&self.config.paths.proc);
        for place in &places {
            let Some(node) = self.host.node_of(place.node.as_ref()) else {
                continue;
            };
            let Some(id) = self.job_id(place, &mut errors) else {
                continue;
            };
            let key = (node.clone(), id);
            match self.job(&key, place, now, &live_steps, &mut mounts, &mut errors) {
                Found::Job(sample) => {
                    running.entry(node).or_default().push(*sample);
                    seen.insert(key);
                }
                Found::Leftover => *leftovers.entry(node).or_insert(0) += 1,
                Found::Nothing => {}
            }
        }

        self.sluids
            .retain(|sluid, _| places.iter().any(|place| place.job == JobDir::Sluid(*sluid)));
        let mut ended = self.linger(&seen);
        if self.host.cluster.is_none() {
            self.learn_cluster(&running);
        }
        let Some(cluster) = self.host.cluster.clone() else {
            return Scan { nodes: Vec::new(), errors };
        };
        let nodes = self
            .host
            .nodes(&self.hierarchy.named_nodes())
            .into_iter()
            .map(|name| {
                let mut jobs = running.remove(&name).unwrap_or_default();
                jobs.append(&mut ended.remove(&name).unwrap_or_default());
                let leftovers = leftovers.remove(&name).unwrap_or(0);
                Node { cluster: cluster.clone(), name, jobs, leftovers }
            })
            .collect();
        Scan { nodes, errors }
    }

    /// The number of a job; a directory named by SLUID is asked once who looks after it.
    fn job_id(&mut self, place: &JobPlace, errors: &mut Errors) -> Option<JobId> {
        let sluid = match place.job {
            JobDir::Id(id) => return Some(id),
            JobDir::Sluid(sluid) => sluid,
        };
        if let Some(known) = self.sluids.get(&sluid) {
            return Some(*known);
        }
        let members = self.hierarchy.members(place, errors);
        let id = stepd::job_of(&self.config.paths.proc, &members.stepds)?;
        self.sluids.insert(sluid, id);
        Some(id)
    }

    /// The last word on the cluster's name: slurm.conf may have come since, else a job knows it.
    fn learn_cluster(&mut self, running: &BTreeMap<NodeName, Vec<JobSample>>) {
        self.host = Host::discover(&self.config);
        if self.host.cluster.is_none() {
            self.host.cluster = running
                .values()
                .flatten()
                .find_map(|job| job.environment.cluster.as_deref()?.parse().ok());
        }
    }

    /// The final values of jobs that are gone, for as long as they are to be seen.
    fn linger(&mut self, seen: &BTreeSet<(NodeName, JobId)>) -> BTreeMap<NodeName, Vec<JobSample>> {
        let most = self.config.linger;
        let mut ended: BTreeMap<NodeName, Vec<JobSample>> = BTreeMap::new();
        self.runs.retain(|key, run| {
            if seen.contains(key) {
                run.lingered = 0;
                return true;
            }
            if run.lingered >= most {
                return false;
            }
            run.lingered += 1;
            if let Some(last) = &run.last {
                let sample = JobSample { ended: true, ..last.clone() };
                ended.entry(key.0.clone()).or_default().push(sample);
            }
            true
        });
        ended
    }

    fn job(
        &mut self,
        key: &(NodeName, JobId),
        place: &JobPlace,
        now: Instant,
        live_steps: &stepd::LiveSteps,
        mounts: &mut MountTables,
        errors: &mut Errors,
    ) -> Found {
        let stats = self.hierarchy.read(place, errors);
        let members = self.hierarchy.members(place, errors);
        let group = read_processes(&self.config, &members.processes, mounts, errors);
        let has_stepd = !members.stepds.is_empty() || group.stepds > 0;
        if !place.exists() {
            // It ended while it was read: what was read is not one moment's truth.
            return Found::Nothing;
        }
        if group.processes.is_empty() && !has_stepd && !live_steps.has(key.1) {
            return Found::Leftover;
        }

        let sluid = match place.job {
            JobDir::Sluid(sluid) => Some(sluid),
            JobDir::Id(_) => None,
        };
        let run = self.runs.entry(key.clone()).or_default();
        if run.sluid != sluid {
            // Requeued: the same number, another run, whose counters start afresh.
            *run = Run { sluid, ..Run::default() };
        }
        run.owner = run.owner.or(place.uid).or_else(|| owner(&self.config.paths.proc, &group));
        let user = run.owner.and_then(|uid| match self.names.of(uid.get()) {
            Ok(name) => name,
            Err(crate::names::Slow) => {
                errors.count(Reason::Names);
                None
            }
        });
        if let Some(uid) = run.owner {
            let excluded = &self.config.exclude.users;
            if excluded.iter().any(|one| one.is(uid.get(), user.as_deref())) {
                self.runs.remove(key);
                return Found::Nothing;
            }
        }
        if run.environment.is_none() {
            run.learn_environment(key.1, &self.config.paths.proc, &group, errors);
        }
        let environment = run.environment.clone().unwrap_or_default();

        let cpu = run.cpu.observe(stats.cpu, place.generation());
        let cores_busy = run.rate(cpu.total, now);
        let confined = stats.cpuset.and_then(|cpus| u32::try_from(cpus.len()).ok());
        let sample = JobSample {
            id: key.1,
            sluid,
            uid: run.owner,
            user,
            cpus: confined.or(environment.cpus),
            environment,
            cpu,
            cores_busy,
            memory: stats.memory,
            io: group.io_readable.then(|| run.io(&self.config.paths.proc, &group)),
            files: group.files_readable.then_some(group.files),
            processes: group.totals,
            ended: false,
        };
        run.last = Some(sample.clone());
        Found::Job(Box::new(sample))
    }
}

enum Found {
    Job(Box<JobSample>),
    Leftover,
    Nothing,
}

impl Run {
    /// Cores kept busy since the scan before.
    fn rate(&mut self, total: Option<Duration>, now: Instant) -> Option<f64> {
        let total = total?;
        let before = self.before.replace((now, total));
        let (then, earlier) = before?;
        let elapsed = now.saturating_duration_since(then).as_secs_f64();
        (elapsed > 0.0).then(|| total.saturating_sub(earlier).as_secs_f64() / elapsed)
    }

    /// I/O of the processes of this scan, and of zombies: they are in no cgroup any more, yet
    /// nobody has taken their I/O over.
    fn io(&mut self, proc_root: &Path, group: &Group) -> crate::kernel::process::Io {
        let mut now: HashMap<ProcessId, Seen> =
            group.processes.iter().filter_map(|one| Some((one.id, one.seen?))).collect();
        for (id, before) in self.io.live() {
            if !now.contains_key(id)
                && let Some(io) = zombie_io(proc_root, *id)
            {
                now.insert(*id, Seen { io, parent: before.parent });
            }
        }
        self.io.observe(now)
    }

    fn learn_environment(
        &mut self,
        job: JobId,
        proc_root: &Path,
        group: &Group,
        errors: &mut Errors,
    ) {
        let mut looked_at = 0;
        for process in &group.processes {
            // Reading takes the target's memory lock; one that sleeps in the kernel may hold it.
            let key = (process.id, process.stat.name.clone());
            if process.stat.state == 'D' || self.environments_read.contains(&key) {
                continue;
            }
            if looked_at == ENVIRONMENTS_A_SCAN {
                return;
            }
            looked_at += 1;
            self.environments_read.insert(key);
            let read = process.reopen(proc_root).and_then(|handle| environment::read(&handle));
            if let Some(found) = errors.take(read)
                && found.job.as_deref() == Some(job.to_string().as_str())
            {
                self.environment = Some(found);
                self.environments_read.clear();
                return;
            }
        }
    }
}

fn zombie_io(proc_root: &Path, id: ProcessId) -> Option<crate::kernel::process::Io> {
    let handle = Handle::open(proc_root, id.pid).ok()?;
    let stat = handle.stat().ok()?;
    (stat.started == id.started && stat.state == 'Z').then(|| handle.io().ok()).flatten()
}

/// The owner by the processes, on hierarchies whose paths do not tell: the first who is not root.
fn owner(proc_root: &Path, group: &Group) -> Option<Uid> {
    let mut uids =
        group.processes.iter().filter_map(|one| one.reopen(proc_root).ok()?.real_uid().ok());
    let first = uids.next()?;
    let uid = if first == 0 { uids.find(|uid| *uid != 0).unwrap_or(0) } else { first };
    Some(Uid::new(uid))
}

/// The processes of one job as one scan found them.
#[derive(Debug, Default)]
struct Group {
    processes: Vec<OneProcess>,
    stepds: u64,
    totals: Processes,
    files: Files,
    files_readable: bool,
    io_readable: bool,
}

#[derive(Debug)]
struct OneProcess {
    id: ProcessId,
    stat: Stat,
    seen: Option<Seen>,
}

impl OneProcess {
    /// Handles are not kept: a job may have more processes than the agent may have open files.
    fn reopen(&self, proc_root: &Path) -> Result<Handle, ReadError> {
        let handle = Handle::open(proc_root, self.id.pid)?;
        if handle.stat()?.started == self.id.started {
            Ok(handle)
        } else {
            Err(ReadError::Vanished { path: handle.path("stat") })
        }
    }
}

fn read_processes(
    config: &Config,
    pids: &BTreeSet<Pid>,
    mounts: &mut MountTables,
    errors: &mut Errors,
) -> Group {
    let mut group = Group { files_readable: true, io_readable: true, ..Group::default() };
    let mut distinct: HashMap<std::path::PathBuf, bool> = HashMap::new();
    for pid in pids {
        let opened = Handle::open(&config.paths.proc, *pid).and_then(|handle| {
            let stat = handle.stat()?;
            Ok((handle, stat))
        });
        let Some((handle, stat)) = errors.take(opened) else {
            continue;
        };
        if stepd::is_stepd(&handle, &stat) {
            group.stepds += 1;
            continue;
        }
        let io = handle.io();
        group.io_readable &=
            !matches!(io, Err(ReadError::Denied { .. } | ReadError::Malformed { .. }));
        let seen = errors.take(io).map(|io| Seen { parent: stat.parent, io });

        let descriptors = descriptor::read(&handle, mounts, errors);
        group.files_readable &= matches!(descriptors, Ok(_) | Err(ReadError::Vanished { .. }));
        if let Some(found) = errors.take(descriptors) {
            group.files.descriptors += found.count;
            for file in found.files {
                let scratch = on_scratch(&config.scratch, &file.path, &file.mount);
                distinct.insert(file.path, scratch);
            }
        }

        group.totals.count += 1;
        *group.totals.threads.entry(stat.name.clone()).or_insert(0) += stat.threads;
        group.totals.rss = Bytes::new(group.totals.rss.get().saturating_add(stat.rss.get()));
        let id = ProcessId { pid: *pid, started: stat.started };
        group.processes.push(OneProcess { id, stat, seen });
    }
    group.files.distinct = count(distinct.len());
    group.files.on_scratch = count(distinct.values().filter(|scratch| **scratch).count());
    group
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// By text alone: the file system may hang.
fn on_scratch(scratch: &Scratch, path: &Path, mount: &Mount) -> bool {
    scratch.paths.iter().any(|prefix| path.starts_with(prefix))
        || scratch.mount_types.contains(&mount.kind)
}
