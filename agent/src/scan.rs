//! One scan: from directories and processes to nodes with their jobs.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::time::Instant;

use steward_common::id::{JobId, NodeName, Uid};
use steward_common::slurm::cgroup_path::JobDir;
use steward_common::slurm::sluid::Sluid;

use crate::config::Config;
use crate::group::Tools;
use crate::host::Host;
use crate::kernel::cgroup::{Hierarchy, JobPlace, NothingToRead};
use crate::kernel::error::{Errors, Reason};
use crate::kernel::mount::MountTables;
use crate::kernel::process::Proc;
use crate::kernel::stepd;
use crate::names::{Names, Slow};
use crate::node::{JobSample, Node};
use crate::run::Run;
use crate::state::State;

/// What one scan found.
#[derive(Debug)]
pub struct Scan {
    /// The nodes of this host; none while the cluster's name is not known.
    pub nodes: Vec<Node>,
    /// What could not be read.
    pub errors: Errors,
}

/// A job on a node.
type Key = (NodeName, JobId);

/// Scans, and remembers what the next scan must know.
#[derive(Debug)]
pub struct Scanner {
    config: Config,
    host: Host,
    hierarchy: Hierarchy,
    proc: Proc,
    names: Names,
    runs: BTreeMap<Key, Run>,
    sluids: HashMap<Sluid, JobId>,
}

