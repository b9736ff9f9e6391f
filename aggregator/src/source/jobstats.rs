//! Summaries that Jobstats leaves in the comment of a job: `JS1:` and then `Short`, `None`, or
//! base64 of gzip of JSON.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};
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
    /// It is of another job.
    #[error("its summary speaks of other nodes than it had")]
    Nodes,
    /// It is not of the form.
    #[error("its summary is not of Jobstats' form: {0}")]
    Form(#[from] serde_json::Error),
}

/// What a summary says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Summary {
    /// How long the job ran when it was made, in seconds.
    #[serde(default)]
    total_time: Option<f64>,
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

/// Whether a summary could say more of a job than is known: of a job on one node without GPUs whose
/// CPU time and memory are known it repeats what they say.
#[must_use]
pub fn says_more(job: &Job) -> bool {
    (job.gpus != Some(0) && job.usage.gpus.is_none()) || is_more_by_node(job)
}

fn is_more_by_node(job: &Job) -> bool {
    let usage = &job.usage;
    let known = usage.cpu_seconds.is_some() && usage.peak_memory.is_some();
    usage.nodes.is_none() && !(known && job.node_count == Some(1))
}

/// Reads summaries, one after the other, in the same memory.
#[derive(Debug)]
pub struct Reader {
    packed: Vec<u8>,
    text: Vec<u8>,
    inflate: Decompress,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { packed: Vec::new(), text: Vec::new(), inflate: Decompress::new(false) }
    }
}

