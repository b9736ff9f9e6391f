//! What slurmdbd deletes, and whether it is collected before that.

use std::sync::Arc;

use jiff::Timestamp;
use steward_common::span::Span;
use steward_common::time;

use super::{Finding, Patient, good, note, trouble};
use crate::{archive, purge};

/// Compares slurmdbd's settings with what the archive has.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let settings = match patient.database().await {
        Ok(settings) => settings,
        Err(why) => {
            let advice = "see that sacctmgr works as this user: nobody warns before slurmdbd \
                          deletes jobs that are not collected";
            return vec![note(why.clone(), advice)];
        }
    };
    let Some((setting, after)) = purge::first(settings) else {
        return vec![good("slurmdbd deletes neither jobs nor steps")];
    };
    let work = tokio::task::spawn_blocking({
        let patient = Arc::clone(&patient);
        move || archive::open(&patient.place, &patient.config)?.manifest()
    });
    // What is wrong with the archive is the business of its own check.
    let Ok(Ok(manifest)) = work.await else { return Vec::new() };
    let now = time::Timestamp::new(Timestamp::now().as_second());
    let configured = &patient.config.slurm.clusters;
    let covered = manifest.clusters.iter();
    let mut clusters: Vec<_> =
        covered.map(|(name, cluster)| (name.as_str(), cluster.covered.last())).collect();
    if clusters.is_empty() && configured.is_empty() {
        clusters.push(("the archive", None));
    }
    let warnings: Vec<Finding> = purge::warnings(&clusters, configured, now, (setting, after))
        .into_iter()
        .map(|text| trouble(text, "collect now; what slurmdbd has deleted cannot be had again"))
        .collect();
    if warnings.is_empty() {
        let text = format!("slurmdbd deletes after {} ({setting}); all is collected", Span(after));
        return vec![good(text)];
    }
    warnings
}
