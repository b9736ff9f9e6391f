//! steward.toml.

use std::sync::Arc;

use super::{Finding, Patient, good, note, trouble};
use crate::config::DEFAULT_PATH;

/// Whether there is a file, and whether it can be used.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    vec![match (&patient.settings, &patient.config.file) {
        (Some(why), _) => trouble(
            why.clone(),
            "put that line right; until then every other command ends with code 2, and what \
             follows here was found with the defaults",
        ),
        (None, Some(file)) => good(format!("{} can be used", file.display())),
        (None, None) => note(
            format!("{DEFAULT_PATH} is not there: the defaults hold"),
            "copy deploy/config/steward.toml there; `steward config check` says what holds",
        ),
    }]
}
