//! `gpu-model-too-powerful`.

use crate::slurm::state::JobState;

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, gpu_hours};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Jobs for which a smaller GPU, or a slice of one, would do.
    GpuModelTooPowerful {
        /// Mean utilisation up to which a job counts; GPUs that are idle are another rule's.
        utilisation: Share = Share::per_cent(15);
        /// What a user should aim at; for texts.
        target: Share = Share::per_cent(50);
        /// GiB of GPU memory used at most by one GPU, up to which a job counts.
        gpu_gib: Option<f64> = Some(10.0);
        /// GiB of CPU memory used per GPU up to which a job counts.
        cpu_gib_per_gpu: Option<f64> = Some(32.0);
        /// GPUs up to which a job counts.
        gpus: Option<u32> = None;
        /// Cores per GPU up to which a job counts.
        cores_per_gpu: Option<f64> = None;
        /// GPU-hours of such jobs above which the user is told.
        gpu_hours: f64 = 24.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(GpuModelTooPowerful::default())
}

impl Rule for GpuModelTooPowerful {
    fn id(&self) -> RuleId {
        RuleId("gpu-model-too-powerful")
    }

    fn doc(&self) -> &'static str {
        "Jobs that use little of their GPUs, in time and in memory. Name the partitions or nodes of \
         the large GPUs in its scope. Jobs that ran out of memory do not count.\n\
         Others wait for the large GPUs, while smaller ones, or slices, would do for these jobs.\n\
         Ask for a smaller GPU or a slice; or give the GPU more to do."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Memory, Need::Gpus, Need::GpuMemory]
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

impl GpuModelTooPowerful {
    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let gpus = f64::from(job.gpu_count());
        let cores = job.cpus.map(f64::from).ok_or(Missing::Held)?;
        let many = self.gpus.is_some_and(|most| job.gpu_count() > most)
            || self.cores_per_gpu.is_some_and(|most| cores / gpus > most);
        if many {
            return Ok(None);
        }
        let mean = measure::gpu_mean(job, self.coverage)?;
        if mean <= 0.0 || mean > self.utilisation.get() {
            return Ok(None);
        }
        let mut figures = Figures::default()
            .with("cores", cores)
            .with("gpus", job.gpu_count())
            .with("gpu_utilisation", Value::Share(mean))
            .with("hours", job.hours());
        if let Some(most) = self.gpu_gib {
            let used = most_gpu_memory(job, self.coverage)?;
            if used > most {
                return Ok(None);
            }
            figures = figures.with("gpu_gib_used", used);
        }
        if let Some(most) = self.cpu_gib_per_gpu {
            let used = measure::memory(job, self.coverage)?.0.gib() / gpus;
            if used > most {
                return Ok(None);
            }
            figures = figures.with("cpu_gib_per_gpu_used", used);
        }
        let hit = Hit::new(job, Some(1.0 - mean), figures);
        Ok(Some(Found { amount: job.gpu_hours(), hit }))
    }
}

/// The most GPU memory that was used on one GPU, in GiB.
fn most_gpu_memory(job: &Job, coverage: Share) -> Result<f64, Missing> {
    let mut most = None;
    for gpu in measure::gpus(job, coverage)? {
        most = most.max(Some(gpu.peak_memory.ok_or(Missing::Unmeasured)?));
    }
    most.map(crate::unit::Bytes::gib).ok_or(Missing::Unmeasured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{Draft, World, gib, job, near};

    fn rule() -> GpuModelTooPowerful {
        GpuModelTooPowerful::default()
    }

    /// Utilisation in per cent, GiB of GPU memory, GiB of CPU memory.
    fn draft(used: f64, gpu: f64, cpu: f64) -> Draft {
        job("a").hours(48.0).held("n1", 4, 1).gpu_used(&[used]).memory(cpu, 64.0).with(|job| {
            job.gpu.as_mut().unwrap()[0].peak_memory = Some(gib(gpu));
        })
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let found = |draft: Draft| World::new([draft]).found(&rule()).len();
        let used = |used| found(draft(used, 1.0, 1.0));
        assert_eq!([0.0, 0.01, 14.9, 15.0, 15.1].map(used), [0, 1, 1, 1, 0]);
        assert_eq!([9.9, 10.0, 10.1].map(|gpu| found(draft(5.0, gpu, 1.0))), [1, 1, 0]);
        assert_eq!([31.9, 32.0, 32.1].map(|cpu| found(draft(5.0, 1.0, cpu))), [1, 1, 0]);
        let hours = |hours| found(draft(5.0, 1.0, 1.0).hours(hours));
        assert_eq!([23.9, 24.0, 24.1].map(hours), [0, 0, 1]);
        let gpus = |most| {
            let rule = GpuModelTooPowerful { gpus: Some(most), ..rule() };
            World::new([draft(5.0, 1.0, 1.0)]).found(&rule).len()
        };
        assert_eq!([0, 1, 2].map(gpus), [0, 1, 1]);
        let cores = |most| {
            let rule = GpuModelTooPowerful { cores_per_gpu: Some(most), ..rule() };
            World::new([draft(5.0, 1.0, 1.0)]).found(&rule).len()
        };
        assert_eq!([3.9, 4.0, 4.1].map(cores), [0, 1, 1]);
    }

    #[test]
    fn unknown_memory_is_no_little_memory() {
        let world = World::new([draft(5.0, 1.0, 1.0).with(|job| job.gib_used = None)]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
        let blind = GpuModelTooPowerful { cpu_gib_per_gpu: None, ..rule() };
        near(&world.finding(&blind, "a"), "gpu_hours", 48.0);
    }
}
