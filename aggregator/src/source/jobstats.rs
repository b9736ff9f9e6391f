//! Summaries that Jobstats leaves in the comment of a job: `JS1:` and then `Short`, `None`, or
//! base64 of gzip of JSON.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use steward_common::intern::Names;
use steward_common::rule::{Figure, GpuUsage, Job, NodeUsage, Origin, Share, Utilisation};
use steward_common::unit::Bytes;

/// What a comment with a summary begins with.
const MARK: &str = "JS1:";

/// No summary of a job is larger, unpacked.
const LARGEST: u64 = 16 << 20;

/// Why a summary cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// It is no base64.
    #[error("its summary is no base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// It cannot be unpacked.
    #[error("its summary cannot be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    /// It is larger than any summary.
    #[error("its summary is larger than {} MiB", LARGEST >> 20)]
    Large,
    /// It is not of the form.
    #[error("its summary is not of Jobstats' form: {0}")]
    Form(#[from] serde_json::Error),
}

/// What a summary says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Summary {
    /// By node.
    pub nodes: BTreeMap<String, Node>,
}

/// What it says of a node. What is missing or senseless is unknown.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    cpus: Option<f64>,
    total_time: Option<f64>,
    used_memory: Option<f64>,
    total_memory: Option<f64>,
    gpu_utilization: Option<BTreeMap<String, f64>>,
    gpu_used_memory: Option<BTreeMap<String, f64>>,
    gpu_total_memory: Option<BTreeMap<String, f64>>,
}

/// Reads summaries, one after the other, in the same memory.
#[derive(Debug, Default)]
pub struct Reader {
    packed: Vec<u8>,
    text: Vec<u8>,
}

impl Reader {
    /// The summary in a comment; `None` if it has none.
    ///
    /// # Errors
    /// If it has one that cannot be read.
    pub fn read(&mut self, comment: &str) -> Result<Option<Summary>, SummaryError> {
        // Administrators write other things beside it, or nothing but others.
        let Some((_, rest)) = comment.split_once(MARK) else { return Ok(None) };
        let word = rest.split([' ', '\t', '\n', ',', ';']).next().unwrap_or_default();
        if matches!(word, "" | "Short" | "None") {
            return Ok(None);
        }
        self.packed.clear();
        STANDARD.decode_vec(word, &mut self.packed)?;
        self.text.clear();
        let unpacked = GzDecoder::new(self.packed.as_slice()).take(LARGEST + 1);
        let size = { unpacked }.read_to_end(&mut self.text)?;
        if size as u64 > LARGEST {
            return Err(SummaryError::Large);
        }
        Ok(Some(serde_json::from_slice(&self.text)?))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn whole(number: f64) -> Option<u64> {
    (0.0..9e18).contains(&number).then_some(number.round() as u64)
}

fn bytes(number: Option<f64>) -> Option<Bytes> {
    number.and_then(whole).map(Bytes::new)
}

impl Summary {
    /// Adds to a job what nobody else has measured. A summary is made when the job has ended, from
    /// all that was seen of it; it does not say how much that was.
    pub fn add_to(&self, job: &mut Job, names: &mut Names) {
        let seconds = |number: &f64| number.is_finite() && *number >= 0.0;
        if job.usage.nodes.is_none() && !self.nodes.is_empty() {
            let nodes: Box<[NodeUsage]> = self
                .nodes
                .iter()
                .map(|(name, node)| NodeUsage {
                    node: names.intern(name),
                    cpus: node.cpus.and_then(whole).and_then(|cpus| u32::try_from(cpus).ok()),
                    cpu_seconds: node.total_time.filter(seconds),
                    peak_memory: bytes(node.used_memory),
                    memory: bytes(node.total_memory),
                })
                .collect();
            job.usage.nodes = Some(Box::new(Figure::whole(nodes, Origin::Summary)));
        }
        if job.usage.gpus.is_none() {
            let gpus: Box<[GpuUsage]> =
                self.nodes.iter().flat_map(|(name, node)| node.gpus(name, names)).collect();
            if !gpus.is_empty() {
                job.usage.gpus = Some(Box::new(Figure::whole(gpus, Origin::Summary)));
            }
        }
    }
}

impl Node {
    fn gpus(&self, name: &str, names: &mut Names) -> Vec<GpuUsage> {
        let maps = [&self.gpu_utilization, &self.gpu_used_memory, &self.gpu_total_memory];
        let mut numbers: Vec<&String> =
            maps.into_iter().flatten().flat_map(BTreeMap::keys).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let node = names.intern(name);
        let of = |map: &Option<BTreeMap<String, f64>>, number: &String| {
            map.as_ref().and_then(|map| map.get(number)).copied()
        };
        let gpu = |number: &String| GpuUsage {
            node,
            // One decimal of per cent is all that a summary has.
            utilisation: of(&self.gpu_utilization, number)
                .and_then(|per_cent| Share::new(per_cent / 100.0))
                .map(Utilisation::rounded),
            peak_memory: bytes(of(&self.gpu_used_memory, number)),
            memory: bytes(of(&self.gpu_total_memory, number)),
            idle_for: None,
        };
        numbers.into_iter().map(gpu).collect()
    }
}
