//! What is known of the jobs and the hardware of one cluster: what portfolios are made of.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use crate::cluster::{Node, Partition};
use crate::efficiency::{gib_hours, hours};
use crate::id::{ClusterName, JobId};
use crate::intern::{Name, Names};
use crate::limit::Limit;
use crate::slurm::ParseError;
use crate::slurm::duration::TimeLimit;
use crate::slurm::hostlist;
use crate::slurm::state::JobState;
use crate::time::Timestamp;
use crate::unit::Bytes;
use crate::window::Window;

use super::usage::Usage;

/// What tells a run of a job from all others of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Slurm's number of the job.
    pub id: JobId,
    /// When it was submitted; a requeued job was submitted again.
    pub submit: Timestamp,
}

/// One run of a job, as rules see it. Names are those of its [`Facts`].
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Which run it is.
    pub key: JobKey,
    /// The array it belongs to, and its place there.
    pub array: Option<(u32, Option<u32>)>,
    /// Its owner.
    pub user: Name,
    /// The account it is charged to.
    pub account: Name,
    /// Its partition.
    pub partition: Name,
    /// Its quality of service.
    pub qos: Name,
    /// Its own name.
    pub name: Name,
    /// The nodes it holds, as Slurm's list; empty if none.
    pub nodes: Name,
    /// Its licences as Slurm lists them; `None` where the source does not tell.
    pub licences: Option<Name>,
    /// Its state.
    pub state: JobState,
    /// When it started.
    pub start: Option<Timestamp>,
    /// When it ended.
    pub end: Option<Timestamp>,
    /// How long it has held its nodes, in seconds.
    pub elapsed: Option<u32>,
    /// How long it may.
    pub time_limit: Option<TimeLimit>,
    /// CPUs held.
    pub cpus: Option<u32>,
    /// How many nodes it holds.
    pub node_count: Option<u32>,
    /// GPUs held; `None` where the source does not tell.
    pub gpus: Option<u32>,
    /// Memory held on all nodes.
    pub memory: Option<Bytes>,
    /// The billing weight of what it holds.
    pub billing: Option<u64>,
    /// What it used.
    pub usage: Usage,
}

impl Job {
    /// Its id as people know it: `739`, or `741_0` for a task of an array.
    #[must_use]
    pub fn shown_id(&self) -> String {
        match self.array {
            Some((array, Some(task))) => format!("{array}_{task}"),
            _ => self.key.id.to_string(),
        }
    }

    /// Whether it holds its nodes at the moment.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state.is_running()
    }

    /// Its time, in seconds; 0 if it never held anything, or nobody knows for how long.
    fn seconds(&self) -> f64 {
        f64::from(self.elapsed.unwrap_or(0))
    }

    /// How long it has held its nodes, in hours.
    #[must_use]
    pub fn hours(&self) -> f64 {
        hours(1.0, self.seconds())
    }

    /// CPU-hours held.
    #[must_use]
    pub fn cpu_hours(&self) -> f64 {
        hours(f64::from(self.cpus.unwrap_or(0)), self.seconds())
    }

    /// GPU-hours held.
    #[must_use]
    pub fn gpu_hours(&self) -> f64 {
        hours(f64::from(self.gpu_count()), self.seconds())
    }

    /// GiB-hours of memory held.
    #[must_use]
    pub fn gib_hours(&self) -> f64 {
        self.memory.map_or(0.0, |memory| gib_hours(memory.mib(), self.seconds()))
    }

    /// GPUs held, as far as it is known.
    #[must_use]
    pub fn gpu_count(&self) -> u32 {
        self.gpus.unwrap_or(0)
    }
}

/// What a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeSize {
    /// CPUs that jobs can have.
    pub cpus: Option<u32>,
    /// Memory that jobs can have.
    pub memory: Option<Bytes>,
    /// GPUs.
    pub gpus: Option<u32>,
}

impl NodeSize {
    /// What both have at least.
    fn least(self, other: NodeSize) -> NodeSize {
        fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            Some(a?.min(b?))
        }
        NodeSize {
            cpus: least(self.cpus, other.cpus),
            memory: least(self.memory, other.memory),
            gpus: least(self.gpus, other.gpus),
        }
    }
}

/// The hardware and limits of a cluster, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Hardware {
    /// What each node has.
    pub nodes: HashMap<String, NodeSize>,
    /// The longest time limit of each partition.
    pub longest: HashMap<String, Limit<Duration>>,
}

