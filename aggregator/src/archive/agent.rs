//! What agents measured of a run, as it stands in `raw`.

use serde::{Deserialize, Serialize};
use steward_common::job::{AgentUse, NodeUse};

#[derive(Serialize, Deserialize)]
struct Text {
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpu_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coverage: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Node {
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpus: Option<u32>,
}

/// As JSON.
///
/// # Errors
/// None, as far as these values go.
pub fn write(agent: &AgentUse) -> Result<String, serde_json::Error> {
    let nodes = agent.nodes.iter().map(|one| Node {
        node: one.node.clone(),
        cpu_seconds: one.cpu_seconds,
        peak_memory_bytes: one.peak_memory_bytes,
        gpus: one.gpus,
    });
    serde_json::to_string(&Text {
        nodes: nodes.collect(),
        gpu_seconds: agent.gpu_seconds,
        read_bytes: agent.read_bytes,
        written_bytes: agent.written_bytes,
        coverage: agent.coverage,
    })
}

/// From JSON.
///
/// # Errors
/// If it is not what [`write`] gives.
pub fn read(json: &[u8]) -> Result<AgentUse, serde_json::Error> {
    let text: Text = serde_json::from_slice(json)?;
    let nodes = text.nodes.into_iter().map(|one| NodeUse {
        node: one.node,
        cpu_seconds: one.cpu_seconds,
        peak_memory_bytes: one.peak_memory_bytes,
        gpus: one.gpus,
    });
    Ok(AgentUse {
        nodes: nodes.collect(),
        gpu_seconds: text.gpu_seconds,
        read_bytes: text.read_bytes,
        written_bytes: text.written_bytes,
        coverage: text.coverage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_absent_and_the_rest_comes_back() {
        let node = |node: &str, cpu_seconds| NodeUse {
            node: node.to_owned(),
            cpu_seconds,
            peak_memory_bytes: Some(u64::MAX),
            gpus: None,
        };
        let agent = AgentUse {
            nodes: vec![node("c1", Some(0.1)), node("ü\"", None)],
            gpu_seconds: Some(1.5),
            coverage: Some(1.0 / 3.0),
            ..AgentUse::default()
        };
        let text = write(&agent).unwrap();
        assert!(!text.contains("read_bytes"), "{text}");
        assert_eq!(read(text.as_bytes()).unwrap(), agent);
        assert_eq!(read(b"{}").unwrap(), AgentUse::default());
        assert!(read(b"7").is_err());
        // To the last digit: a run that is rebuilt is the one that was collected.
        for number in 1..2000 {
            let seconds = Some(f64::from(number).sqrt() * 1e-3);
            let agent = AgentUse { gpu_seconds: seconds, ..AgentUse::default() };
            assert_eq!(read(write(&agent).unwrap().as_bytes()).unwrap(), agent);
        }
    }
}
