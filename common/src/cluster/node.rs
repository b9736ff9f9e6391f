//! A node, and the class of everything that it has.

use std::sync::Arc;

use super::class::{Cause, Class, Split};
use super::record;
use super::state::{Base, Flag, NodeState};
use super::stock::{self, Stock};
use crate::id::NodeName;
use crate::slurm::ParseError;
use crate::slurm::number::digits;
use crate::time::Timestamp;
use crate::unit::Bytes;

/// How much a node has of something, as Slurm states it; the figures may contradict one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// All of it.
    pub total: u64,
    /// What jobs hold.
    pub allocated: u64,
    /// What Slurm counts as faulty.
    pub error: u64,
}

/// Why a node is out, in the words of whoever took it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The words.
    pub text: Arc<str>,
    /// Who wrote them.
    pub author: Option<Arc<str>>,
    /// When.
    pub since: Option<Timestamp>,
}

/// A node at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name in Slurm.
    pub name: NodeName,
    /// Its state.
    pub state: NodeState,
    /// CPUs that jobs can have; those that Slurm keeps for itself are left out where it says so.
    pub cpus: Amount,
    /// Memory that jobs can have, in bytes.
    pub memory: Amount,
    /// Memory that the node's kernel calls free.
    pub free_memory: Option<Bytes>,
    /// The node's load average.
    pub load: Option<f64>,
    /// Generic resources.
    pub gres: Vec<Stock>,
    /// The partitions that it is in.
    pub partitions: Vec<Arc<str>>,
    /// Features that jobs can ask for now.
    pub features: Vec<Arc<str>>,
    /// Why it is out.
    pub reason: Option<Reason>,
    /// The reservation that it is in, where Slurm says so with the node;
    /// [`Snapshot::reserved`](super::Snapshot::reserved) knows it from the reservations.
    pub reservation: Option<Arc<str>>,
    /// When its kernel started.
    pub booted: Option<Timestamp>,
    /// When its slurmd started.
    pub slurmd_started: Option<Timestamp>,
    /// When a job last ran on it.
    pub last_busy: Option<Timestamp>,
    /// The version of its slurmd.
    pub version: Option<Arc<str>>,
}

/// The classes of all that a node has.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSplit<'a> {
    /// Its CPUs.
    pub cpus: Split,
    /// Its memory, in bytes.
    pub memory: Split,
    /// Its generic resources, GPUs among them.
    pub gres: Vec<(&'a Stock, Split)>,
    /// CPUs that sinfo calls idle (`%C`): all that no job holds, unless the node is drained or
    /// down.
    pub sinfo_idle: u64,
}

impl Node {
    /// A node that has nothing and runs nothing.
    #[must_use]
    pub fn new(name: NodeName, state: NodeState) -> Node {
        Node {
            name,
            state,
            cpus: Amount::default(),
            memory: Amount::default(),
            free_memory: None,
            load: None,
            gres: Vec::new(),
            partitions: Vec::new(),
            features: Vec::new(),
            reason: None,
            reservation: None,
            booted: None,
            slurmd_started: None,
            last_busy: None,
            version: None,
        }
    }

    /// Whether an administrator took it out.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.state.has(Flag::Drain)
    }

    /// Puts all that the node has into classes: what jobs hold is allocated, also on a node that
    /// drains; the rest is unusable if the node's state says so, or if jobs could not have it
    /// because no CPU, or no memory, is free beside it; else idle.
    ///
    /// For each resource the classes sum to its total, whatever Slurm says: more allocated than
    /// there is counts as all of it.
    #[must_use]
    pub fn split(&self) -> NodeSplit<'_> {
        let cause = Cause::of(self.state);
        let free_cpus = self.cpus.free();
        let lacks = if free_cpus == 0 {
            Some(Cause::NoCpu)
        } else if self.memory.total > 0 && self.memory.free() == 0 {
            Some(Cause::NoMem)
        } else {
            None
        };
        // What is missing makes the others unusable, not itself: of it there is nothing free.
        let cause = cause.or(lacks);
        let sinfo_out = self.is_drained() || self.state.base == Base::Down;
        NodeSplit {
            cpus: self.cpus.split(cause),
            memory: self.memory.split(cause),
            gres: self
                .gres
                .iter()
                .map(|stock| {
                    let amount = Amount { total: stock.total, allocated: stock.used, error: 0 };
                    (stock, amount.split(cause))
                })
                .collect(),
            sinfo_idle: if sinfo_out { 0 } else { free_cpus },
        }
    }
}