impl Hardware {
    /// From a snapshot of the cluster.
    #[must_use]
    pub fn new(nodes: &[Node], partitions: &[Partition]) -> Hardware {
        let size = |node: &Node| NodeSize {
            cpus: u32::try_from(node.cpus.total).ok().filter(|cpus| *cpus > 0),
            memory: Some(Bytes::new(node.memory.total)).filter(|memory| memory.get() > 0),
            gpus: node
                .gres
                .iter()
                .filter(|stock| stock.is_gpu())
                .try_fold(0u64, |sum, stock| sum.checked_add(stock.total))
                .and_then(|gpus| u32::try_from(gpus).ok()),
        };
        Hardware {
            nodes: nodes.iter().map(|node| (node.name.as_str().to_owned(), size(node))).collect(),
            longest: partitions
                .iter()
                .filter_map(|partition| Some((partition.name.to_string(), partition.longest?)))
                .collect(),
        }
    }
}

/// A list of nodes that was taken apart.
#[derive(Debug, Clone, Default)]
struct NodeList {
    names: Box<[Name]>,
    /// What all of them have at least; `None` if one of them is unknown.
    least: Option<NodeSize>,
}

/// What is known of one cluster in one stretch of time: made by [`Gathering`], and then not changed.
#[derive(Debug)]
pub struct Facts {
    /// The cluster. Job ids and ranks mean something within one cluster only.
    pub cluster: ClusterName,
    /// The time that the jobs are of.
    pub window: Window,
    /// The present.
    pub now: Timestamp,
    /// The names in it.
    pub names: Names,
    jobs: Vec<Job>,
    hardware: Hardware,
    lists: HashMap<Name, NodeList>,
}

/// Facts that are still being gathered.
#[derive(Debug)]
pub struct Gathering {
    facts: Facts,
}

impl Gathering {
    /// A cluster of which no job is known yet.
    #[must_use]
    pub fn new(
        cluster: ClusterName,
        window: Window,
        now: Timestamp,
        hardware: Hardware,
    ) -> Gathering {
        let (names, jobs, lists) = (Names::default(), Vec::new(), HashMap::new());
        Gathering { facts: Facts { cluster, window, now, names, jobs, hardware, lists } }
    }

    /// The names that jobs are made with.
    pub fn names(&mut self) -> &mut Names {
        &mut self.facts.names
    }

    /// Makes room for so many more jobs: they are large, and a list that grows is copied.
    pub fn reserve(&mut self, jobs: usize) {
        self.facts.jobs.reserve_exact(jobs);
    }

    /// The jobs so far and the names, for those who find out more about them.
    pub fn jobs_and_names(&mut self) -> (&mut [Job], &mut Names) {
        (&mut self.facts.jobs, &mut self.facts.names)
    }

    /// Adds a job. Each list of nodes is taken apart once.
    ///
    /// # Errors
    /// If its list of nodes is none; the job is not added then.
    pub fn push(&mut self, job: Job) -> Result<(), ParseError> {
        if !self.facts.lists.contains_key(&job.nodes) {
            let list = self.take_apart(job.nodes)?;
            self.facts.lists.insert(job.nodes, list);
        }
        self.facts.jobs.push(job);
        Ok(())
    }

    fn take_apart(&mut self, list: Name) -> Result<NodeList, ParseError> {
        let Facts { names, hardware, .. } = &mut self.facts;
        let nodes = hostlist::expand(names.text(list))?;
        let sizes = nodes.iter().map(|node| hardware.nodes.get(node.as_str()).copied());
        let least = sizes.reduce(|a, b| Some(a?.least(b?))).flatten();
        let names = nodes.iter().map(|node| names.intern(node.as_str())).collect();
        Ok(NodeList { names, least })
    }

    /// All that was gathered, in the order in which every rule looks at it. Sorting is the dearest
    /// thing about a portfolio, so it is done here, once.
    #[must_use]
    pub fn finish(self) -> Facts {
        let mut facts = self.facts;
        let mut users: Vec<(&str, Name)> =
            facts.names.iter().map(|(name, text)| (text, name)).collect();
        users.sort_unstable();
        let mut places: Vec<usize> = vec![0; users.len()];
        for (place, (_, name)) in users.into_iter().enumerate() {
            if let Some(of_name) = places.get_mut(name.index()) {
                *of_name = place;
            }
        }
        let user = |job: &Job| places.get(job.user.index()).copied().unwrap_or(0);
        put_in_order(&mut facts.jobs, |a, b| (user(a), a.key).cmp(&(user(b), b.key)));
        facts
    }
}