/// How long gzip's head is if it has no parts that are optional, and its foot.
const HEAD: usize = 10;
const FOOT: usize = 8;

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
        if !self.unpack_plain() {
            self.text.clear();
            let unpacked = GzDecoder::new(self.packed.as_slice()).take(LARGEST + 1);
            let size = { unpacked }.read_to_end(&mut self.text)?;
            if size as u64 > LARGEST {
                return Err(SummaryError::Large);
            }
        }
        Ok(Some(serde_json::from_slice(&self.text)?))
    }

    /// Unpacks what has the simplest form and is whole, in memory that is there already; whether it
    /// did. A decoder of its own for each summary costs more than the summary.
    fn unpack_plain(&mut self) -> bool {
        let Some((body, foot)) = self
            .packed
            .strip_prefix(&[0x1f, 0x8b, 8, 0])
            .and_then(|rest| rest.get(HEAD - 4..))
            .and_then(|rest| rest.split_last_chunk::<FOOT>())
        else {
            return false;
        };
        let [c0, c1, c2, c3, s0, s1, s2, s3] = *foot;
        let (sum, size) =
            (u32::from_le_bytes([c0, c1, c2, c3]), u32::from_le_bytes([s0, s1, s2, s3]));
        if u64::from(size) > LARGEST {
            return false;
        }
        self.text.reserve(size as usize + 1);
        self.inflate.reset(false);
        let ended = self.inflate.decompress_vec(body, &mut self.text, FlushDecompress::Finish);
        let mut crc = Crc::new();
        crc.update(&self.text);
        matches!(ended, Ok(Status::StreamEnd))
            && self.inflate.total_in() == body.len() as u64
            && self.text.len() == size as usize
            && crc.sum() == sum
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
    /// all that was seen of it; one that was made after a part of its time speaks of that part.
    ///
    /// # Errors
    /// If it speaks of other nodes than those of the job.
    pub fn add_to(&self, job: &mut Job, names: &mut Names) -> Result<(), SummaryError> {
        self.must_be_of(job, names)?;
        let coverage = match (self.total_time, job.elapsed) {
            (Some(time), Some(elapsed)) if elapsed > 0 => {
                Share::new((time / f64::from(elapsed)).clamp(0.0, 1.0)).unwrap_or(Share::NONE)
            }
            _ => Share::ALL,
        };
        let seconds = |number: &f64| number.is_finite() && *number >= 0.0;
        if is_more_by_node(job) && !self.nodes.is_empty() {
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
            job.usage.nodes =
                Some(Box::new(Figure { value: nodes, origin: Origin::Summary, coverage }));
        }
        if job.usage.gpus.is_none() {
            let gpus: Box<[GpuUsage]> =
                self.nodes.iter().flat_map(|(name, node)| node.gpus(name, names)).collect();
            if !gpus.is_empty() {
                job.usage.gpus =
                    Some(Box::new(Figure { value: gpus, origin: Origin::Summary, coverage }));
            }
        }
        Ok(())
    }

    /// Refuses a summary of another job: that of a job on one node names that node, with or without
    /// its domain, and none names more nodes than the job has.
    fn must_be_of(&self, job: &Job, names: &Names) -> Result<(), SummaryError> {
        let count = job.node_count.unwrap_or(u32::MAX);
        let more = u32::try_from(self.nodes.len()).is_ok_and(|there| there > count);
        let held = names.text(job.nodes);
        let first = |name: &str| name.split('.').next() == held.split('.').next();
        let other = count == 1 && !held.is_empty() && !self.nodes.keys().all(|name| first(name));
        if more || other { Err(SummaryError::Nodes) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use steward_common::id::JobId;
    use steward_common::rule::{Idle, JobKey, Missing, Usage, measure};
    use steward_common::time::Timestamp;

    use super::*;

    fn packed(json: &str) -> String {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(json.as_bytes()).unwrap();
        format!("{MARK}{}", STANDARD.encode(packed.finish().unwrap()))
    }

    fn read(comment: &str) -> Result<Option<Summary>, SummaryError> {
        Reader::default().read(comment)
    }

    /// A job of 100 s with what a summary says of it.
    fn job(json: &str, cpus: u32, nodes: u32, gpus: u32) -> (Job, Names) {
        let mut names = Names::default();
        let name = names.intern("");
        let mut job = Job {
            key: JobKey { id: JobId::new(7).unwrap(), submit: Timestamp::new(0) },
            array: None,
            user: name,
            account: name,
            partition: name,
            qos: name,
            name,
            nodes: name,
            licences: None,
            state: "COMPLETED".into(),
            start: Some(Timestamp::new(0)),
            end: Some(Timestamp::new(100)),
            elapsed: Some(100),
            time_limit: None,
            cpus: Some(cpus),
            node_count: Some(nodes),
            gpus: Some(gpus),
            memory: None,
            billing: None,
            usage: Usage::default(),
        };
        let summary = read(&packed(json)).unwrap().unwrap();
        summary.add_to(&mut job, &mut names).unwrap();
        (job, names)
    }

    #[test]
    fn v12_no_summary_is_none() {
        for comment in ["", "JS1:Short", "JS1:None", "JS1:", "a word of the administrator"] {
            assert_eq!(read(comment).unwrap(), None, "{comment}");
        }
    }

    const V13: &str = r#"{"gpus":0,"nodes":{"tiger-h26c1n8":{"cpus":8,"total_memory":34359738368,
        "total_time":699741.6,"used_memory":18244395008}},"total_time":88865}"#;

    #[test]
    fn v13_a_summary_is_read_wherever_it_stands_in_the_comment() {
        let (job, names) = job(V13, 8, 1, 0);
        let nodes = job.usage.nodes.as_deref().unwrap();
        assert_eq!((nodes.origin, nodes.coverage), (Origin::Summary, Share::ALL));
        let [node] = &*nodes.value else { panic!("{nodes:?}") };
        assert_eq!(names.text(node.node), "tiger-h26c1n8");
        assert_eq!((node.cpus, node.cpu_seconds), (Some(8), Some(699_741.6)));
        assert_eq!(node.memory.map(Bytes::get), Some(34_359_738_368));
        assert_eq!(node.peak_memory.map(Bytes::get), Some(18_244_395_008));
        assert!(job.usage.gpus.is_none(), "0 GPUs have no use");
        let beside = format!("checked by ops; {} see ticket 7", packed(V13));
        assert_eq!(read(&beside).unwrap(), read(&packed(V13)).unwrap());
    }

    /// Job Defense Shield's codes 1, 2 and 3: no data, a key is missing, more than was held.
    #[test]
    fn v14_v16_v18_v20_what_is_missing_or_impossible_is_no_figure() {
        let all = Share::ALL;
        let cpu = |json, cpus| measure::cpu(&job(json, cpus, 1, 0).0, all).map(|used| used.used);
        assert_eq!(cpu(r#"{"nodes":{}}"#, 8), Err(Missing::Unmeasured), "code 1");
        assert_eq!(cpu(r#"{"nodes":{"n1":{"cpus":8}}}"#, 8), Err(Missing::Unmeasured), "code 2");
        let more = r#"{"nodes":{"n1":{"cpus":8,"total_time":4200}}}"#;
        assert_eq!(cpu(more, 8), Err(Missing::MoreThanHeld), "4200 of 800 s: code 3");
        let gpu = |json| measure::gpu_mean(&job(json, 1, 1, 1).0, all);
        assert_eq!(gpu(r#"{"nodes":{"n1":{"cpus":1}}}"#), Err(Missing::Unmeasured));
        let wild = r#"{"nodes":{"n1":{"gpu_utilization":{"0":101}}}}"#;
        assert_eq!(gpu(wild), Err(Missing::Unmeasured), "101 % is none: code 3");
        let memory = |json| measure::memory(&job(json, 1, 1, 0).0, all);
        let half = r#"{"nodes":{"n1":{"used_memory":20e9}}}"#;
        assert_eq!(memory(half), Err(Missing::Held), "nobody says what was held: code 2");
        let over = r#"{"nodes":{"n1":{"used_memory":20e9,"total_memory":10e9}}}"#;
        assert_eq!(memory(over), Err(Missing::MoreThanHeld), "code 3");
        let big = r#"{"nodes":{"n1":{"gpu_utilization":{"0":95},"gpu_used_memory":{"0":86973087744},
            "gpu_total_memory":{"0":85899345920}}}}"#;
        assert_eq!(gpu(big), Err(Missing::MoreThanHeld), "81 of 80 GiB");
    }

    #[test]
    fn v22_v24_v25_nodes_by_themselves() {
        let two = r#"{"nodes":{"n1":{"total_time":100,"used_memory":45097156608,"total_memory":107374182400},
            "n2":{"total_time":0,"used_memory":46170898432,"total_memory":107374182400}}}"#;
        let (job, names) = job(two, 2, 2, 0);
        let most = measure::memory_per_node(&job, Share::ALL).unwrap();
        assert_eq!(most.get(), 43 << 30);
        let nodes = measure::nodes(&job, Share::ALL).unwrap();
        assert_eq!(nodes.iter().filter(|node| node.cpu_seconds == Some(0.0)).count(), 1);
        let set: Vec<&str> = nodes.iter().map(|node| names.text(node.node)).collect();
        assert_eq!(set, ["n1", "n2"]);
    }

    /// Jobstats rounds to one decimal of per cent: its 0 may be a GPU that worked for a moment.
    #[test]
    fn v23_idle_gpus_by_a_rounded_mean() {
        let json = r#"{"nodes":{"n1":{"gpu_utilization":{"0":95}},
            "n2":{"gpu_utilization":{"0":0,"1":0.0}}}}"#;
        let (job, _) = job(json, 1, 2, 3);
        let gpus = measure::gpus(&job, Share::ALL).unwrap();
        let idle: Vec<Idle> = gpus.iter().filter_map(|gpu| Some(gpu.utilisation?.idle())).collect();
        assert_eq!(idle, [Idle::No, Idle::Nearly, Idle::Nearly]);
    }

    #[test]
    fn garbage_is_an_error_and_a_bomb_is_not_unpacked() {
        let short = packed(V13);
        let cut = short.get(..short.len() - 8).unwrap();
        for comment in ["JS1:H4s!", cut, "JS1:AAAA", &packed("[1]"), &packed("{\"nodes\":3}")] {
            assert!(read(comment).is_err(), "{comment}");
        }
        let bomb = packed(&" ".repeat(usize::try_from(LARGEST).unwrap() + 10));
        assert!(bomb.len() < 100_000);
        assert!(matches!(read(&bomb), Err(SummaryError::Large)));
    }
}
