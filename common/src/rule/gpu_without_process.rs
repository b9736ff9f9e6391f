//! `gpu-without-process`.

use std::time::Duration;

use crate::slurm::state::JobState;

use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// GPUs that are held by a job in which nothing runs.
    GpuWithoutProcess {
        /// How long the job has had no process when the user is told.
        time: Duration = Duration::from_secs(3600);
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(GpuWithoutProcess::default())
}

impl Rule for GpuWithoutProcess {
    fn id(&self) -> RuleId {
        RuleId("gpu-without-process")
    }

    fn doc(&self) -> &'static str {
        "Running jobs that hold GPUs and have had no process on any node for an hour.\n\
         Nothing can come of them any more, unless somebody comes back to a session; no exporter \
         of GPUs sees them, because no process is there to be seen.\n\
         End sessions (salloc) that are not used; they end with the shell."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Queue, Need::Processes]
    }

    fn scope(&self) -> Scope {
        Scope::started(0)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let about = |job: &&&Job| job.state == JobState::Running && job.gpu_count() > 0;
        let judge = |job: &&Job| {
            let verdict = self.judge(portfolio, job).unwrap_or_else(Verdict::NoData);
            (Subject::job(job), verdict)
        };
        portfolio.jobs().iter().filter(about).map(judge).collect()
    }
}

impl GpuWithoutProcess {
    fn judge(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<Verdict, Missing> {
        let since = measure::work(job, self.coverage)?.without_process_since;
        let Some(since) = since.ok_or(Missing::Unmeasured)? else { return Ok(Verdict::Fine) };
        // Not longer than the job: clocks of nodes may differ.
        let since = job.start.map_or(since, |start| since.max(start));
        let time = portfolio.facts().now.since(since).unwrap_or_default();
        if time < self.time {
            return Ok(Verdict::Fine);
        }
        let hours = time.as_secs_f64() / 3600.0;
        let figures = Figures::default()
            .with("gpus", job.gpu_count())
            .with("time", Value::Time(time))
            .with("gpu_hours_idle", f64::from(job.gpu_count()) * hours);
        let hits = vec![Hit::new(job, Some(hours / job.hours()), figures.clone())];
        Ok(Verdict::Finding(Finding::new(Audience::User, figures, hits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{Draft, NOW, World, job, near};
    use crate::rule::usage::Work;

    fn draft(empty_for: Option<i64>) -> Draft {
        let since = empty_for.map(|time| crate::time::Timestamp::new(NOW.get() - time));
        let work = Work { without_process_since: Some(since), ..Work::default() };
        let draft = job("a").hours(10.0).held("n1", 8, 2).running().worked(work);
        draft.with(|job| job.end = NOW)
    }

    #[test]
    fn an_hour_just_below_equal_and_just_above() {
        let found =
            |time| World::new([draft(Some(time))]).found(&GpuWithoutProcess::default()).len();
        assert_eq!([3599, 3600, 3601].map(found), [0, 1, 1]);
        let finding = World::new([draft(Some(7200))]).finding(&GpuWithoutProcess::default(), "a");
        near(&finding, "gpu_hours_idle", 4.0);
        assert_eq!(finding.hits[0].wasted, Share::new(0.2));
    }

    #[test]
    fn a_job_with_a_process_is_fine_and_one_not_seen_is_unknown() {
        let rule = GpuWithoutProcess::default();
        assert_eq!(World::new([draft(None)]).on(&rule, "a"), Verdict::Fine);
        let dark = draft(None).with(|job| job.work = None);
        assert_eq!(World::new([dark]).on(&rule, "a"), Verdict::NoData(Missing::Unmeasured));
        assert!(World::new([draft(Some(7200)).with(|job| job.gpus = 0)]).check(&rule).is_empty());
    }
}