/// Sorts things that are large: their places are sorted, then each is moved once.
fn put_in_order<T>(things: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut from: Vec<usize> = (0..things.len()).collect();
    from.sort_unstable_by(|a, b| match (things.get(*a), things.get(*b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    for place in 0..from.len() {
        // What belongs here may have been moved to make room for others: it is where they were.
        let mut source = from.get(place).copied().unwrap_or(place);
        while source < place {
            source = from.get(source).copied().unwrap_or(place);
        }
        if let Some(slot) = from.get_mut(place) {
            *slot = source;
        }
        things.swap(place, source);
    }
}

impl Facts {
    /// All jobs: by user, in the order of names, then by id.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// A job of a user.
    #[must_use]
    pub fn job(&self, user: Name, key: JobKey) -> Option<&Job> {
        let name = self.names.text(user);
        let place = |job: &Job| (self.names.text(job.user), job.key);
        let at = self.jobs.binary_search_by(|job| place(job).cmp(&(name, key))).ok()?;
        self.jobs.get(at)
    }

    /// The nodes of a job.
    #[must_use]
    pub fn nodes_of(&self, job: &Job) -> &[Name] {
        self.lists.get(&job.nodes).map_or(&[], |list| &list.names)
    }

    /// What every node of a job has at least; nothing is known if one of them is not.
    #[must_use]
    pub fn node_of(&self, job: &Job) -> NodeSize {
        self.lists.get(&job.nodes).and_then(|list| list.least).unwrap_or_default()
    }

    /// How long a job may run: its own limit, else that of its partition.
    #[must_use]
    pub fn time_limit_of(&self, job: &Job) -> Option<Limit<Duration>> {
        match job.time_limit? {
            TimeLimit::Own(limit) => Some(limit),
            TimeLimit::OfPartition => {
                self.hardware.longest.get(self.names.text(job.partition)).copied()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{node, partition};
    use crate::rule::sample::{World, job};

    #[test]
    fn hardware_comes_from_the_snapshot() {
        let nodes = "NodeName=g1 CPUAlloc=0 CPUTot=64 RealMemory=262144 AllocMem=0 State=IDLE \
             Gres=gpu:a100:2,gpu:v100:1,shard:8\n\
             NodeName=c1 CPUAlloc=0 CPUTot=32 RealMemory=131072 AllocMem=0 State=IDLE";
        let partitions = "PartitionName=main State=UP MaxTime=2-00:00:00\n\
             PartitionName=long State=UP MaxTime=UNLIMITED";
        let nodes = node::parse(nodes).unwrap();
        let hardware = Hardware::new(&nodes, &partition::parse(partitions).unwrap());
        let memory = Some(Bytes::new(256 << 30));
        assert_eq!(hardware.nodes["g1"], NodeSize { cpus: Some(64), memory, gpus: Some(3) });
        assert_eq!(hardware.longest["main"], Limit::At(Duration::from_secs(2 * 86_400)));
        assert_eq!(hardware.longest["long"], Limit::Unlimited);
        let drafts = [job("a").held("g1,c1", 2, 0), job("a").held("g1,x1", 2, 0)];
        let world = World::with(hardware, drafts);
        let least = |at: usize| world.facts.node_of(&world.facts.jobs()[at]);
        let memory = Some(Bytes::new(128 << 30));
        assert_eq!(least(0), NodeSize { cpus: Some(32), memory, gpus: Some(0) });
        assert_eq!(least(1), NodeSize::default(), "one node is unknown");
    }

    #[test]
    fn things_are_put_in_order_whatever_the_order_before() {
        let mut dice = 7u64;
        for length in [0, 1, 2, 3, 50, 400] {
            let mut things: Vec<u64> = (0..length)
                .map(|_| {
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (dice >> 33) % 100
                })
                .collect();
            let mut sorted = things.clone();
            sorted.sort_unstable();
            put_in_order(&mut things, Ord::cmp);
            assert_eq!(things, sorted);
        }
    }

    #[test]
    fn jobs_stand_by_user_and_id_whatever_the_order_they_came_in() {
        let world = World::new([job("zoe"), job("anna"), job("zoe"), job("anna")]);
        let users = world.facts.jobs().iter().map(|job| world.facts.names.text(job.user));
        assert_eq!(users.collect::<Vec<_>>(), ["anna", "anna", "zoe", "zoe"]);
        assert!(world.facts.jobs()[0].key.id < world.facts.jobs()[1].key.id);
    }
}