impl Amount {
    /// What no job holds and is not faulty.
    #[must_use]
    pub fn free(self) -> u64 {
        self.total.saturating_sub(self.allocated).saturating_sub(self.error)
    }

    fn split(self, cause: Option<Cause>) -> Split {
        let mut split = Split::default();
        let allocated = self.allocated.min(self.total);
        let error = self.error.min(self.total - allocated);
        split.put(Class::Allocated, allocated);
        // A cause of the whole node stands before a faulty CPU, one that is lacking after it.
        let of_node = cause.filter(|cause| *cause < Cause::Error);
        split.put(Class::Unusable(of_node.unwrap_or(Cause::Error)), error);
        let rest = self.total - allocated - error;
        split.put(cause.map_or(Class::Idle, Class::Unusable), rest);
        split
    }
}

/// MiB as bytes; an amount that no machine has is as much as fits.
#[must_use]
pub fn mebibytes(mib: u64) -> u64 {
    mib.saturating_mul(1 << 20)
}

/// Reads `scontrol -o -d show nodes`, times as seconds (`SLURM_TIME_FORMAT=%s`): a node a line.
///
/// # Errors
/// If a line is not about a node, or one of its figures is none.
pub fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    text.lines().filter(|line| !line.trim().is_empty()).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<Node, ParseError> {
    let fields = record::fields(line);
    let wrong = |expected| ParseError::new("node", line, expected);
    let name = fields.get("NodeName").ok_or_else(|| wrong("a line that begins with NodeName="))?;
    let number = |key: &str| match fields.get(key).copied() {
        None | Some("N/A") => Ok(None),
        Some(text) => digits(text).map(Some).ok_or_else(|| wrong("a node with whole numbers")),
    };
    let text = |key: &str| fields.get(key).copied().filter(|text| !record::is_nothing(text));
    let list = |key: &str| -> Vec<Arc<str>> {
        text(key).into_iter().flat_map(|list| list.split(',')).map(Arc::from).collect()
    };
    let time = |key: &str| text(key).and_then(|text| Timestamp::from_slurm(text).ok().flatten());
    let state = NodeState::from_words(text("State"));
    let mut node = Node::new(NodeName::new(name)?, state);
    let total = number("CPUEfctv")?.or(number("CPUTot")?);
    node.cpus = Amount {
        total: total.ok_or_else(|| wrong("a node with CPUTot="))?,
        allocated: number("CPUAlloc")?.ok_or_else(|| wrong("a node with CPUAlloc="))?,
        error: number("CPUErr")?.unwrap_or(0),
    };
    node.memory = Amount {
        total: mebibytes(number("RealMemory")?.ok_or_else(|| wrong("a node with RealMemory="))?),
        allocated: mebibytes(number("AllocMem")?.unwrap_or(0)),
        error: 0,
    };
    node.free_memory = number("FreeMem")?.map(|mib| Bytes::new(mebibytes(mib)));
    node.load = text("CPULoad").and_then(|load| load.parse().ok());
    node.gres = stock::parse(text("Gres").unwrap_or(""), text("GresUsed").unwrap_or(""))?;
    node.partitions = list("Partitions");
    node.features = list("ActiveFeatures");
    node.reason = line.split_once(" Reason=").and_then(|(_, reason)| parse_reason(reason));
    node.reservation = text("ReservationName").map(Arc::from);
    node.booted = time("BootTime");
    node.slurmd_started = time("SlurmdStartTime");
    node.last_busy = time("LastBusyTime");
    node.version = text("Version").map(Arc::from);
    Ok(node)
}

/// `words of any sort [author@time]`.
fn parse_reason(text: &str) -> Option<Reason> {
    let stamp = |text: &'_ str| {
        let (words, stamp) = text.rsplit_once(" [")?;
        let (author, time) = stamp.split_once(']')?.0.rsplit_once('@')?;
        let since = Timestamp::from_slurm(time).ok().flatten();
        Some(Reason { text: Arc::from(words.trim()), author: Some(Arc::from(author)), since })
    };
    let bare = || Reason { text: Arc::from(text.trim()), author: None, since: None };
    (!text.trim().is_empty()).then(|| stamp(text).unwrap_or_else(bare))
}
