//! Hours of one resource: held, used, wasted.

use super::cause::Cause;

/// Sums of amounts of runs that all ended, or all have not. What is added for every row is this
/// small.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) held: f64,
    measured: f64,
    used: f64,
    capped: f64,
}

impl Sums {
    /// What one run held, and used of it if that was measured.
    pub(super) fn of(held: f64, used: Option<f64>) -> Sums {
        used.map_or(Sums { held, ..Sums::default() }, |used| Sums {
            held,
            measured: held,
            used,
            capped: used.min(held),
        })
    }

    /// Those of a share of the time.
    pub(super) fn share(&self, share: f64) -> Sums {
        Sums {
            held: self.held * share,
            measured: self.measured * share,
            used: self.used * share,
            capped: self.capped * share,
        }
    }

    /// Used of held, of those that were measured.
    pub(super) fn ratio(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.used / self.measured)
    }

    pub(super) fn add(&mut self, other: &Sums) {
        self.held += other.held;
        self.measured += other.measured;
        self.used += other.used;
        self.capped += other.capped;
    }

    /// As hours of runs that ended or have not.
    pub(super) fn hours(&self, ended: bool) -> Hours {
        let Sums { held: reserved, measured, used, capped: used_capped } = *self;
        if ended {
            Hours { reserved, measured, used, used_capped, ..Hours::default() }
        } else {
            Hours { reserved, open: reserved, open_used: used, ..Hours::default() }
        }
    }
}

/// What one run held and used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Took {
    pub(super) cpu: Sums,
    pub(super) memory: Sums,
    pub(super) gpu: Option<Sums>,
}

impl Took {
    /// What it took in a share of its time.
    pub(super) fn share(&self, share: f64) -> Took {
        Took {
            cpu: self.cpu.share(share),
            memory: self.memory.share(share),
            gpu: self.gpu.map(|gpu| gpu.share(share)),
        }
    }
}

/// Sums of runs that all ended alike.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Alike {
    pub(super) jobs: u64,
    pub(super) cpu: Sums,
    pub(super) memory: Sums,
    pub(super) gpu: Sums,
}

impl Alike {
    pub(super) fn add(&mut self, run: &Took) {
        self.jobs += 1;
        self.cpu.add(&run.cpu);
        self.memory.add(&run.memory);
        if let Some(gpu) = &run.gpu {
            self.gpu.add(gpu);
        }
    }

    pub(super) fn merge(&mut self, other: &Alike) {
        self.jobs += other.jobs;
        self.cpu.add(&other.cpu);
        self.memory.add(&other.memory);
        self.gpu.add(&other.gpu);
    }

    /// Hours of CPUs, memory and GPUs.
    pub(super) fn hours(&self, ended: bool) -> [Hours; 3] {
        [self.cpu, self.memory, self.gpu].map(|sums| sums.hours(ended))
    }
}

/// Hours of one resource (CPU-hours, GPU-hours, GiB-hours of memory), summed over runs and
/// pro-rated to a window.
///
/// Every hour held is one of three: held by a run that has not ended (`open`), by an ended run
/// whose use was measured (`measured`), or by an ended run of which no one knows the use
/// ([`Hours::unmeasured`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hours {
    /// Held by all runs.
    pub reserved: f64,
    /// Of these, held by runs that have not ended.
    pub open: f64,
    /// What is known of the use of those.
    pub open_used: f64,
    /// Held by ended runs whose use was measured.
    pub measured: f64,
    /// What these used.
    pub used: f64,
    /// The same, with no run using more than it held.
    pub used_capped: f64,
}

impl Hours {
    pub(super) fn merge(&mut self, other: &Hours) {
        self.reserved += other.reserved;
        self.open += other.open;
        self.open_used += other.open_used;
        self.measured += other.measured;
        self.used += other.used;
        self.used_capped += other.used_capped;
    }

    /// Counts a share of other hours.
    pub(super) fn add_share(&mut self, other: &Hours, share: f64) {
        self.reserved += other.reserved * share;
        self.open += other.open * share;
        self.open_used += other.open_used * share;
        self.measured += other.measured * share;
        self.used += other.used * share;
        self.used_capped += other.used_capped * share;
    }

    /// Held by runs that ended.
    #[must_use]
    pub fn ended(&self) -> f64 {
        (self.reserved - self.open).max(0.0)
    }

    /// Held by ended runs whose use nobody measured.
    #[must_use]
    pub fn unmeasured(&self) -> f64 {
        // Sums of the same terms in another order differ by a rounding; that is not an hour.
        let left = self.ended() - self.measured;
        if left > self.ended() * 1e-9 { left } else { 0.0 }
    }

