//! `cancel-zero-gpu-jobs`.
//!
//! The rule says which stage a job has reached; whoever acts on it remembers which stages are
//! done. So a run that was missed delays a stage and does not lose it, and no job is cancelled
//! that was not warned.

use std::time::Duration;

use crate::slurm::state::JobState;

use super::efficiency::is_interactive;
use super::facts::Job;
use super::finding::{Audience, Figures, Finding, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::usage::{GpuUsage, Idle};
use super::{Need, Rule, RuleId, Subject, Verdict, Why};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

options! {
    /// Running jobs whose GPUs do nothing.
    CancelZeroGpuJobs {
        /// How long after its start a job that has not used a GPU yet is warned.
        first_warning: Option<Duration> = Some(minutes(60));
        /// How long after its start it is warned again.
        second_warning: Option<Duration> = Some(minutes(105));
        /// How long after its start it may be cancelled.
        cancel: Option<Duration> = Some(minutes(120));
        /// How long the GPUs of a job that used them before are idle when it is warned; up to 24h.
        sliding_warning: Option<Duration> = Some(minutes(240));
        /// How long they are idle when it may be cancelled; up to 24h.
        sliding_cancel: Option<Duration> = Some(minutes(300));
        /// Share of a job's GPUs; a job counts if fewer of them are in use.
        gpu_share: Share = Share::ALL;
        /// Interactive jobs with a time limit up to this are spared; needs the next.
        interactive_time: Option<Duration> = None;
        /// Interactive jobs with up to so many GPUs are spared; needs the one before.
        interactive_gpus: Option<u32> = None;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(95);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(CancelZeroGpuJobs::default())
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstWarning,
    SecondWarning,
    Cancel,
    SlidingWarning,
    SlidingCancel,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::FirstWarning => "first-warning",
            Stage::SecondWarning => "second-warning",
            Stage::Cancel => "cancel",
            Stage::SlidingWarning => "sliding-warning",
            Stage::SlidingCancel => "sliding-cancel",
        }
    }
}

impl Rule for CancelZeroGpuJobs {
    fn id(&self) -> RuleId {
        RuleId("cancel-zero-gpu-jobs")
    }

    fn doc(&self) -> &'static str {
        "Running jobs with GPUs that have done nothing: since the job began, or for some hours. A \
         single sample above 0 counts as work, and a job of which a part was not measured is not \
         judged.\n\
         Such a job keeps GPUs from others now, and can still be stopped.\n\
         Look whether the program uses the GPU at all, and release it between two uses."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Queue, Need::TimeLimits, Need::Gpus]
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

impl CancelZeroGpuJobs {
    /// Nobody looks further back for when a GPU last worked.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

    fn judge(&self, portfolio: &Portfolio<'_>, job: &Job) -> Result<Verdict, Missing> {
        if self.spares(portfolio, job) {
            return Ok(Verdict::NotApplicable(Why::Exempt));
        }
        let elapsed = job.elapsed.map(u64::from).map(Duration::from_secs).ok_or(Missing::Held)?;
        let Some((stage, idle)) = self.stage(job, elapsed)? else { return Ok(Verdict::Fine) };
        let left = portfolio.facts().time_limit_of(job).and_then(crate::limit::Limit::at);
        let left = left.map(|limit| Value::Time(limit.saturating_sub(elapsed)));
        let figures = Figures::default()
            .with("stage", Value::Word(stage.name()))
            .with("gpus", job.gpu_count())
            .with("gpus_idle", idle)
            .with("hours", job.hours())
            .with_known("time_left", left);
        let wasted = f64::from(idle) / f64::from(job.gpu_count());
        let hits = vec![Hit::new(job, Some(wasted), figures.clone())];
        Ok(Verdict::Finding(Finding::new(Audience::User, figures, hits)))
    }

