//! Who would have been told: the past, judged as if it were the present, step by step.
//!
//! At each step only what had ended by then is known, from the archive alone. One step is in memory
//! at a time; what is kept is who was told, when and of which jobs.

mod tally;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use steward_common::id::ClusterName;
use steward_common::rule::Instance;
use steward_common::stretches::Stretches;
use steward_common::time::Timestamp;
use steward_common::window::Window;

pub use tally::{Backtest, Step, Told, Unknown};

use crate::archive::Archive;
use crate::collect::Watch;
use crate::command::{BadInput, Interrupted};
use crate::config::Config;
use crate::evaluate::window::midnight_before;
use crate::evaluate::{self, judge};
use crate::shutdown::Shutdown;

/// More steps than anybody reads, and fewer than take for ever.
const MOST: u64 = 1000;

/// How long ago the last collection may be.
const TRAIL: Duration = Duration::from_secs(86_400);

/// What is to be found out.
#[derive(Debug)]
pub struct Question {
    /// The rules.
    pub instances: Vec<Instance>,
    /// The time at each step, the oldest first.
    pub steps: Vec<Window>,
    /// These clusters, or all.
    pub clusters: Vec<ClusterName>,
    /// This user only, or everybody.
    pub user: Option<String>,
}

/// The windows: they end now, and every so often before, back to so many days ago; each begins at
/// midnight `days` days before its end.
///
/// # Errors
/// If there would be too many, or the calendar does not reach so far.
pub fn steps(
    now: Timestamp,
    back: Duration,
    every: Duration,
    days: u16,
    zone: &TimeZone,
) -> Result<Vec<Window>, BadInput> {
    let count = back.as_secs() / every.as_secs().max(1);
    if count > MOST {
        let why = format!("that would be {count} steps; at most {MOST}: take a longer --every");
        return Err(BadInput(why));
    }
    let mut steps = Vec::new();
    for at in 0..=count {
        let ago = Duration::from_secs(every.as_secs().saturating_mul(at));
        if ago >= back && at > 0 {
            continue;
        }
        let to = now.before(ago);
        let from = midnight_before(to, days, zone).map_err(|error| BadInput(error.to_string()))?;
        steps.extend(Window::new(from, to));
    }
    steps.reverse();
    Ok(steps)
}

/// Judges one step after the other.
///
/// # Errors
/// If the archive cannot be read, or a signal came.
pub fn run(
    config: &Arc<Config>,
    archive: &Archive,
    question: &Question,
    shutdown: &Shutdown,
    watch: &dyn Watch,
) -> anyhow::Result<Backtest> {
    let mut backtest = Backtest::default();
    watch.begin(question.steps.len());
    for window in &question.steps {
        if shutdown.is_due() {
            return Err(Interrupted.into());
        }
        let order = evaluate::Order {
            window: *window,
            now: window.to(),
            clusters: question.clusters.clone(),
            live: false,
        };
        let mut troubles = Vec::new();
        let gathered = evaluate::look(config, archive, &order, shutdown, &mut troubles)?;
        backtest.troubles.extend(troubles.iter().map(ToString::to_string));
        let manifest = archive.manifest()?;
        let wanted = |name: &str| {
            question.clusters.is_empty()
                || question.clusters.iter().any(|cluster| cluster.as_str() == name)
        };
        let mut known = manifest.clusters.iter().filter(|(name, _)| wanted(name)).peekable();
        let covered =
            known.peek().is_some() && known.all(|(_, one)| is_held(&one.covered, *window));
        let mut step = backtest.step(*window, covered);
        let mut jobs = 0;
        for one in gathered {
            jobs += one.facts.jobs().len() as u64;
            let judged = judge(one, &question.instances);
            step.add(&judged, &question.instances, question.user.as_deref());
        }
        step.close(jobs);
        watch.part_done(jobs);
    }
    Ok(backtest)
}

/// Whether the archive holds all of the window. It always trails the present a little.
pub(crate) fn is_held(covered: &Stretches, window: Window) -> bool {
    let last = covered.last().unwrap_or(window.from());
    let trails = window.to().since(last).is_some_and(|behind| behind <= TRAIL);
    let to = if trails { last } else { window.to() };
    Window::new(window.from(), to).is_some_and(|window| covered.holds(window))
}

#[cfg(test)]
pub(crate) mod tests;