    /// Share of the hours of ended runs of which the use is known; `None` if there are none.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        let ended = self.ended();
        (ended > 0.0).then(|| 1.0 - self.unmeasured() / ended)
    }

    /// Used of held, over the ended runs that have a measurement: each run weighs as much as it
    /// held. May exceed 1.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.used / self.measured)
    }

    /// The same with no run counted above 1.
    #[must_use]
    pub fn efficiency_capped(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| (self.used_capped / self.measured).min(1.0))
    }

    /// All use that is known, that of runs that have not ended included; `None` if none is.
    #[must_use]
    pub fn known_use(&self) -> Option<f64> {
        (self.measured > 0.0 || self.open_used > 0.0).then_some(self.used + self.open_used)
    }

    /// Held and not used, whatever the end: the waste of slurm-usage. `None` if no run of them
    /// has a measurement, although hours were held.
    #[must_use]
    pub fn idle(&self) -> Option<f64> {
        let idle = (self.measured - self.used_capped).max(0.0);
        (self.measured > 0.0 || self.unmeasured() == 0.0).then_some(idle)
    }
}

/// Hours of one resource that were wasted, by [`Cause`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waste {
    /// Asked for and not used, by runs that completed.
    pub not_used: f64,
    /// Lost to runs that failed.
    pub failed: f64,
    /// Lost to runs stopped at their time limit or deadline.
    pub timeout: f64,
    /// Lost to runs that were cancelled.
    pub cancelled: f64,
    /// Lost to runs that ran out of memory.
    pub out_of_memory: f64,
    /// Lost to node failures, preemption, requeues.
    pub system: f64,
    /// Held by completed runs whose use nobody measured: how much of it was waste is not known.
    pub unknown: f64,
    /// Held by completed runs whose use was measured.
    pub measured: f64,
}

impl Waste {
    /// Counts the runs whose ends are put down to `cause`.
    pub(super) fn add(&mut self, cause: Cause, hours: &Hours) {
        let lost = hours.ended();
        match cause {
            Cause::NotUsed => {
                self.not_used += hours.idle().unwrap_or(0.0);
                self.unknown += hours.unmeasured();
                self.measured += hours.measured;
            }
            Cause::Failed => self.failed += lost,
            Cause::Timeout => self.timeout += lost,
            Cause::Cancelled => self.cancelled += lost,
            Cause::OutOfMemory => self.out_of_memory += lost,
            Cause::System => self.system += lost,
        }
    }

    /// The hours of one cause; `None` if no completed run was measured, where it is about those.
    #[must_use]
    pub fn of(&self, cause: Cause) -> Option<f64> {
        match cause {
            Cause::NotUsed => (self.measured > 0.0 || self.unknown == 0.0).then_some(self.not_used),
            Cause::Failed => Some(self.failed),
            Cause::Timeout => Some(self.timeout),
            Cause::Cancelled => Some(self.cancelled),
            Cause::OutOfMemory => Some(self.out_of_memory),
            Cause::System => Some(self.system),
        }
    }

    /// All causes together; `None` if of no hour is it known whether it was wasted. Hours of which
    /// it is not known are in [`Waste::unknown`], not in here.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        let total = Cause::ALL.iter().filter_map(|cause| self.of(*cause)).sum();
        (total > 0.0 || self.of(Cause::NotUsed).is_some()).then_some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_measurement_is_unknown_and_neither_waste_nor_use() {
        let hours = Sums::of(16.0, None).hours(true);
        assert_eq!((hours.efficiency(), hours.idle(), hours.known_use()), (None, None, None));
        assert_eq!((hours.unmeasured(), hours.coverage()), (16.0, Some(0.0)));
        let mut waste = Waste::default();
        waste.add(Cause::NotUsed, &hours);
        assert_eq!((waste.total(), waste.unknown), (None, 16.0));
        // All that a failed run held is lost; no measurement is needed to know it.
        let mut waste = Waste::default();
        waste.add(Cause::Failed, &hours);
        assert_eq!((waste.total(), waste.unknown), (Some(16.0), 0.0));
    }

    #[test]
    fn one_run_above_its_share_hides_no_idleness_of_another() {
        let mut hours = Sums::of(10.0, Some(20.0)).hours(true);
        hours.merge(&Sums::of(10.0, Some(0.0)).hours(true));
        assert_eq!(hours.efficiency(), Some(1.0));
        assert_eq!((hours.efficiency_capped(), hours.idle()), (Some(0.5), Some(10.0)));
    }

    #[test]
    fn a_run_that_goes_on_counts_use_and_no_waste() {
        let mut hours = Sums::of(10.0, Some(1.0)).hours(false);
        hours.merge(&Sums::of(5.0, None).hours(false));
        assert_eq!((hours.reserved, hours.open, hours.known_use()), (15.0, 15.0, Some(1.0)));
        assert_eq!((hours.efficiency(), hours.coverage(), hours.idle()), (None, None, Some(0.0)));
        let mut waste = Waste::default();
        waste.add(Cause::NotUsed, &hours);
        assert_eq!(waste.total(), Some(0.0));
    }

    #[test]
    fn nothing_held_is_nothing_wasted() {
        assert_eq!(Waste::default().total(), Some(0.0));
    }
}
