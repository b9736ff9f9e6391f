//! Slurm's settings without which the bank cannot work.

use std::sync::Arc;

use super::{Finding, Patient, good, trouble};
use crate::bank::settings::wrong;

/// Reads slurmctld's settings, if the service checks accounts.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    if !patient.config.bank.enabled {
        return vec![good("off: the service checks no accounts (bank.enabled)")];
    }
    match patient.controller().await {
        Err(why) => vec![trouble(
            why.clone(),
            "see that scontrol works as this user, and that slurmctld runs",
        )],
        Ok(told) => {
            let found = wrong(&told.settings);
            if found.is_empty() {
                return vec![good("usage is kept and limits are enforced")];
            }
            let advice = "change that line of slurm.conf, and start slurmctld anew";
            found.into_iter().map(|what| trouble(what, advice)).collect()
        }
    }
}
