//! A node, and the class of everything that it has.

use std::borrow::Cow;
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
/// scontrol writes blanks for the line breaks of a reason, but leaves those of a comment and of the
/// extra text: a line that does not begin a node belongs to the one before. One that an
/// administrator wrote into a comment to look like a whole node cannot be told from a node by this
/// text; JSON, which is asked for first, has no such lines.
///
/// # Errors
/// If the first line is not about a node, or one of a node's figures is none.
pub fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    let mut nodes: Vec<Cow<'_, str>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match nodes.last_mut() {
            Some(node) if !begins_node(line) => {
                let node = node.to_mut();
                node.push('\n');
                node.push_str(line);
            }
            _ => nodes.push(Cow::Borrowed(line)),
        }
    }
    nodes.iter().map(|node| parse_line(node)).collect()
}

/// Whether a line has what scontrol writes about every node.
fn begins_node(line: &str) -> bool {
    line.starts_with("NodeName=")
        && [" CPUTot=", " RealMemory=", " State="].iter().all(|key| line.contains(key))
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

/// What scontrol writes in place of a line break in a reason.
const BREAK: &str = "        ";

/// What may stand behind a reason.
const BEHIND: [&str; 5] =
    [" Comment=", " Extra=", " InstanceId=", " InstanceType=", " ReservationName="];

/// `first line [author@time]        second line        third line`, and behind that other fields.
///
/// Words that hold such a stamp and eight blanks look like a first line, and a line that holds the
/// name of a later field like that field; then lines are parted or cut elsewhere, in a text for
/// people.
fn parse_reason(text: &str) -> Option<Reason> {
    let own = |text: &'_ str| {
        let end = BEHIND.iter().filter_map(|key| text.find(key)).min();
        end.and_then(|end| text.get(..end)).unwrap_or(text).trim_end().to_owned()
    };
    let Some((words, author, since, rest)) = stamp(text) else {
        let words = own(text);
        let words = words.trim();
        let bare = || Reason { text: Arc::from(words), author: None, since: None };
        return (!words.is_empty()).then(bare);
    };
    let rest = own(rest);
    let more = rest.split('\n').flat_map(|line| line.split(BREAK)).map(str::trim);
    let lines = std::iter::once(words.trim()).chain(more.filter(|line| !line.is_empty()));
    let text = lines.collect::<Vec<_>>().join("\n");
    Some(Reason { text: text.into(), author: Some(author.into()), since })
}

/// The words before the stamp of a reason, its author and time, and what is behind it. A stamp stands at
/// the end of the first line; what looks like one elsewhere belongs to the words.
fn stamp(text: &str) -> Option<(&str, &str, Option<Timestamp>, &str)> {
    text.match_indices(" [").find_map(|(at, _)| {
        let (words, inside) = (text.get(..at)?, text.get(at + 2..)?);
        let (inside, rest) = inside.split_once(']')?;
        let (author, time) = inside.rsplit_once('@')?;
        let since = Timestamp::from_slurm(time).ok()?;
        let ends = rest.trim_end().is_empty()
            || rest.starts_with(BREAK)
            || rest.starts_with('\n')
            || BEHIND.iter().any(|key| rest.starts_with(key));
        ends.then_some((words, author, since, rest))
    })
}
