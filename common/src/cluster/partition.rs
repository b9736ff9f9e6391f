//! A partition: `scontrol -o show partitions`.

use std::sync::Arc;
use std::time::Duration;

use super::record;
use crate::limit::Limit;
use crate::slurm::ParseError;
use crate::slurm::duration::{self, TimeLimit};

/// A partition at a moment. Which nodes it has is said by the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub name: Arc<str>,
    /// Slurm's word for whether it takes and runs jobs: up, down, drain or inactive.
    pub state: Arc<str>,
    /// Whether jobs that name no partition come here.
    pub is_default: bool,
    /// The longest time limit.
    pub longest: Option<Limit<Duration>>,
    /// Its tier of priority.
    pub tier: Option<u64>,
}

/// Reads a partition a line.
///
/// # Errors
/// If a line is not about a partition.
pub fn parse(text: &str) -> Result<Vec<Partition>, ParseError> {
    text.lines().filter(|line| !line.trim().is_empty() && !is_none(line)).map(parse_line).collect()
}

fn is_none(line: &str) -> bool {
    line.starts_with("No partitions")
}

fn parse_line(line: &str) -> Result<Partition, ParseError> {
    let fields = record::fields(line);
    let get = |key: &str| fields.get(key).copied();
    let name = get("PartitionName").ok_or_else(|| {
        ParseError::new("partition", line, "a line that begins with PartitionName=")
    })?;
    let longest = match get("MaxTime").map(duration::limit) {
        Some(Ok(Some(TimeLimit::Own(limit)))) => Some(limit),
        _ => None,
    };
    Ok(Partition {
        name: Arc::from(name),
        state: Arc::from(get("State").unwrap_or("unknown").to_ascii_lowercase()),
        is_default: get("Default") == Some("YES"),
        longest,
        tier: get("PriorityTier").and_then(|tier| tier.parse().ok()),
    })
}
