//! What agents measured of runs, as Prometheus has it: asked for all jobs of a window at once, a
//! question for each metric, before the window's rows are read.
//!
//! A run is told from another one of the same job by the moment from which the agent watched it.
//! Where a node has two such moments in one window, it says nothing of either.

mod gpus;
mod watched;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::job::{AgentUse, Run};
use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::config::Mapping;
use crate::driver::Driver;
use crate::source::prometheus::{Prometheus, PrometheusError, Series};
use gpus::{Answer, Busy, Exporter};
use watched::{Question, Watched};

/// The Prometheus that collects from the agents, while a collection goes on.
pub struct Agents {
    prometheus: Arc<Prometheus>,
    driver: Driver,
    /// Set when a question had no answer: then no more are asked.
    is_deaf: AtomicBool,
    /// How the exporter of GPUs is read, if there is one.
    gpus: Option<Mapping>,
    /// Set when a question about GPUs had no answer.
    is_blind: AtomicBool,
}

impl Agents {
    /// The one at `url`, where no question may take longer than `timeout`, and which knows GPUs by
    /// this exporter.
    ///
    /// # Errors
    /// If it is no address.
    pub fn new(
        url: &str,
        timeout: Duration,
        gpus: Option<Mapping>,
    ) -> Result<Agents, PrometheusError> {
        let no_thread = |error: io::Error| PrometheusError::NoAnswer {
            url: url.to_owned(),
            why: error.to_string(),
        };
        Ok(Agents {
            prometheus: Arc::new(Prometheus::new(url, timeout)?),
            driver: Driver::start().map_err(no_thread)?,
            is_deaf: AtomicBool::new(false),
            gpus,
            is_blind: AtomicBool::new(false),
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
        answer.unwrap_or_else(given_up)
    }

    fn ask_anything(&self, query: String) -> Result<Answer, PrometheusError> {
        let prometheus = Arc::clone(&self.prometheus);
        let answer = self.driver.wait(async move { prometheus.series(&query).await });
        answer.unwrap_or_else(given_up)
    }

    /// Asks about GPUs. Without an answer nothing is known, which is said once.
    fn gpus<T>(
        &self,
        cluster: &ClusterName,
        question: impl FnOnce(&Exporter<'_>, gpus::Ask<'_>) -> Result<T, PrometheusError>,
    ) -> Option<T> {
        let mapping = self.gpus.as_ref()?;
        if self.is_deaf() || self.is_blind.load(Ordering::Relaxed) {
            return None;
        }
        let exporter = Exporter { mapping, cluster };
        let answer = question(&exporter, &|query| self.ask_anything(query));
        let complain = |error: &PrometheusError| {
            if !self.is_blind.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "jobs are archived without the use of their GPUs");
            }
        };
        answer.inspect_err(complain).ok()
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

fn given_up<T>() -> Result<T, PrometheusError> {
    let why = "the question was given up".to_owned();
    Err(PrometheusError::NoAnswer { url: "Prometheus".to_owned(), why })
}

/// What is known of the runs that ended in some windows.
pub struct Measurements<'a> {
    agents: Option<&'a Agents>,
    cluster: Option<ClusterName>,
    now: Timestamp,
    windows: Vec<(Window, Watched, Option<Busy>)>,
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
            let watched = agents.watched(cluster, window, self.now);
            let busy = agents.gpus(cluster, |exporter, ask| exporter.window(window, self.now, ask));
            self.windows.push((window, watched, busy));
        }
    }

    /// What the agents measured of a run that has ended; `None` if they said nothing about it, or
    /// not yet all.
    pub fn of(&mut self, run: &Run<'_>) -> Option<AgentUse> {
        let agents = self.agents?;
        let end = run.end.filter(|_| run.ended)?;
        if run.start.is_none_or(|start| start >= end) {
            return None;
        }
        if !self.windows.iter().any(|(window, ..)| window.holds(end)) {
            // Asked for by number: it may have ended at any time.
            let hour = end.get().div_euclid(3600) * 3600;
            self.load(Window::new(Timestamp::new(hour), Timestamp::new(hour + 3600))?);
        }
        let (_, watched, busy) = self.windows.iter().find(|(window, ..)| window.holds(end))?;
        let gpu_seconds = busy.as_ref().zip(self.cluster.as_ref()).and_then(|(busy, cluster)| {
            agents.gpus(cluster, |exporter, ask| exporter.seconds(busy, run, ask)).flatten()
        });
        let mut measured = watched.of(run);
        if gpu_seconds.is_some() {
            // Where no agent saw the run, its GPUs may have been measured all the same.
            let unseen = || AgentUse { coverage: Some(0.0), ..AgentUse::default() };
            measured.get_or_insert_with(unseen).gpu_seconds = gpu_seconds;
        }
        measured
    }
}

#[cfg(test)]
mod tests;
