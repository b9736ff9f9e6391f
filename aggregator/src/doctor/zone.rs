//! The site's time zone.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Finding, Patient, good, note};

/// Whether days begin where people think.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let advice = "set time_zone in steward.toml, such as \"Europe/Berlin\": days and schedules follow \
                  it, also when clocks change";
    if let Some(trouble) = patient.config.zone_trouble() {
        return vec![note(trouble, advice)];
    }
    let zone = patient.config.zone();
    let now = Timestamp::now().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let from = if patient.config.time_zone.is_some() { "time_zone" } else { "the system's" };
    vec![match zone.iana_name() {
        Some(name) => good(format!("{name} ({from}), where it is {now}")),
        None => note(format!("{from} has no name; it is {now} there"), advice),
    }]
}
