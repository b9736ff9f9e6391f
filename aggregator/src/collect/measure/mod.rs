//! What agents measured of runs, as Prometheus has it: asked for all jobs of a window at once, a
//! question for each metric, before the window's rows are read.
//!
//! A run is told from another one of the same job by the moment from which the agent watched it.
//! Where a node has two such moments in one window, it says nothing of either.

mod watched;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::job::{AgentUse, Run};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::driver::Driver;
use crate::source::prometheus::{Prometheus, PrometheusError, Series};
use watched::{Question, Watched};

/// The Prometheus that collects from the agents, while a collection goes on.
pub struct Agents {
    prometheus: Arc<Prometheus>,
    driver: Driver,
    /// Set when a question had no answer: then no more are asked.
    is_deaf: AtomicBool,
}

impl Agents {
    /// The one at `url`, where no question may take longer than `timeout`.
    ///
    /// # Errors
    /// If it is no address.
    pub fn new(url: &str, timeout: Duration) -> Result<Agents, PrometheusError> {
        let no_thread = |error: io::Error| PrometheusError::NoAnswer {
            url: url.to_owned(),
            why: error.to_string(),
        };
        Ok(Agents {
            prometheus: Arc::new(Prometheus::new(url, timeout)?),
            driver: Driver::start().map_err(no_thread)?,
            is_deaf: AtomicBool::new(false),
        })
    }

    /// Whether a question had no answer.
    #[must_use]
    pub fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    fn ask(&self, query: String) -> Result<Vec<Series>, PrometheusError> {
        let prometheus = Arc::clone(&self.prometheus);
        let answer = self.driver.wait(async move { prometheus.jobs(&query).await });
        answer.unwrap_or_else(|| {
            let why = "the question was given up".to_owned();
            Err(PrometheusError::NoAnswer { url: "Prometheus".to_owned(), why })
        })
    }

    /// What they measured in a window. Without an answer nothing, which is said once.
    fn watched(&self, cluster: &ClusterName, window: Window, now: Timestamp) -> Watched {
        if self.is_deaf() {
            return Watched::default();
        }
        let question = Question { cluster, window, now };
        question.answer(&mut |query| self.ask(query)).unwrap_or_else(|error| {
            if !self.is_deaf.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "jobs are archived without what agents measured");
            }
            Watched::default()
        })
    }
}

/// What is known of the runs that ended in some windows.
pub struct Measurements<'a> {
    agents: Option<&'a Agents>,
    cluster: Option<ClusterName>,
    now: Timestamp,
    windows: Vec<(Window, Watched)>,
}

impl<'a> Measurements<'a> {
    /// Nothing yet.
    #[must_use]
    pub fn new(agents: Option<&'a Agents>, cluster: &str, now: Timestamp) -> Measurements<'a> {
        Measurements { agents, cluster: cluster.parse().ok(), now, windows: Vec::new() }
    }

    /// Asks for the runs that end in a window.
    pub fn load(&mut self, window: Window) {
        if let (Some(agents), Some(cluster)) = (self.agents, &self.cluster) {
            self.windows.push((window, agents.watched(cluster, window, self.now)));
        }
    }

    /// What the agents measured of a run that has ended; `None` if they said nothing about it, or
    /// not yet all.
    pub fn of(&mut self, run: &Run<'_>) -> Option<AgentUse> {
        self.agents?;
        let end = run.end.filter(|_| run.ended)?;
        if run.start.is_none_or(|start| start >= end) {
            return None;
        }
        if !self.windows.iter().any(|(window, _)| window.holds(end)) {
            // Asked for by number: it may have ended at any time.
            let hour = end.get().div_euclid(3600) * 3600;
            self.load(Window::new(Timestamp::new(hour), Timestamp::new(hour + 3600))?);
        }
        let (_, watched) = self.windows.iter().find(|(window, _)| window.holds(end))?;
        watched.of(run)
    }
}

#[cfg(test)]
mod tests;
