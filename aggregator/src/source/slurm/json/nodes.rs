//! `scontrol show nodes --json`, and `sinfo --json` of versions that list nodes there (22.05).

use std::io::Read;
use std::sync::Arc;

use serde::Deserializer;
use steward_common::cluster::draft::Figure;
use steward_common::cluster::node::mebibytes;
use steward_common::cluster::words::Words;
use steward_common::cluster::{Amount, Node, NodeState, Reason, stock};
use steward_common::id::NodeName;
use steward_common::slurm::ParseError;
use steward_common::unit::Bytes;

use super::answer::{self, JsonError, Records, narrow, understood};
use super::value::Take;

#[derive(Default)]
struct Raw {
    name: Arc<str>,
    state: Vec<Arc<str>>,
    flags: Vec<Arc<str>>,
    cpus: Figure,
    effective_cpus: Figure,
    alloc_cpus: Figure,
    error_cpus: Figure,
    real_memory: Figure,
    alloc_memory: Figure,
    free_memory: Figure,
    cpu_load: Figure,
    gres: Arc<str>,
    gres_used: Arc<str>,
    partitions: Vec<Arc<str>>,
    features: Vec<Arc<str>>,
    reason: Arc<str>,
    reason_at: Figure,
    reason_by: Arc<str>,
    reservation: Arc<str>,
    booted: Figure,
    slurmd_started: Figure,
    last_busy: Figure,
    version: Arc<str>,
}

narrow! {
    RawVisitor for Raw {
        "active_features" ActiveFeatures => features;
        "alloc_cpus" AllocCpus => alloc_cpus;
        "alloc_memory" AllocMemory => alloc_memory;
        "boot_time" BootTime => booted;
        "cpu_load" CpuLoad => cpu_load;
        "cpus" Cpus => cpus;
        "effective_cpus" EffectiveCpus => effective_cpus;
        "error_cpus" ErrorCpus => error_cpus;
        "free_mem" FreeMem => free_memory;
        "free_memory" FreeMemory => free_memory;
        "gres" Gres => gres;
        "gres_used" GresUsed => gres_used;
        "last_busy" LastBusy => last_busy;
        "name" Name => name;
        "partitions" Partitions => partitions;
        "real_memory" RealMemory => real_memory;
        "reason" Reason => reason;
        "reason_changed_at" ReasonChangedAt => reason_at;
        "reason_set_by_user" ReasonSetByUser => reason_by;
        "reservation" Reservation => reservation;
        "slurmd_start_time" SlurmdStartTime => slurmd_started;
        "slurmd_version" SlurmdVersion => version;
        "state" State => state;
        "state_flags" StateFlags => flags;
        "version" Version => version;
    }
}

#[derive(Default)]
struct Nodes(Words);

impl Records for Nodes {
    type Item = Node;

    fn record<'de, D: Deserializer<'de>>(&mut self, record: D) -> Result<Node, D::Error> {
        understood(node(record.deserialize_map(RawVisitor(&mut self.0))?))
    }
}

fn node(raw: Raw) -> Result<Node, ParseError> {
    let some = |word: &Arc<str>| (!word.is_empty()).then(|| Arc::clone(word));
    let stated = |figure: Figure, what: &'static str| {
        figure.at().ok_or_else(|| ParseError::new("node", &raw.name, what))
    };
    let state = NodeState::from_words(raw.state.iter().chain(&raw.flags).map(|word| &**word));
    let mut node = Node::new(NodeName::new(&raw.name)?, state);
    let cpus = stated(raw.cpus, "a node with cpus")?;
    node.cpus = Amount {
        total: raw.effective_cpus.at().filter(|cpus| *cpus > 0).unwrap_or(cpus),
        allocated: stated(raw.alloc_cpus, "a node with alloc_cpus")?,
        error: raw.error_cpus.at().unwrap_or(0),
    };
    node.memory = Amount {
        total: mebibytes(stated(raw.real_memory, "a node with real_memory")?),
        allocated: mebibytes(raw.alloc_memory.at().unwrap_or(0)),
        error: 0,
    };
    node.free_memory = raw.free_memory.at().map(|mib| Bytes::new(mebibytes(mib)));
    #[allow(clippy::cast_precision_loss, reason = "a load is small")]
    let load = |hundredths: u64| hundredths as f64 / 100.0;
    node.load = match raw.cpu_load {
        Figure::At(number) => Figure::from_u32(number).at().map(load),
        _ => None,
    };
    node.gres = stock::parse(&raw.gres, &raw.gres_used)?;
    node.reason = some(&raw.reason).map(|text| Reason {
        text,
        author: some(&raw.reason_by),
        since: raw.reason_at.time(),
    });
    node.reservation = some(&raw.reservation);
    node.booted = raw.booted.time();
    node.slurmd_started = raw.slurmd_started.time();
    node.last_busy = raw.last_busy.time();
    node.version = some(&raw.version);
    node.partitions = raw.partitions;
    node.features = raw.features;
    Ok(node)
}

/// Reads nodes from the pipe.
///
/// # Errors
/// If it is no such answer; an answer that was cut off is none.
pub fn read(from: impl Read) -> Result<Vec<Node>, JsonError> {
    answer::read(from, "nodes", Nodes::default())
}

#[cfg(test)]
mod tests {
    use steward_common::cluster::node;

    use super::*;

    #[test]
    fn json_and_text_of_slurm_22_05_tell_the_same() {
        let json = include_str!("../../../../../tests/fixtures/snapshot-slurm-22.05/sinfo.json");
        let text = include_str!(
            "../../../../../tests/fixtures/snapshot-slurm-22.05/scontrol-show-nodes.txt"
        );
        let json = read(json.as_bytes()).unwrap();
        assert_eq!(json.len(), 4);
        assert_eq!(json, node::parse(text).unwrap());
    }

    /// As Slurm 23.11 and later write them (data parser 0.0.40).
    #[test]
    fn a_node_of_a_newer_slurm() {
        let text = r#"{"nodes":[{"name":"g1","state":["MIXED","DRAIN"],"cpus":64,"effective_cpus":62,
            "alloc_cpus":10,"real_memory":1000,"alloc_memory":0,
            "free_mem":{"set":true,"infinite":false,"number":900},"cpu_load":1050,
            "gres":"gpu:a100:4(S:0-1)","gres_used":"gpu:a100:1(IDX:2)","partitions":["gpu","all"],
            "active_features":["ib","v4"],"reason":"fan","reason_set_by_user":"root",
            "reason_changed_at":{"set":true,"infinite":false,"number":1794827391},
            "reservation":"class","version":"23.11.1"}],"errors":[]}"#;
        let [node] = read(text.as_bytes()).unwrap().try_into().unwrap();
        assert_eq!(node.state.to_string(), "MIXED+DRAIN");
        assert_eq!(node.cpus, Amount { total: 62, allocated: 10, error: 0 });
        assert_eq!(node.load, Some(10.5));
        assert_eq!(node.reason.unwrap().since.unwrap().get(), 1_794_827_391);
        assert_eq!(node.reservation.as_deref(), Some("class"));
        assert_eq!(node.partitions.len(), 2);
        assert_eq!(node.features, ["ib".into(), "v4".into()]);
    }

    #[test]
    fn sinfo_of_a_newer_slurm_lists_no_nodes() {
        let error = read("{\"sinfo\":[]}".as_bytes()).unwrap_err();
        assert!(matches!(error, JsonError::Other("nodes")), "{error}");
    }
}
