//! `low-gpu-efficiency`.

use super::efficiency::{Bounds, Resource, low};
use super::facts::Job;
use super::measure;
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Users who hold many GPU-hours and use few of them.
    LowGpuEfficiency {
        /// Mean utilisation up to which the user is told.
        efficiency: Share = Share::per_cent(25);
        /// What a user should aim at.
        target: Share = Share::per_cent(50);
        /// GPU-hours that are missing to the target, from which on the user is told.
        gpu_hours_below_target: f64 = 0.0;
        /// GPU-hours from which on the user is told.
        gpu_hours: f64 = 50.0;
        /// Share of all GPU-hours of the scope from which on the user is told.
        proportion: Share = Share::per_cent(2);
        /// How many users are looked at, those with the most GPU-hours.
        top_users: u32 = 10;
        /// Jobs that used more of their GPUs' memory than this share, on average, do not count.
        gpu_memory: Option<Share> = None;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's GPU-hours that must have been measured.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(LowGpuEfficiency::default())
}

impl Rule for LowGpuEfficiency {
    fn id(&self) -> RuleId {
        RuleId("low-gpu-efficiency")
    }

    fn doc(&self) -> &'static str {
        "Mean utilisation of GPUs over all jobs of a user, for those who hold the most. A job \
         weighs as much as it held.\n\
         GPUs are the scarcest thing on most clusters.\n\
         Feed the GPU faster: more workers that load data, larger batches, data on a fast disk; \
         or share one GPU, or take a smaller one."
    }

    fn needs(&self) -> &'static [Need] {
        if self.gpu_memory.is_some() {
            &[Need::Accounting, Need::Gpus, Need::GpuMemory]
        } else {
            &[Need::Accounting, Need::Gpus]
        }
    }

    fn scope(&self) -> Scope {
        Scope::ended(30)
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let bounds = Bounds {
            efficiency: self.efficiency,
            target: self.target,
            hours_below_target: self.gpu_hours_below_target,
            hours: self.gpu_hours,
            proportion: self.proportion,
            top_users: self.top_users,
            coverage: self.coverage,
            hours_coverage: self.hours_coverage,
        };
        low(portfolio, Resource::Gpu, |job| !self.needs_memory(job), &bounds)
    }
}

