//! `status`: what the service is and how its tasks do.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Call;
use crate::serve::leader::Role;

/// What the service is. Times are RFC 3339.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// `leader`, `standby` or `trouble`.
    pub role: String,
    /// Since when it runs.
    pub started: Timestamp,
    /// Its process.
    pub pid: u32,
    /// How its tasks do.
    pub tasks: Vec<TaskStatus>,
    /// As whom it sees the one who asked.
    pub you: You,
}

/// How a task does.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskStatus {
    /// Its name.
    pub name: String,
    /// Runs that succeeded since the service started.
    pub ok: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Times at which it was still running.
    pub skipped: u64,
    /// Since when it runs, if it does.
    pub running_since: Option<Timestamp>,
    /// When it last succeeded.
    pub last_success: Option<Timestamp>,
    /// When it last failed.
    pub last_failure: Option<Timestamp>,
    /// When it is due next.
    pub next: Option<Timestamp>,
    /// Why it last failed, for the administrator.
    pub error: Option<String>,
}

impl TaskStatus {
    /// Whether its last run failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.last_failure > self.last_success
    }
}

/// The one who asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct You {
    /// The user id.
    pub uid: u32,
    /// The name.
    pub user: Option<String>,
    /// Whether everything may be asked.
    pub is_admin: bool,
}

/// Tells.
///
/// # Errors
/// If JSON cannot be written.
pub async fn answer(call: Call) -> anyhow::Result<Value> {
    let role = match call.state.leadership.role() {
        Role::Leader => "leader",
        Role::Standby => "standby",
        Role::Trouble(_) => "trouble",
    };
    let tasks = call.state.tasks.iter().map(|record| {
        let now = record.now();
        TaskStatus {
            name: record.name.to_owned(),
            ok: now.ok,
            failed: now.failed,
            skipped: now.skipped,
            running_since: now.running_since,
            last_success: now.last_success,
            last_failure: now.last_failure,
            next: now.next,
            // It may hold addresses and paths that are nobody else's business.
            error: now.error.filter(|_| call.peer.is_admin),
        }
    });
    Ok(serde_json::to_value(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: role.to_owned(),
        started: call.state.started,
        pid: std::process::id(),
        tasks: tasks.collect(),
        you: You { uid: call.peer.uid, user: call.peer.user, is_admin: call.peer.is_admin },
    })?)
}
