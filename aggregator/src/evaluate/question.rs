//! Questions to Prometheus: a handful, each about all jobs of a cluster at once.

use std::collections::HashMap;
use std::sync::Arc;

use steward_common::id::ClusterName;
use steward_common::metric::{MetricDef, NODE_LABELS};
use steward_common::window::Window;

use crate::driver::Driver;
use crate::source::prometheus::{Prometheus, PrometheusError};
use crate::source::promql::{Extreme, over};

/// The label by which the figures of one answer are told apart.
const FIGURE: &str = "steward_figure";

/// One series of an answer.
pub type Series = (HashMap<String, String>, f64);

/// Expressions whose answers come together, each under its name.
#[must_use]
pub fn together(figures: &[(&str, String)]) -> String {
    let named = figures.iter().map(|(name, query)| {
        format!("label_replace({query}, \"{FIGURE}\", \"{name}\", \"\", \"\")")
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// The name of the figure that a series belongs to.
#[must_use]
pub fn figure(labels: &HashMap<String, String>) -> &str {
    label(labels, FIGURE)
}

/// A label; empty if there is none.
#[must_use]
pub fn label<'a>(labels: &'a HashMap<String, String>, name: &str) -> &'a str {
    labels.get(name).map_or("", String::as_str)
}

/// The node of a series of our agents.
#[must_use]
pub fn node(labels: &HashMap<String, String>) -> &str {
    let [_, instance] = NODE_LABELS;
    label(labels, instance)
}

/// The most of a metric of our agents over a window, for each job and node.
#[must_use]
pub fn most(def: &MetricDef, cluster: &ClusterName, window: Window) -> String {
    over(def, Extreme::Most, cluster, &[], window)
}

/// The least.
#[must_use]
pub fn least(def: &MetricDef, cluster: &ClusterName, window: Window) -> String {
    over(def, Extreme::Least, cluster, &[], window)
}

/// Who is asked.
pub struct Oracle {
    prometheus: Arc<Prometheus>,
    driver: Driver,
}

impl Oracle {
    /// The server at `url`.
    ///
    /// # Errors
    /// If it is no address, or the system has no thread to give.
    pub fn new(url: &str, timeout: std::time::Duration) -> anyhow::Result<Oracle> {
        let prometheus = Arc::new(Prometheus::new(url, timeout)?);
        Ok(Oracle { prometheus, driver: Driver::start()? })
    }

    /// Asks.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn ask(&self, query: String) -> Result<Vec<Series>, PrometheusError> {
        let prometheus = Arc::clone(&self.prometheus);
        let answer = self.driver.wait(async move { prometheus.series(&query).await });
        answer.unwrap_or_else(|| {
            let why = "the question was given up".to_owned();
            Err(PrometheusError::NoAnswer { url: "Prometheus".to_owned(), why })
        })
    }
}