impl LowGpuEfficiency {
    /// Whether the job needs the GPU for its memory.
    fn needs_memory(&self, job: &Job) -> bool {
        let share = |job| {
            let gpus = measure::gpus(job, self.coverage).ok()?;
            let shares = gpus.iter().map(|gpu| {
                let (used, has) = gpu.peak_memory.zip(gpu.memory)?;
                (has.get() > 0).then(|| used.get() as f64 / has.get() as f64)
            });
            Some(shares.sum::<Option<f64>>()? / gpus.len() as f64)
        };
        self.gpu_memory.zip(share(job)).is_some_and(|(most, used)| used > most.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, gib, job, near, share};
    use crate::rule::usage::Utilisation;
    use crate::rule::{Missing, Why};

    fn rule() -> LowGpuEfficiency {
        LowGpuEfficiency::default()
    }

    #[test]
    fn v16_a_utilisation_above_all_is_no_utilisation() {
        assert_eq!(Share::new(1.01), None);
        let draft = job("a").hours(100.0).held("n1", 8, 1).gpu_used(&[10.0]);
        let unknown = draft.with(|job| job.gpu.as_mut().unwrap()[0].utilisation = None);
        assert_eq!(World::new([unknown]).on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
        let dark = job("a").hours(100.0).held("n1", 8, 1);
        assert_eq!(World::new([dark]).on(&rule(), "a"), Verdict::NoData(Missing::Unmeasured));
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let at = |used: f64| {
            let draft = job("a").hours(50.0).held("n1", 8, 2).gpu_used(&[used, used]);
            World::new([draft]).found(&rule()).len()
        };
        assert_eq!([24.9, 25.0, 25.1, 25.49].map(at), [1, 1, 0, 0]);
        let hours = |hours: f64| {
            World::new([job("a").hours(hours).held("n1", 8, 1).gpu_used(&[1.0])])
                .found(&rule())
                .len()
        };
        assert_eq!([49.9, 50.0, 50.1].map(hours), [0, 1, 1]);
    }

    #[test]
    fn the_mean_is_over_all_gpus_and_one_that_is_not_seen_leaves_no_mean() {
        let draft = job("a").hours(50.0).held("n[1-2]", 8, 4);
        let finding =
            World::new([draft.clone().gpu_used(&[0.0, 0.0, 0.0, 10.0])]).finding(&rule(), "a");
        near(&finding, "gpu_efficiency", 0.025);
        let missing = Missing::Coverage { found: share(0.75), needed: share(1.0) };
        let world = World::new([draft.gpu_used(&[0.0, 0.0, 0.0])]);
        assert_eq!(world.on(&rule(), "a"), Verdict::NoData(missing));
    }

    #[test]
    fn v20_a_gpu_that_is_needed_for_its_memory_is_spared_and_81_of_80_gib_is_no_figure() {
        let draft = |used: f64| {
            job("a").hours(100.0).held("n1", 8, 1).gpu_used(&[5.0]).with(|job| {
                let gpu = &mut job.gpu.as_mut().unwrap()[0];
                (gpu.peak_memory, gpu.memory) = (Some(gib(used)), Some(gib(80.0)));
            })
        };
        let spare = LowGpuEfficiency { gpu_memory: Some(share(0.5)), ..rule() };
        let found = |used| World::new([draft(used)]).found(&spare).len();
        assert_eq!([39.9, 40.0, 40.1].map(found), [1, 1, 0]);
        assert_eq!(
            World::new([draft(81.0)]).on(&rule(), "a"),
            Verdict::NoData(Missing::MoreThanHeld)
        );
    }

    #[test]
    fn a_summary_that_was_rounded_will_do_for_a_mean() {
        let rounded = crate::rule::sample::gpu(Utilisation::rounded(share(0.123)));
        let draft =
            job("a").hours(100.0).held("n1", 8, 1).with(|job| job.gpu = Some(vec![rounded]));
        near(&World::new([draft, job("b")]).finding(&rule(), "a"), "gpu_efficiency", 0.123);
    }

    #[test]
    fn the_rank_is_by_hours_held() {
        let world = World::new((0..12).map(|n| {
            let user = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"][n];
            job(user).hours(100.0 + n as f64).held("n1", 8, 1).gpu_used(&[5.0])
        }));
        assert_eq!(world.found(&rule()).len(), 10);
        assert_eq!(world.on(&rule(), "b"), Verdict::NotApplicable(Why::NotAmongTop));
        near(&world.finding(&rule(), "l"), "gpu_rank", 1.0);
    }

    /// Four GPUs for ten hours, busy for 30 % of them. SARC weighs each with 4.8 units.
    fn sarc() -> World {
        World::new([job("a").hours(10.0).held("n1", 8, 4).gpu_used(&[30.0; 4])])
    }

    #[test]
    fn n2_what_is_missing_to_a_target_of_eighty_per_cent() {
        let target = share(0.8);
        let rule = LowGpuEfficiency { efficiency: target, target, gpu_hours: 0.0, ..rule() };
        let finding = sarc().finding(&rule, "a");
        near(&finding, "gpu_hours_below_target", 4.0 * 10.0 * (0.8 - 0.3));
        // In SARC's units: 96 of 192 are wasted, and the user is credited with the other 96.
        let units = |key| finding.figures.number(key).unwrap() * 4.8;
        let (held, missing) = (units("gpu_hours"), units("gpu_hours_below_target"));
        assert!((missing - 96.0).abs() < 1e-9 && (held - missing - 96.0).abs() < 1e-9);
    }

    #[test]
    fn n3_nothing_is_missing_to_a_target_that_was_reached() {
        let target = share(0.25);
        let rule = LowGpuEfficiency { target, gpu_hours: 0.0, ..rule() };
        assert_eq!(sarc().on(&rule, "a"), Verdict::Fine, "30 % are more than 25 %");
        // Where more is called low than the target, what is missing is 0, and never less.
        let rule = LowGpuEfficiency { efficiency: share(0.5), ..rule };
        near(&sarc().finding(&rule, "a"), "gpu_hours_below_target", 0.0);
        let rule = LowGpuEfficiency { gpu_hours_below_target: 0.1, ..rule };
        assert_eq!(sarc().on(&rule, "a"), Verdict::Fine);
    }

    /// SARC's floor is four GPUs of 4.8 units for a week: 4 · 4.8 · 168 = 3225.6.
    #[test]
    fn n5_half_and_more_is_wasted_and_the_floor_spares_who_wastes_few_hours() {
        let told = |held: f64, wasted: f64, floor| {
            let used = [100.0 * (held - wasted) / held; 4];
            let half = LowGpuEfficiency {
                efficiency: share(0.5),
                target: share(1.0),
                gpu_hours_below_target: floor,
                ..rule()
            };
            let draft = job("a").hours(held / 4.0).held("n1", 8, 4).gpu_used(&used);
            let verdict = World::new([draft]).on(&half, "a");
            verdict.finding().map(|finding| near(finding, "gpu_hours_below_target", wasted))
        };
        let floor = 4.0 * 4.8 * 168.0;
        assert_eq!(told(7000.0, 3600.0, floor), Some(true), "0.514 of what was held");
        assert_eq!(told(6000.0, 3200.0, floor), None, "0.533, and fewer hours than the floor");
        assert_eq!(told(6000.0, 3200.0, 3199.9), Some(true), "it was the floor that spared");
        assert_eq!(told(7400.0, 3600.0, floor), None, "0.486: less than half");
    }
}
