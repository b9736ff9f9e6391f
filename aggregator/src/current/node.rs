//! A node, as a row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steward_common::cluster::state::Flag;
use steward_common::cluster::{Base, Class, Node, Snapshot, Split};
use steward_common::id::NodeName;
use steward_common::slurm::hostlist;
use steward_common::time::Timestamp;

/// A node at a moment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NodeRow {
    /// Its cluster.
    pub cluster: String,
    /// Its name in Slurm: with the cluster, the key.
    pub node: String,
    /// Its base state, in small letters.
    pub state: String,
    /// What else Slurm says of it: `drain`, `not_responding`, `reserved`, ….
    pub flags: Vec<String>,
    /// The partitions that it is in.
    pub partitions: Vec<String>,
    /// Its CPUs.
    pub cpus: Held,
    /// Its memory, in bytes.
    pub memory_bytes: Held,
    /// Its generic resources, GPUs among them.
    pub gres: Vec<StockRow>,
    /// Its load average.
    pub load: Option<f64>,
    /// Memory that its kernel calls free.
    pub free_memory_bytes: Option<u64>,
    /// Features that jobs can ask for.
    pub features: Vec<String>,
    /// Why it is out.
    pub reason: Option<ReasonRow>,
    /// The reservation that holds it.
    pub reservation: Option<String>,
    /// When its kernel started.
    pub boot_time: Option<i64>,
    /// When its slurmd started.
    pub slurmd_start_time: Option<i64>,
    /// When a job last ran on it.
    pub last_busy_time: Option<i64>,
    /// The version of its slurmd.
    pub version: Option<String>,
}

/// How much of something is in each class. The classes sum to the total.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Held {
    /// All of it.
    pub total: u64,
    /// What jobs hold.
    pub allocated: u64,
    /// What can be given to jobs.
    pub idle: u64,
    /// What cannot, by cause; a cause that does not hold is not there.
    pub unusable: BTreeMap<String, u64>,
}

/// One kind and type of generic resource.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct StockRow {
    /// `gpu`, `shard`, ….
    pub kind: String,
    /// Its type; empty where Slurm states none.
    #[serde(rename = "type")]
    pub model: String,
    /// How many there are.
    #[serde(flatten)]
    pub held: Held,
}

/// Why a node is out.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ReasonRow {
    /// The words of whoever took it out.
    pub text: String,
    /// Who that was.
    pub author: Option<String>,
    /// When.
    pub since: Option<i64>,
}

impl From<&Split> for Held {
    fn from(split: &Split) -> Held {
        let unusable = Class::all()
            .filter(|class| !class.cause().is_empty() && split.get(*class) > 0)
            .map(|class| (class.cause().to_owned(), split.get(class)));
        Held {
            total: split.total(),
            allocated: split.allocated,
            idle: split.idle,
            unusable: unusable.collect(),
        }
    }
}

impl NodeRow {
    /// The row of a node of a snapshot; `reserved` is what [`Snapshot::reserved`] says about it.
    #[must_use]
    pub fn new(snapshot: &Snapshot, node: &Node, reserved: Option<&str>) -> NodeRow {
        let time = |moment: Option<Timestamp>| moment.map(Timestamp::get);
        let texts = |list: &[std::sync::Arc<str>]| list.iter().map(ToString::to_string).collect();
        let split = node.split();
        NodeRow {
            cluster: snapshot.cluster.to_string(),
            node: node.name.to_string(),
            state: node.state.base.name().to_owned(),
            flags: node.state.flags().map(|flag| flag.name().to_owned()).collect(),
            partitions: texts(&node.partitions),
            cpus: Held::from(&split.cpus),
            memory_bytes: Held::from(&split.memory),
            gres: (split.gres.iter())
                .map(|(stock, split)| StockRow {
                    kind: stock.kind.to_string(),
                    model: stock.model.to_string(),
                    held: Held::from(split),
                })
                .collect(),
            load: node.load,
            free_memory_bytes: node.free_memory.map(steward_common::unit::Bytes::get),
            features: texts(&node.features),
            reason: node.reason.as_ref().map(|reason| ReasonRow {
                text: reason.text.to_string(),
                author: reason.author.as_deref().map(str::to_owned),
                since: time(reason.since),
            }),
            reservation: node.reservation.as_deref().or(reserved).map(str::to_owned),
            boot_time: time(node.booted),
            slurmd_start_time: time(node.slurmd_started),
            last_busy_time: time(node.last_busy),
            version: node.version.as_deref().map(str::to_owned),
        }
    }

    /// The GPUs of all types that are in some class.
    #[must_use]
    pub fn gpus(&self) -> Held {
        let mut sum = Held::default();
        for stock in self.gres.iter().filter(|stock| stock.kind == "gpu") {
            sum.total += stock.held.total;
            sum.allocated += stock.held.allocated;
            sum.idle += stock.held.idle;
            for (cause, count) in &stock.held.unusable {
                *sum.unusable.entry(cause.clone()).or_default() += count;
            }
        }
        sum
    }

    /// Whether this is its base state or one of its flags, in small letters or not.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        let words = std::iter::once(&self.state).chain(&self.flags);
        words.into_iter().any(|own| own.eq_ignore_ascii_case(word))
    }

    /// Whether something of it is unusable.
    #[must_use]
    pub fn is_out(&self) -> bool {
        let gres = self.gres.iter().map(|stock| &stock.held);
        let mut all = [&self.cpus, &self.memory_bytes].into_iter().chain(gres);
        all.any(|held| !held.unusable.is_empty())
    }

    /// The state with its flags, as `idle+drain`.
    #[must_use]
    pub fn whole_state(&self) -> String {
        let words = std::iter::once(&self.state).chain(&self.flags).map(String::as_str);
        words.collect::<Vec<_>>().join("+")
    }
}

/// The word by which rows have a base state or a flag that a person names; `None` if Slurm has none
/// such.
#[must_use]
pub fn state_word(text: &str) -> Option<&'static str> {
    Base::from_word(text).map(Base::name).or_else(|| Flag::from_word(text).map(Flag::name))
}

/// All base states and flags, for whoever named another.
#[must_use]
pub fn state_words() -> String {
    let bases = Base::ALL.iter().map(|base| base.name());
    let flags = Flag::ALL.iter().map(|flag| flag.name());
    bases.chain(flags).collect::<Vec<_>>().join(", ")
}

/// The raw ids of the jobs that hold a node.
#[must_use]
pub fn jobs_on(snapshot: &Snapshot, node: &NodeName) -> Vec<u32> {
    let jobs = snapshot.jobs.iter().flat_map(|seen| seen.what.iter());
    jobs.filter(|job| job.holds_nodes())
        // A list that cannot be read names no node; what it is stands with the job.
        .filter(|job| hostlist::expand(&job.nodes).is_ok_and(|names| names.contains(node)))
        .map(|job| job.id.get())
        .collect()
}