impl Scanner {
    /// Looks where things are.
    ///
    /// # Errors
    /// If there are no cgroups or no processes.
    pub fn new(config: Config) -> Result<Self, NothingToRead> {
        let proc = &config.paths.proc;
        if !proc.join("self").exists() && !proc.join("1").exists() {
            return Err(NothingToRead::NoProcesses(proc.clone()));
        }
        Ok(Self {
            hierarchy: Hierarchy::detect(&config.paths.cgroup)?,
            host: Host::discover(&config),
            proc: Proc::new(&config.paths.proc),
            names: Names::default(),
            runs: BTreeMap::new(),
            sluids: HashMap::new(),
            config,
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

    /// Goes on from what an earlier agent left in `state`.
    ///
    /// # Errors
    /// If the file cannot be understood; everything starts anew then.
    pub fn resume(&mut self, state: &State) -> Result<(), String> {
        self.runs = state.load()?;
        Ok(())
    }

    /// Leaves what a later agent must know in `state`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, state: &State) -> Result<(), String> {
        state.save(&self.runs)
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

    /// Reads everything once.
    pub fn scan(&mut self) -> Scan {
        let mut errors = Errors::default();
        let mut mounts = MountTables::new(&self.config.paths.proc);
        let live_steps = stepd::LiveSteps::default();
        self.names.begin_scan();

        let mut jobs: BTreeMap<Key, JobSample> = BTreeMap::new();
        let mut leftovers: BTreeMap<NodeName, u64> = BTreeMap::new();
        let places = self.hierarchy.jobs(&mut errors);
        for place in &places {
            let Some(node) = self.host.node_of(place.node.as_ref()) else { continue };
            let Some(id) = self.job_id(place, &mut errors) else { continue };
            let key = (node, id);
            if jobs.contains_key(&key) {
                // Two directories for one job: one is what an earlier run left behind.
                *leftovers.entry(key.0).or_insert(0) += 1;
                continue;
            }
            match self.job(&key, place, &live_steps, &mut mounts, &mut errors) {
                Found::Job(sample) => {
                    jobs.insert(key, *sample);
                }
                Found::Leftover => *leftovers.entry(key.0).or_insert(0) += 1,
                Found::Nothing => {}
            }
        }
        self.sluids.retain(|sluid, _| places.iter().any(|one| one.job == JobDir::Sluid(*sluid)));

        if self.host.cluster.is_none() {
            self.learn_cluster(jobs.values());
        }
        let ended = self.linger(&jobs, errors.unlisted());
        let Some(cluster) = self.host.cluster.clone() else {
            return Scan { nodes: Vec::new(), errors };
        };
        let mut nodes: BTreeMap<NodeName, Node> = BTreeMap::new();
        let with_jobs = jobs.keys().map(|key| key.0.clone());
        for name in self.host.nodes(&self.hierarchy.named_nodes()).into_iter().chain(with_jobs) {
            let leftovers = leftovers.get(&name).copied().unwrap_or(0);
            nodes.entry(name.clone()).or_insert_with(|| Node {
                cluster: cluster.clone(),
                name,
                jobs: Vec::new(),
                leftovers,
            });
        }
        for (key, sample) in jobs.into_iter().chain(ended) {
            if let Some(node) = nodes.get_mut(&key.0) {
                node.jobs.push(sample);
            }
        }
        Scan { nodes: nodes.into_values().collect(), errors }
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
        let id = stepd::job_of(&members.stepds, &mut self.proc)?;
        self.sluids.insert(sluid, id);
        Some(id)
    }

    /// The last word on the cluster's name: slurm.conf may have come since, else a job knows it.
    fn learn_cluster<'a>(&mut self, mut running: impl Iterator<Item = &'a JobSample>) {
        self.host = Host::discover(&self.config);
        if self.host.cluster.is_none() {
            self.host.cluster =
                running.find_map(|job| job.environment.cluster.as_deref()?.parse().ok());
        }
    }

    /// The final values of jobs that are gone, for as long as they are to be seen. A rate is not
    /// one: nothing runs any more. Where something could not be listed, nobody is gone.
    fn linger(
        &mut self,
        running: &BTreeMap<Key, JobSample>,
        unlisted: bool,
    ) -> Vec<(Key, JobSample)> {
        let most = self.config.linger;
        let mut ended = Vec::new();
        self.runs.retain(|key, run| {
            if running.contains_key(key) {
                run.lingered = 0;
                return true;
            }
            if !unlisted {
                run.lingered += 1;
            }
            let lingers = run.lingered <= most;
            if lingers && let Some(last) = run.last.clone() {
                let ended_now = !unlisted;
                ended.push((key.clone(), JobSample { ended: ended_now, cores_busy: None, ..last }));
            }
            lingers
        });
        ended
    }

    fn job(
        &mut self,
        key: &Key,
        place: &JobPlace,
        live_steps: &stepd::LiveSteps,
        mounts: &mut MountTables,
        errors: &mut Errors,
    ) -> Found {
        let generation = place.generation();
        let read_at = Instant::now();
        let stats = self.hierarchy.read(place, errors);
        let (Some(generation), true) = (generation, generation == place.generation()) else {
            // Removed, or removed and made anew, while it was read: not one moment's truth. The
            // job stands as it was; the next scan will see what became of it.
            let last = self.runs.get(key).and_then(|run| run.last.clone());
            return last.map_or(Found::Nothing, |last| Found::Job(Box::new(last)));
        };
        let members = self.hierarchy.members(place, errors);

        let sluid = match place.job {
            JobDir::Sluid(sluid) => Some(sluid),
            JobDir::Id(_) => None,
        };
        let mut run = self.runs.remove(key).unwrap_or_default();
        let stale = run.same_directory_only && run.cpu.is_remade(generation);
        if run.sluid != sluid || stale {
            // Requeued: the same number, another run, whose counters start afresh.
            run = Run::new(sluid, None);
        }
        let mut tools =
            Tools { proc: &mut self.proc, mounts, scratch: &self.config.scratch, errors };
        let found = run.group.read(&members, &mut run.io, &mut tools);
        let has_stepd = found.stepd || !members.stepds.is_empty();
        if found.processes.is_empty()
            && found.totals.is_some()
            && !has_stepd
            && !live_steps.has(key.1, &mut self.proc)
        {
            // Its last values linger if it was a job a moment ago.
            if run.last.is_some() {
                self.runs.insert(key.clone(), run);
            }
            return Found::Leftover;
        }

        let owner = run.owner(place.uid, &found, &mut self.proc);
        let user = self.user(owner, errors);
        if self.excluded(owner, &user) {
            return Found::Nothing;
        }
        let remade = run.cpu.is_remade(generation);
        if remade {
            run.forget_environment();
        }
        run.learn_environment(key.1, &found, &mut self.proc, errors);
        if remade && run.is_requeue() {
            run = Run::new(sluid, run.environment);
            let mut tools =
                Tools { proc: &mut self.proc, mounts, scratch: &self.config.scratch, errors };
            run.group.read(&members, &mut run.io, &mut tools);
        }
        let environment = run.environment.clone().unwrap_or_default();

        let io = run.io.finish();
        let cpu = run.cpu.observe(stats.cpu, generation);
        let cores_busy = run.rate(cpu.total, read_at);
        let confined = stats.cpuset.and_then(|cpus| u32::try_from(cpus.len()).ok());
        let sample = JobSample {
            id: key.1,
            sluid,
            uid: owner,
            user: user.unwrap_or_default(),
            cpus: confined.and_then(NonZeroU32::new).or(environment.cpus),
            environment,
            cpu,
            cores_busy,
            memory: stats.memory,
            io: found.io_known.then_some(io),
            files: found.files,
            processes: found.totals,
            ended: false,
        };
        run.last = Some(sample.clone());
        self.runs.insert(key.clone(), run);
        Found::Job(Box::new(sample))
    }

    /// The owner's name, if there is one; `Slow` while it is not known.
    fn user(&mut self, owner: Option<Uid>, errors: &mut Errors) -> Result<Option<String>, Slow> {
        let Some(uid) = owner else { return Ok(None) };
        let name = self.names.of(uid.get());
        if name.is_err() {
            errors.count(Reason::Names);
        }
        name
    }

    /// Whether the job is not to be reported. Where somebody is excluded, a job whose owner is not
    /// known yet may be theirs.
    fn excluded(&self, owner: Option<Uid>, user: &Result<Option<String>, Slow>) -> bool {
        let excluded = &self.config.exclude.users;
        match (owner, user) {
            (Some(uid), Ok(name)) => excluded.iter().any(|one| one.is(uid.get(), name.as_deref())),
            (None, _) | (_, Err(Slow)) => !excluded.is_empty(),
        }
    }
}

enum Found {
    Job(Box<JobSample>),
    Leftover,
    Nothing,
}
