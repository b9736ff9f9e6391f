//! `too-much-cpu-mem-per-gpu`.

use crate::slurm::state::JobState;

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, gpu_hours};
use super::{Need, Rule, RuleId, Subject, Verdict};

/// No job is advised to ask for less than this per GPU: libraries alone need some of it.
const LEAST_GIB: f64 = 8.0;
/// Room above what was used.
const MARGIN: f64 = 1.2;

options! {
    /// GPU jobs that hold more CPU memory than their share of a node, and do not use it.
    TooMuchCpuMemPerGpu {
        /// GiB of CPU memory per GPU above which a job counts.
        gib_per_gpu: f64 = 250.0;
        /// GiB of CPU memory per GPU to aim at; for texts.
        gib_per_gpu_target: f64 = 240.0;
        /// Share of the memory that was used, below which a job counts.
        efficiency: Share = Share::per_cent(80);
        /// GPU-hours of such jobs above which the user is told.
        gpu_hours: f64 = 0.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(TooMuchCpuMemPerGpu::default())
}

impl Rule for TooMuchCpuMemPerGpu {
    fn id(&self) -> RuleId {
        RuleId("too-much-cpu-mem-per-gpu")
    }

    fn doc(&self) -> &'static str {
        "GPU jobs that hold more CPU memory per GPU than a node can give to each of its GPUs, and \
         use little of it. Jobs that ran out of memory do not count.\n\
         The other GPUs of the node stay idle, because no memory is left for their jobs.\n\
         Ask for as much memory as was used, and a fifth more; the figures say how much."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Memory]
    }

    fn scope(&self) -> Scope {
        Scope::ended(61)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_user(
            portfolio,
            self.hours_coverage,
            |job| gpu_hours(job).filter(|_| job.state != JobState::OutOfMemory),
            |job| self.look(job),
            |_, haul| {
                let figures = Figures::default().with("gpu_hours", haul.amount);
                (haul.amount > self.gpu_hours).then_some((Audience::User, figures))
            },
        )
    }
}

impl TooMuchCpuMemPerGpu {
    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let gpus = f64::from(job.gpu_count());
        let per_gpu = job.memory.map(|memory| memory.gib() / gpus).ok_or(Missing::Held)?;
        if per_gpu <= self.gib_per_gpu {
            return Ok(None);
        }
        let (used, held) = measure::memory(job, self.coverage)?;
        let share = used.get() as f64 / held.get() as f64;
        if share >= self.efficiency.get() {
            return Ok(None);
        }
        let amount = job.gpu_hours();
        let figures = Figures::default()
            .with("hours", job.hours())
            .with("share_used", Value::Share(share))
            .with("memory", Value::Bytes(held))
            .with("gpus", job.gpu_count())
            .with("gib_per_gpu", per_gpu)
            .with("gib_per_gpu_needed", (MARGIN * used.gib() / gpus).max(LEAST_GIB));
        Ok(Some(Found { amount, hit: Hit::new(job, None, figures) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeName;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, job};

    fn draft(held: f64, gpus: u32, used: f64) -> Draft {
        job("a").hours(10.0).held("n1", 8, gpus).memory(used, held)
    }

    #[test]
    fn v39_memory_per_gpu_above_128_gib() {
        let rule = TooMuchCpuMemPerGpu { gib_per_gpu: 128.0, ..TooMuchCpuMemPerGpu::default() };
        let scope = Scope { nodes: vec![NodeName::new("n1").unwrap()], ..rule.scope() };
        for (draft, expected) in [
            (draft(100.0, 1, 10.0), None),
            (draft(500.0, 1, 17.0), Some((17.0 / 500.0, 500.0))),
            (draft(640.0, 2, 505.0), Some((505.0 / 640.0, 320.0))),
            (draft(256.0, 1, 0.9 * 256.0), None),
            (draft(256.0, 1, 36.0), Some((0.140_625, 256.0))),
            (draft(500.0, 1, 17.0).with(|job| job.nodes = "n2"), None),
        ] {
            let verdicts = World::new([draft.clone()]).check_in(&rule, &scope);
            let found = verdicts.iter().find_map(|(_, verdict)| verdict.finding()).map(|finding| {
                let number = |key| finding.hits[0].figures.number(key).unwrap();
                (number("share_used"), number("gib_per_gpu"))
            });
            assert_eq!(found, expected, "{draft:?}");
        }
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let rule = TooMuchCpuMemPerGpu::default();
        let held = |held| World::new([draft(held, 1, 1.0)]).found(&rule).len();
        assert_eq!([249.9, 250.0, 250.1].map(held), [0, 0, 1]);
        let used = |used| World::new([draft(500.0, 1, used)]).found(&rule).len();
        assert_eq!([399.0, 400.0, 401.0].map(used), [1, 0, 0]);
        let hours = |bound| {
            let rule = TooMuchCpuMemPerGpu { gpu_hours: bound, ..rule.clone() };
            World::new([draft(500.0, 1, 1.0)]).found(&rule).len()
        };
        assert_eq!([9.9, 10.0, 10.1].map(hours), [1, 0, 0]);
    }

    #[test]
    fn what_to_ask_for_and_who_is_spared() {
        let needed = |gpus, used| {
            let finding = World::new([draft(900.0, gpus, used)])
                .finding(&TooMuchCpuMemPerGpu::default(), "a");
            finding.hits[0].figures.number("gib_per_gpu_needed")
        };
        assert_eq!((needed(1, 100.0), needed(2, 2.0)), (Some(120.0), Some(8.0)));
        let oom = World::new([draft(900.0, 1, 1.0).state(JobState::OutOfMemory)]);
        let verdict = oom.on(&TooMuchCpuMemPerGpu::default(), "a");
        assert_eq!(verdict, Verdict::NotApplicable(Why::NoSuchJobs));
    }

    #[test]
    fn v18_more_memory_than_was_held_is_no_figure() {
        let world = World::new([draft(300.0, 1, 600.0)]);
        let verdict = world.on(&TooMuchCpuMemPerGpu::default(), "a");
        assert_eq!(verdict, Verdict::NoData(Missing::MoreThanHeld));
    }
}
