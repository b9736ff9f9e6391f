//! Reports for administrators: who holds the most, who waits the longest, who wastes what.
//!
//! - A [`Report`] turns [`View`]s, one of each cluster, into [`Table`]s. [`REPORTS`] lists all of
//!   them. Its rows have types of their own, so that other code can have the figures.
//! - [`held`] is what jobs held within the window: hours are pro-rated, so that the sums are those
//!   of [`summary`](crate::summary). Where a report is about single jobs, or about waste, it has the
//!   hours of whole jobs, and says so.
//! - A job that held nothing, because it ended at once, is in no report.
//!
//! To add a report: a file here with a `pub const REPORT`, its `mod` line, its line in [`REPORTS`].

pub mod held;
pub mod jobs_overview;
pub mod longest_queued;
pub mod most;
pub mod most_cores;
pub mod most_gpus;
pub mod table;
pub mod usage;
pub mod usage_by_account;
pub mod usage_overview;
pub mod waste;

use std::time::Duration;

use crate::cluster::CurrentJob;
use crate::intern::Name;
use crate::rule::{Facts, Finding, Share, Subject};

pub use table::{Bars, Column, Table, Value, Weight};

/// What is known of one cluster.
#[derive(Debug)]
pub struct View<'a> {
    /// Its jobs that hold or held something.
    pub facts: &'a Facts,
    /// Its jobs that wait.
    pub waiting: Vec<&'a CurrentJob>,
    /// What rules found, by the name of the instance; empty unless the report is about that.
    pub found: Vec<(&'a str, &'a [(Subject, Finding)])>,
}

impl View<'_> {
    /// The text of a name.
    #[must_use]
    pub fn text(&self, name: Name) -> String {
        self.facts.names.text(name).to_owned()
    }

    /// The name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> String {
        self.facts.cluster.as_str().to_owned()
    }
}

/// What waste costs. What is not known is not guessed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices {
    /// The price of a billing hour, and what it is in.
    pub billing_hour: Option<(f64, String)>,
    /// Power of a CPU that is held and idle, in watts.
    pub cpu_watts: Option<f64>,
    /// Power of a GPU that is held and idle, in watts.
    pub gpu_watts: Option<f64>,
}

/// What a report is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Jobs in these partitions alone; all if there are none.
    pub partitions: Vec<String>,
    /// Jobs that have waited at least for so long.
    pub waited: Duration,
    /// How much of a job must have been seen for a figure of its use to count.
    pub coverage: Share,
    /// What waste costs.
    pub prices: Prices,
}

impl Default for Ask {
    fn default() -> Ask {
        let (waited, coverage) = (Duration::from_secs(3 * 86_400), Share::per_cent(80));
        Ask { partitions: Vec::new(), waited, coverage, prices: Prices::default() }
    }
}

impl Ask {
    /// Whether it is about jobs in that partition, or in one of those of a list with commas.
    #[must_use]
    pub fn admits(&self, partition: &str) -> bool {
        let wanted = |one: &str| self.partitions.iter().any(|known| known == one);
        self.partitions.is_empty() || partition.split(',').any(wanted)
    }
}

/// What must be known for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// What Slurm's accounting says.
    Accounting,
    /// The jobs that wait at this moment.
    Queue,
    /// Also what was measured of jobs.
    Measurements,
    /// Also what rules say of them.
    Findings,
}

/// A report.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// What it says, in a line.
    pub about: &'static str,
    /// What must be known for it.
    pub needs: Needs,
    /// Makes its tables.
    pub make: fn(&[View<'_>], &Ask) -> Vec<Table>,
}

/// THE LIST of reports, by name.
pub const REPORTS: &[(&str, Report)] = &[
    ("usage-overview", usage_overview::REPORT),
    ("usage-by-account", usage_by_account::REPORT),
    ("jobs-overview", jobs_overview::REPORT),
    ("longest-queued", longest_queued::REPORT),
    ("most-cores", most_cores::REPORT),
    ("most-gpus", most_gpus::REPORT),
    ("waste", waste::REPORT),
];

/// The report of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Report> {
    REPORTS.iter().find(|(known, _)| *known == name).map(|(_, report)| report)
}

#[cfg(test)]
mod tests;
