//! The service of this machine.

use std::sync::Arc;

use super::{CALL, Finding, Patient, good, note, trouble};
use crate::serve::client::{AskError, ask};
use crate::serve::handler::status::{Status, TaskStatus};

/// Asks it about itself.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let socket = &patient.config.serve.socket;
    let asked = ask::<Status>(socket, "status", ());
    match tokio::time::timeout(CALL, asked).await {
        Ok(Ok(status)) => judge(&status),
        Ok(Err(AskError::NoService { source, .. })) => vec![note(
            format!("{}: no service answers ({source})", socket.display()),
            "start `steward serve` (deploy/systemd/steward.service), or collect by a timer; \
             without it users cannot ask for their jobs",
        )],
        Ok(Err(error)) => vec![trouble(error.to_string(), "see its log")],
        Err(_) => vec![trouble(
            format!("{}: the service does not answer", socket.display()),
            "see its log, and restart it",
        )],
    }
}

fn judge(status: &Status) -> Vec<Finding> {
    let mut found = Vec::new();
    if status.role == "trouble" {
        found.push(trouble(
            "the service cannot tell whether it leads",
            "see its log: the lock in serve.state cannot be held",
        ));
    }
    for task in status.tasks.iter().filter(|task| task.is_failing()) {
        let why = task.error.as_deref().unwrap_or("why is the administrator's to know");
        found.push(trouble(
            format!("its task {} failed: {why}", task.name),
            "put that right; it is tried again at its next time",
        ));
    }
    let collects = |task: &TaskStatus| task.name == "collect";
    if !status.tasks.iter().any(collects) {
        found.push(note(
            "the service does not collect",
            "set collect.enabled = true, or see that a timer collects",
        ));
    }
    if found.is_empty() {
        let tasks: Vec<&str> = status.tasks.iter().map(|task| task.name.as_str()).collect();
        found.push(good(format!(
            "{} ({}), tasks: {}",
            status.role,
            status.version,
            tasks.join(", ")
        )));
    }
    found
}
