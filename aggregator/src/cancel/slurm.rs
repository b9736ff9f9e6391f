//! What is done to jobs, and what Slurm says of them then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steward_common::time::Timestamp;

use crate::config::Config;
use crate::source::slurm::command::CommandError;
use crate::source::slurm::settings;

/// How long one call may take, whatever `slurm.timeout` says: a job is held by us meanwhile.
const LIMIT: Duration = Duration::from_secs(30);

/// What Slurm says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs, or may again.
    Lives {
        /// Slurm's word for its state.
        state: String,
        /// When it was submitted, if Slurm says it in a way that can be read.
        submitted: Option<Timestamp>,
    },
    /// It is over or about to be.
    Over(String),
}

/// Who speaks to Slurm. Calls take their time: not on a thread that others need.
pub trait Controller: Send + Sync + fmt::Debug {
    /// What Slurm says of a job.
    ///
    /// # Errors
    /// If it does not answer.
    fn fate(&self, cluster: &str, job: u32) -> Result<Fate, String>;

    /// Sends a signal to a job's script and steps.
    ///
    /// # Errors
    /// If that failed.
    fn signal(&self, cluster: &str, job: u32, signal: &str) -> Result<(), String>;

    /// Ends a job; one that is over already is as good.
    ///
    /// # Errors
    /// If that failed.
    fn kill(&self, cluster: &str, job: u32) -> Result<(), String>;
}

/// The real one.
#[derive(Debug)]
pub struct Commands {
    /// The settings.
    pub config: Arc<Config>,
}

impl Commands {
    fn call(
        &self,
        argv: &[String],
        cluster: &str,
        arguments: &[&str],
    ) -> Result<String, CommandError> {
        let mut all: Vec<&str> = Vec::new();
        // Where only the local cluster is known there may be no accounting to ask for others.
        if !self.config.slurm.clusters.is_empty() {
            all.extend(["-M", cluster]);
        }
        all.extend(arguments);
        let limit = self.config.slurm.timeout.0.min(LIMIT);
        settings::text(argv, &all, limit, &(Arc::new(|| false) as _))
    }
}

/// The states in which a job lives.
const ALIVE: &[&str] = &[
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "CONFIGURING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "SPECIAL_EXIT",
];

/// Reads `RUNNING|2026-11-16T17:00:00`; a job that Slurm has forgotten is no line.
fn fate(text: &str) -> Fate {
    let line = text.lines().map(str::trim).find(|line| line.contains('|'));
    let Some((state, submitted)) = line.and_then(|line| line.split_once('|')) else {
        return Fate::Over("gone".to_owned());
    };
    if !ALIVE.contains(&state) {
        return Fate::Over(state.to_owned());
    }
    let moment = submitted.trim().parse::<jiff::civil::DateTime>().ok();
    let zoned = moment.and_then(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let submitted = zoned.map(|zoned| Timestamp::new(zoned.timestamp().as_second()));
    Fate::Lives { state: state.to_owned(), submitted }
}

impl Controller for Commands {
    fn fate(&self, cluster: &str, job: u32) -> Result<Fate, String> {
        let id = job.to_string();
        let arguments = ["-h", "-t", "all", "-o", "%T|%V", "-j", &id];
        match self.call(&self.config.slurm.squeue, cluster, &arguments) {
            Ok(text) => Ok(fate(&text)),
            Err(CommandError::Failed { complaint, .. })
                if complaint.contains("Invalid job id specified") =>
            {
                Ok(Fate::Over("gone".to_owned()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn signal(&self, cluster: &str, job: u32, signal: &str) -> Result<(), String> {
        let signal = format!("--signal={signal}");
        // Without --full the batch script, which is who can save its work, would hear nothing.
        let arguments = ["--full", &signal, &job.to_string()];
        let done = self.call(&self.config.slurm.scancel, cluster, &arguments);
        done.map(drop).map_err(|error| error.to_string())
    }

    fn kill(&self, cluster: &str, job: u32) -> Result<(), String> {
        let done = self.call(&self.config.slurm.scancel, cluster, &[&job.to_string()]);
        done.map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_that_is_no_life_is_an_end() {
        let submitted = Some(Timestamp::new(1_794_848_400));
        let lives = |state: &str, submitted| Fate::Lives { state: state.to_owned(), submitted };
        for (text, expected) in [
            ("RUNNING|2026-11-16T17:00:00\n", lives("RUNNING", submitted)),
            ("CLUSTER: c1\nRUNNING|2026-11-16T17:00:00\n", lives("RUNNING", submitted)),
            ("PENDING|N/A\n", lives("PENDING", None)),
            ("CANCELLED|2026-11-16T17:00:00", Fate::Over("CANCELLED".to_owned())),
            ("COMPLETING|2026-11-16T17:00:00", Fate::Over("COMPLETING".to_owned())),
            ("", Fate::Over("gone".to_owned())),
        ] {
            assert_eq!(fate(text), expected, "{text:?}");
        }
    }
}