    fn spares(&self, portfolio: &Portfolio<'_>, job: &Job) -> bool {
        let (Some(time), Some(gpus)) = (self.interactive_time, self.interactive_gpus) else {
            return false;
        };
        let facts = portfolio.facts();
        let limit = facts.time_limit_of(job).and_then(crate::limit::Limit::at);
        is_interactive(facts.names.text(job.name))
            && job.gpu_count() <= gpus
            && limit.is_some_and(|limit| limit <= time)
    }

    /// What is due, and how many GPUs are idle.
    fn stage(&self, job: &Job, elapsed: Duration) -> Result<Option<(Stage, u32)>, Missing> {
        let reached = |stages: &[(Option<Duration>, Stage)], time: Duration| {
            let due = stages.iter().filter(|(from, _)| from.is_some_and(|from| time >= from));
            due.max_by_key(|(from, _)| *from).map(|(_, stage)| *stage)
        };
        let fixed = [
            (self.first_warning, Stage::FirstWarning),
            (self.second_warning, Stage::SecondWarning),
            (self.cancel, Stage::Cancel),
        ];
        let mut missing = None;
        if let Some(stage) = reached(&fixed, elapsed) {
            let idle = self.idle(job, self.coverage, |gpu| {
                Ok(gpu.utilisation.ok_or(Missing::Unmeasured)?.idle() == Idle::Yes)
            });
            match idle {
                Ok(Some(idle)) => return Ok(Some((stage, idle))),
                Ok(None) => {}
                // The last hours may be known where the whole job is not.
                Err(why) => missing = Some(why),
            }
        }
        let sliding = [
            (self.sliding_cancel, Stage::SlidingCancel),
            (self.sliding_warning, Stage::SlidingWarning),
        ];
        for (from, stage) in sliding {
            let Some(from) = from.filter(|from| elapsed >= *from) else { continue };
            // How long a GPU has been idle is stated only where all of that time was seen.
            let idle = self
                .idle(job, Share::NONE, |gpu| Ok(gpu.idle_for.is_some_and(|idle| idle >= from)))?;
            if let Some(idle) = idle {
                return Ok(Some((stage, idle)));
            }
        }
        missing.map_or(Ok(None), Err)
    }

