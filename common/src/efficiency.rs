//! How well a run used what it held. The formulas stand here once; archive, summaries and lists
//! of jobs take them from here.

/// What was used of what was held, as a ratio: 0.5 is half of it.
///
/// It may exceed 1: a job can use more CPU time than its share where nothing confines it, and
/// more memory than it asked for. Who must not be surprised by that takes [`Efficiency::capped`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Efficiency(f64);

impl Efficiency {
    /// `None` if nothing was held, or if a figure makes no sense.
    #[must_use]
    pub fn new(used: f64, held: f64) -> Option<Efficiency> {
        let ratio = used / held;
        (held > 0.0 && ratio.is_finite() && ratio >= 0.0).then_some(Efficiency(ratio))
    }

    /// CPU time used of the CPU time held.
    #[must_use]
    pub fn cpu(cpu_seconds: Option<f64>, cpus: Option<u32>, elapsed: Option<u32>) -> Option<Self> {
        Efficiency::new(cpu_seconds?, f64::from(cpus?) * f64::from(elapsed?))
    }

    /// The most memory used of the memory asked for. `None` for a run that held it for no time,
    /// as nothing can be said about that one.
    #[must_use]
    pub fn memory(
        peak_mb: Option<f64>,
        asked_mb: Option<f64>,
        elapsed: Option<u32>,
    ) -> Option<Self> {
        if elapsed? == 0 {
            return None;
        }
        Efficiency::new(peak_mb?, asked_mb?)
    }

    /// As measured.
    #[must_use]
    pub fn raw(self) -> f64 {
        self.0
    }

    /// At most 1.
    #[must_use]
    pub fn capped(self) -> f64 {
        self.0.min(1.0)
    }
}

/// Hours of a number of things, CPUs or GPUs, held for some seconds.
#[must_use]
pub fn hours(count: f64, seconds: f64) -> f64 {
    count * seconds / 3600.0
}

/// GiB-hours of memory held for some seconds.
#[must_use]
pub fn gib_hours(mib: f64, seconds: f64) -> f64 {
    hours(mib / 1024.0, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<Efficiency>, b: f64) -> bool {
        a.is_some_and(|a| (a.raw() - b).abs() < 1e-12)
    }

    #[test]
    fn a20_half_of_the_cpus_and_no_word_on_memory() {
        let (elapsed, cpus, asked) = (Some(3600), Some(8), Some(16.0 * 1024.0));
        assert!(close(Efficiency::cpu(Some(4.0 * 3600.0), cpus, elapsed), 0.5));
        assert_eq!(Efficiency::memory(None, asked, elapsed), None);
        assert!((hours(8.0, 3600.0) - 8.0).abs() < 1e-12);
        assert!((gib_hours(16.0 * 1024.0, 3600.0) - 16.0).abs() < 1e-12);
        assert!((hours(2.0, 3600.0) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a21_a_quarter_of_the_cpus_and_half_of_the_memory() {
        let (elapsed, cpus, asked) = (Some(3600), Some(8), Some(16.0 * 1024.0));
        assert!(close(Efficiency::cpu(Some(2.0 * 3600.0), cpus, elapsed), 0.25));
        assert!(close(Efficiency::memory(Some(8_388_608.0 / 1024.0), asked, elapsed), 0.5));
    }

    #[test]
    fn a23_a_run_of_no_time_has_no_efficiency() {
        assert_eq!(Efficiency::cpu(Some(4.0 * 3600.0), Some(8), Some(0)), None);
        assert_eq!(Efficiency::memory(Some(1.0), Some(2.0), Some(0)), None);
    }

    #[test]
    fn more_than_all_is_kept_and_can_be_capped() {
        let over = Efficiency::cpu(Some(7200.0), Some(1), Some(3600)).unwrap();
        assert!((over.raw() - 2.0).abs() < 1e-12 && (over.capped() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nonsense_has_no_efficiency() {
        for (used, held) in [(1.0, 0.0), (0.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0), (1.0, f64::NAN)]
        {
            assert_eq!(Efficiency::new(used, held), None, "{used} of {held}");
        }
    }
}
