//! Prometheus: whether it answers and has what agents measure.

use std::sync::Arc;

use jiff::Timestamp;
use steward_common::id::NodeName;
use steward_common::metric::{JOBS_INFO, NODE_LABELS};

use super::{CALL, Finding, Patient, good, note, trouble};
use crate::source::prometheus::Prometheus;
use crate::source::promql;

/// An agent that has not scanned for this long is silent, in seconds.
pub const SILENT: f64 = 120.0;

/// An agent, as Prometheus knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its cluster.
    pub cluster: String,
    /// Its node.
    pub node: NodeName,
    /// Seconds since its last scan.
    pub age: f64,
}

/// Asks for agents and jobs.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let Some(url) = &patient.config.prometheus.url else {
        return vec![note(
            "none configured",
            "set prometheus.url: without it nothing that agents measure gets into the archive",
        )];
    };
    let agents = match agents(&patient).await {
        Ok(agents) => agents,
        Err(why) => {
            let advice = "see that it runs, and that prometheus.url is its address";
            return vec![trouble(why, advice)];
        }
    };
    if agents.is_empty() {
        return vec![note(
            format!("{url} answers, but has nothing of any agent"),
            "let it scrape the agents or the Pushgateway, with honor_labels: true",
        )];
    }
    let oldest = agents.iter().map(|agent| agent.age).fold(0.0, f64::max);
    let silent = agents.iter().filter(|agent| agent.age > SILENT).count();
    let jobs = jobs(&patient).await.unwrap_or(0.0);
    let text = format!(
        "{url}: {} agents, the last word of the quietest {oldest:.0} s ago; {jobs} jobs on nodes",
        agents.len()
    );
    vec![match silent {
        0 => good(text),
        silent => note(
            format!("{text}; {silent} of them are silent"),
            "see `steward-agent` on those nodes; a clock that is off looks the same",
        ),
    }]
}

fn server(patient: &Patient) -> Result<Option<Prometheus>, String> {
    let config = &patient.config.prometheus;
    let Some(url) = &config.url else { return Ok(None) };
    Prometheus::new(url, config.timeout.0.min(CALL)).map(Some).map_err(|error| error.to_string())
}

/// Every agent that Prometheus knows.
///
/// # Errors
/// If it does not answer.
pub async fn agents(patient: &Patient) -> Result<Vec<Agent>, String> {
    let Some(server) = server(patient)? else { return Ok(Vec::new()) };
    let series = server.series(&promql::heartbeats()).await.map_err(|error| error.to_string())?;
    let now = Timestamp::now().as_duration().as_secs_f64();
    let [cluster, instance] = NODE_LABELS;
    let agent = |(labels, last): (std::collections::HashMap<String, String>, f64)| {
        let node = labels.get(instance)?.parse().ok()?;
        Some(Agent { cluster: labels.get(cluster)?.clone(), node, age: (now - last).max(0.0) })
    };
    Ok(series.into_iter().filter_map(agent).collect())
}

async fn jobs(patient: &Patient) -> Option<f64> {
    let server = server(patient).ok()??;
    let series = server.series(&promql::count(&JOBS_INFO)).await.ok()?;
    series.first().map(|(_, count)| *count)
}
