//! A reservation: `scontrol -o show reservations`, times as seconds (`SLURM_TIME_FORMAT=%s`).

use std::sync::Arc;

use super::record;
use crate::id::NodeName;
use crate::slurm::{ParseError, hostlist};
use crate::time::Timestamp;

/// A reservation, now or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Its name.
    pub name: Arc<str>,
    /// From when.
    pub start: Option<Timestamp>,
    /// Until when.
    pub end: Option<Timestamp>,
    /// Its nodes.
    pub nodes: Vec<NodeName>,
    /// How many nodes it has.
    pub node_count: Option<u64>,
    /// How many cores it has.
    pub core_count: Option<u64>,
    /// Slurm's flags, such as `MAINT`.
    pub flags: Vec<Arc<str>>,
    /// Who may use it, as Slurm lists them.
    pub users: Option<Arc<str>>,
    /// Accounts that may use it.
    pub accounts: Option<Arc<str>>,
    /// The partition that it is in.
    pub partition: Option<Arc<str>>,
}

impl Reservation {
    /// Whether it holds its nodes at `now`.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.start.is_some_and(|start| start <= now) && self.end.is_none_or(|end| now < end)
    }

    /// Whether it is for maintenance.
    #[must_use]
    pub fn is_maintenance(&self) -> bool {
        self.flags.iter().any(|flag| &**flag == "MAINT")
    }
}

/// Reads a reservation a line; that there is none is said in words.
///
/// # Errors
/// If a line is not about a reservation.
pub fn parse(text: &str) -> Result<Vec<Reservation>, ParseError> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("No reservations"))
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> Result<Reservation, ParseError> {
    let fields = record::fields(line);
    let get = |key: &str| fields.get(key).copied().filter(|text| !record::is_nothing(text));
    let name = get("ReservationName").ok_or_else(|| {
        ParseError::new("reservation", line, "a line that begins with ReservationName=")
    })?;
    let time = |key: &str| Timestamp::from_slurm(get(key).unwrap_or(""));
    Ok(Reservation {
        name: Arc::from(name),
        start: time("StartTime")?,
        end: time("EndTime")?,
        nodes: hostlist::expand(get("Nodes").unwrap_or(""))?,
        node_count: get("NodeCnt").and_then(|count| count.parse().ok()),
        core_count: get("CoreCnt").and_then(|count| count.parse().ok()),
        flags: get("Flags").into_iter().flat_map(|list| list.split(',')).map(Arc::from).collect(),
        users: get("Users").map(Arc::from),
        accounts: get("Accounts").map(Arc::from),
        partition: get("PartitionName").map(Arc::from),
    })
}
