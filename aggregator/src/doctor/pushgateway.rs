//! The Pushgateway.

use std::sync::Arc;

use jiff::Timestamp;
use reqwest::{Client, Url};
use steward_common::metric::PUSH_GROUPS;

use super::{CALL, Finding, Patient, good, note, trouble};
use crate::source::pushgateway::groups;

/// Whether it answers, and whose groups are stale.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let config = &patient.config.pushgateway;
    let Some(url) = &config.url else {
        return vec![good("none configured, and none is needed where Prometheus scrapes agents")];
    };
    let advice = "see that it runs, and that pushgateway.url is its address";
    let client = Client::builder().timeout(config.timeout.0.min(CALL)).build();
    let (client, gateway) = match (client, Url::parse(url)) {
        (Ok(client), Ok(gateway)) => (client, gateway),
        (Err(error), _) => return vec![trouble(error.to_string(), advice)],
        (_, Err(error)) => return vec![trouble(format!("{url}: {error}"), advice)],
    };
    let found = match groups(&client, &gateway).await {
        Ok(found) => found,
        Err(error) => return vec![trouble(error.to_string(), advice)],
    };
    let now = found.now.unwrap_or_else(Timestamp::now);
    let ours = found.all.iter().filter(|group| PUSH_GROUPS.contains(&group.job.as_str())).count();
    let stale = found.all.iter().filter(|group| group.is_stale(now, config.stale_after.0)).count();
    vec![match stale {
        0 => good(format!("{url}: {ours} groups of agents, none stale")),
        stale => note(
            format!("{url}: {stale} of {ours} groups of agents are stale"),
            "`steward serve` deletes them; see that it leads and has pushgateway.url",
        ),
    }]
}