    /// How many GPUs are idle, if those in use are too few.
    fn idle(
        &self,
        job: &Job,
        coverage: Share,
        is_idle: impl Fn(&GpuUsage) -> Result<bool, Missing>,
    ) -> Result<Option<u32>, Missing> {
        let mut idle = 0u32;
        for gpu in measure::gpus(job, coverage)? {
            idle += u32::from(is_idle(gpu)?);
        }
        let held = job.gpu_count();
        let idle = idle.min(held);
        let in_use = f64::from(held - idle) / f64::from(held);
        Ok((idle > 0 && in_use < self.gpu_share.get()).then_some(idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{Draft, NOW, World, job, share};

    fn rule() -> CancelZeroGpuJobs {
        CancelZeroGpuJobs::default()
    }

    fn draft(minutes: u32, used: &[f64]) -> Draft {
        let gpus = u32::try_from(used.len()).unwrap();
        let draft = job("a").held("n1", 8, gpus).gpu_used(used).running();
        draft.with(|job| (job.seconds, job.end) = (60 * minutes, NOW))
    }

    fn stage(rule: &CancelZeroGpuJobs, draft: Draft) -> Option<&'static str> {
        let world = World::new([draft]);
        match world.on(rule, "a").finding()?.figures.get("stage")? {
            Value::Word(stage) => Some(stage),
            other => panic!("{other:?}"),
        }
    }

    /// Job Defense Shield does nothing from 75 to 104 and from 135 minutes on: a run of it that
    /// is missed is a stage that is missed. Here a stage stays due until the next.
    #[test]
    fn x1_the_stages_of_a_job_that_is_idle_from_its_start() {
        for (minutes, expected) in [
            (59, None),
            (60, Some("first-warning")),
            (104, Some("first-warning")),
            (105, Some("second-warning")),
            (119, Some("second-warning")),
            (120, Some("cancel")),
            (135, Some("cancel")),
        ] {
            assert_eq!(stage(&rule(), draft(minutes, &[0.0; 4])), expected, "{minutes}");
        }
        // A second warning alone makes Job Defense Shield crash.
        let second = CancelZeroGpuJobs { first_warning: None, ..rule() };
        assert_eq!(stage(&second, draft(105, &[0.0])), Some("second-warning"));
    }

    #[test]
    fn x3_interactive_jobs_may_be_spared() {
        let rule = CancelZeroGpuJobs {
            interactive_time: Some(Duration::from_secs(8 * 3600)),
            interactive_gpus: Some(1),
            ..rule()
        };
        for (name, limit, gpus, spared) in [
            ("interactive", 480, 1, true),
            ("interactive", 481, 1, false),
            ("interactive", 480, 2, false),
            ("sys/dashboard/sys/jupyter", 480, 1, true),
            ("train", 480, 1, false),
        ] {
            let used = vec![0.0; gpus];
            let draft = draft(120, &used).limit_minutes(limit).with(|job| job.name = name);
            assert_eq!(stage(&rule, draft).is_none(), spared, "{name} {limit} {gpus}");
        }
    }

    #[test]
    fn x5_a_job_that_worked_before_is_judged_by_how_long_it_has_been_idle() {
        let idle = |minutes: u64| {
            draft(600, &[40.0]).with(|job| {
                job.gpu.as_mut().unwrap()[0].idle_for = Some(Duration::from_secs(60 * minutes));
            })
        };
        for (minutes, expected) in [
            (239, None),
            (240, Some("sliding-warning")),
            (299, Some("sliding-warning")),
            (300, Some("sliding-cancel")),
        ] {
            assert_eq!(stage(&rule(), idle(minutes)), expected, "{minutes}");
        }
        assert_eq!(stage(&rule(), draft(600, &[40.0])), None);
    }

    #[test]
    fn the_share_in_use_just_below_equal_and_just_above() {
        let half = CancelZeroGpuJobs { gpu_share: share(0.5), ..rule() };
        let found = |used: &[f64]| stage(&half, draft(120, used)).is_some();
        assert!(found(&[0.0, 0.0, 0.0, 9.0]), "a quarter is in use");
        assert!(!found(&[0.0, 0.0, 9.0, 9.0]), "half is");
        assert!(!found(&[0.0, 9.0, 9.0, 9.0]));
        assert!(stage(&rule(), draft(120, &[0.0, 9.0])).is_some(), "one idle GPU is enough");
    }

    /// Mean 0.046 % over two hours: Job Defense Shield cancels it.
    #[test]
    fn x17_one_sample_of_work_saves_a_job() {
        assert_eq!(stage(&rule(), draft(120, &[0.046])), None);
        let rounded = crate::rule::usage::Utilisation::rounded(Share::NONE);
        let rounded =
            draft(120, &[0.0]).with(|job| job.gpu = Some(vec![crate::rule::sample::gpu(rounded)]));
        assert_eq!(stage(&rule(), rounded), None);
    }

    /// Job Defense Shield ends there, with all that it still had to do for others.
    #[test]
    fn x20_a_running_job_without_figures_is_no_data_and_stops_nothing() {
        let dark = draft(120, &[0.0]).with(|job| job.gpu = None);
        let partly = draft(120, &[0.0]).with(|job| job.coverage = 0.94);
        let other = draft(120, &[0.0]).with(|job| job.user = "b");
        let world = World::new([dark, partly, other]);
        let verdicts: Vec<Verdict> = world.check(&rule()).into_iter().map(|(_, v)| v).collect();
        assert_eq!(verdicts[0], Verdict::NoData(Missing::Unmeasured));
        let missing = Missing::Coverage { found: share(0.94), needed: share(0.95) };
        assert_eq!(verdicts[1], Verdict::NoData(missing));
        assert!(verdicts[2].finding().is_some());
    }

    #[test]
    fn only_running_jobs_with_gpus_are_looked_at() {
        let ended = draft(120, &[0.0]).state(JobState::Completed);
        assert!(World::new([ended, job("b").running()]).check(&rule()).is_empty());
    }
}
