//! `serial-allocating-multiple`.

use super::facts::Job;
use super::finding::{Audience, Figures, Hit, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::search::{Found, by_user, cpu_hours, keep_top};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// Programs that use one core of several.
    SerialAllocatingMultiple {
        /// CPU-hours of the other cores above which the user is told.
        cpu_hours: f64 = 100.0;
        /// Cores' worth of CPU time above which a job counts as a serial program that works.
        lower_ratio: f64 = 0.85;
        /// Cores' worth of CPU time up to which a job counts as serial.
        upper_ratio: f64 = 1.0;
        /// How many users are looked at, those with the most hours of other cores.
        top_users: u32 = 5;
        /// Whether tasks of arrays are left out.
        ignore_arrays: bool = false;
        /// Whether jobs with GPUs count.
        gpu_jobs: bool = false;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
        /// Share of a user's CPU-hours that must have been measured to say that all is well.
        hours_coverage: Share = Share::per_cent(50);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(SerialAllocatingMultiple::default())
}

impl Rule for SerialAllocatingMultiple {
    fn id(&self) -> RuleId {
        RuleId("serial-allocating-multiple")
    }

    fn doc(&self) -> &'static str {
        "Jobs on one node that hold several cores and keep one of them busy: most likely a program \
         that cannot use more.\n\
         The other cores are lost to everybody, and the job does not run faster for them.\n\
         Ask for one core; if memory is what is needed, ask for memory."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::CpuTime]
    }

    fn scope(&self) -> Scope {
        Scope::ended(61)
    }

    fn compares_users(&self) -> bool {
        true
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        let weigh = |job: &Job| {
            let several = job.node_count == Some(1) && job.cpus.is_some_and(|cpus| cpus > 1);
            let counts = several && !(self.ignore_arrays && job.array.is_some());
            cpu_hours(job, self.gpu_jobs).filter(|_| counts)
        };
        let verdicts = by_user(
            portfolio,
            self.hours_coverage,
            weigh,
            |job| self.look(job),
            |_, haul| {
                let figures = Figures::default().with("cpu_hours_wasted", haul.amount);
                (haul.amount > self.cpu_hours).then_some((Audience::User, figures))
            },
        );
        keep_top(verdicts, "cpu_hours_wasted", self.top_users)
    }
}

impl SerialAllocatingMultiple {
    fn look(&self, job: &Job) -> Result<Option<Found>, Missing> {
        let used = measure::cpu(job, self.coverage)?;
        let cores = job.cpus.map(f64::from).ok_or(Missing::Held)?;
        // One core's worth of the time is exactly 1, so no rounding comes between.
        let busy = used.used / job.hours();
        if busy <= self.lower_ratio || busy > self.upper_ratio {
            return Ok(None);
        }
        let amount = job.hours() * (cores - 1.0);
        let figures = Figures::default()
            .with_known("cores", job.cpus)
            .with("cores_busy", busy)
            .with_known("efficiency", used.share().map(Value::Share))
            .with("efficiency_of_one_core", Value::Share(1.0 / cores))
            .with("hours", job.hours())
            .with("cpu_hours_wasted", amount);
        Ok(Some(Found { amount, hit: Hit::new(job, Some(1.0 - 1.0 / cores), figures) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Why;
    use crate::rule::sample::{Draft, World, job, near};

    fn rule() -> SerialAllocatingMultiple {
        SerialAllocatingMultiple::default()
    }

    fn draft(user: &'static str, cores: u32, busy: f64) -> Draft {
        let draft = job(user).held("n1", cores, 0);
        draft.with(|job| (job.seconds, job.cpu_seconds) = (100_000, Some(busy * 100_000.0)))
    }

    /// Shown by Job Defense Shield as 3.1 % and 6.2 %; the figures are 3.125 % and 6.25 %.
    #[test]
    fn v37_one_core_of_many() {
        let world = World::new([
            draft("user1", 32, 1.0),
            draft("user1", 16, 1.0),
            draft("user1", 8, 4.0),
            draft("user1", 32, 1.0),
            draft("user2", 16, 1.0),
        ]);
        let finding = world.finding(&rule(), "user1");
        let shares: Vec<_> =
            finding.hits.iter().map(|h| h.figures.number("efficiency_of_one_core")).collect();
        assert_eq!(shares, [Some(0.03125), Some(0.0625), Some(0.03125)], "eight at half do not");
        near(&finding, "cpu_hours_wasted", 100_000.0 / 3600.0 * (31.0 + 15.0 + 31.0));
        assert_eq!(world.finding(&rule(), "user2").hits.len(), 1);
        assert_eq!(world.found(&rule()), ["user1", "user2"]);
    }

    /// Job Defense Shield cuts the list in the order of the alphabet, and zoe is dropped.
    #[test]
    fn the_top_are_those_who_waste_most() {
        let hours = |user, hours: f64| {
            let draft = job(user).hours(hours).held("n1", 2, 0);
            draft.with(|job| job.cpu_seconds = Some(hours * 3600.0))
        };
        let world =
            World::new([hours("anna", 140.0), hours("bert", 210.0), hours("zoe", 35_000.0)]);
        let two = SerialAllocatingMultiple { top_users: 2, ..rule() };
        let mut found = world.found(&two);
        found.sort_unstable();
        assert_eq!(found, ["bert", "zoe"]);
        assert_eq!(world.on(&two, "anna"), Verdict::NotApplicable(Why::NotAmongTop));
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let busy = |busy| World::new([draft("a", 32, busy)]).found(&rule()).len();
        assert_eq!([0.84, 0.85, 0.86, 1.0, 1.01].map(busy), [0, 0, 1, 1, 0]);
        let hours = |hours: f64| {
            let draft = job("a").hours(hours).held("n1", 2, 0);
            World::new([draft.with(|job| job.cpu_seconds = Some(hours * 3600.0))])
                .found(&rule())
                .len()
        };
        assert_eq!([99.9, 100.0, 100.1].map(hours), [0, 0, 1]);
    }

    #[test]
    fn jobs_that_do_not_count() {
        for (case, draft) in [
            ("one core", draft("a", 1, 1.0)),
            ("two nodes", draft("a", 32, 1.0).with(|job| job.nodes = "n[1-2]")),
            ("gpu", draft("a", 32, 1.0).with(|job| job.gpus = 1)),
        ] {
            let verdict = World::new([draft]).on(&rule(), "a");
            assert_eq!(verdict, Verdict::NotApplicable(Why::NoSuchJobs), "{case}");
        }
        let array = draft("a", 32, 1.0).with(|job| job.array = Some((7, Some(1))));
        let world = World::new([array]);
        assert_eq!(world.found(&rule()), ["a"]);
        let ignore = SerialAllocatingMultiple { ignore_arrays: true, ..rule() };
        assert_eq!(world.found(&ignore), [""; 0]);
    }
}
