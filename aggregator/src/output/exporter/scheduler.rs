//! What the scheduler does. Its counts begin anew whenever slurmctld does, so they are gauges.

use std::fmt;

use steward_common::cluster::Scheduler;
use steward_common::metric::MetricDef;
use steward_common::metric::cluster as metric;

use super::View;
use super::leaf::{Leaf, count, micro};

/// A metric with the figure that it shows.
type Figure = (&'static MetricDef, fn(&Scheduler) -> Option<u64>, fn(u64) -> f64);

const FIGURES: &[Figure] = &[
    (&metric::SCHEDULER_AGENT_QUEUE, |all| all.agent_queue, count),
    (&metric::SCHEDULER_BACKFILLED, |all| all.backfilled_since_reset, count),
    (&metric::SCHEDULER_BACKFILL_CYCLES, |all| all.backfill_cycles, count),
    (&metric::SCHEDULER_BACKFILL_DEPTH, |all| all.backfill_mean_depth, count),
    (&metric::SCHEDULER_BACKFILL_LAST, |all| all.backfill_last_cycle, micro),
    (&metric::SCHEDULER_BACKFILL_MEAN, |all| all.backfill_mean_cycle, micro),
    (&metric::SCHEDULER_CYCLES, |all| all.cycles, count),
    (&metric::SCHEDULER_CYCLES_A_MINUTE, |all| all.cycles_per_minute, count),
    (&metric::SCHEDULER_DBD_QUEUE, |all| all.dbd_queue, count),
    (&metric::SCHEDULER_LAST_CYCLE, |all| all.last_cycle, micro),
    (&metric::SCHEDULER_LONGEST_CYCLE, |all| all.longest_cycle, micro),
    (&metric::SCHEDULER_MEAN_CYCLE, |all| all.mean_cycle, micro),
    (&metric::SCHEDULER_QUEUE, |all| all.queue_length, count),
    (&metric::SCHEDULER_THREADS, |all| all.threads, count),
];

/// `steward_scheduler_…`.
pub fn scheduler(view: &View<'_>, leaf: &mut Leaf) -> fmt::Result {
    let Some(seen) = &view.snapshot.scheduler else { return Ok(()) };
    let all = &*seen.what;
    for (def, figure, unit) in FIGURES {
        if let Some(value) = figure(all) {
            leaf.put(def, &[view.cluster], unit(value))?;
        }
    }
    if let Some(since) = all.since {
        #[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
        leaf.put(&metric::SCHEDULER_SINCE, &[view.cluster], since.get() as f64)?;
    }
    for (event, jobs) in [
        ("submitted", all.jobs_submitted),
        ("started", all.jobs_started),
        ("completed", all.jobs_completed),
        ("cancelled", all.jobs_cancelled),
        ("failed", all.jobs_failed),
    ] {
        if let Some(jobs) = jobs {
            leaf.put(&metric::SCHEDULER_JOBS, &[view.cluster, event], count(jobs))?;
        }
    }
    for one in &all.by_message {
        let labels = [view.cluster, &*one.name];
        leaf.put(&metric::SCHEDULER_CALLS, &labels, count(one.count))?;
        leaf.put(&metric::SCHEDULER_CALL_TIME, &labels, micro(one.microseconds))?;
    }
    // sdiag lists those first who took the most time.
    for one in all.by_user.iter().take(view.settings.limits.users) {
        let labels = [view.cluster, &*one.name];
        leaf.put(&metric::SCHEDULER_CALLS_BY_USER, &labels, count(one.count))?;
        leaf.put(&metric::SCHEDULER_CALL_TIME_BY_USER, &labels, micro(one.microseconds))?;
    }
    Ok(())
}
