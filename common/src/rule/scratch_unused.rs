//! `scratch-unused`.

use crate::unit::Bytes;

use super::advice::{Advice, by_job, traffic};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job with much I/O that does without scratch.
    ScratchUnused {
        /// GiB read and written in all above which a job counts.
        gib: f64 = 10.0;
        /// Open files above which a job counts.
        files: u32 = 1000;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ScratchUnused::default())
}

impl Rule for ScratchUnused {
    fn id(&self) -> RuleId {
        RuleId("scratch-unused")
    }

    fn doc(&self) -> &'static str {
        "Jobs that read and write much, or have many files open, and never opened a file in a scratch \
         directory.\n\
         Scratch is made for such work; home and project directories are slow at it, and slow for \
         everybody meanwhile.\n\
         Copy what is needed to scratch, work there, and copy the results back."
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Accounting, Need::Processes]
    }

    fn scope(&self) -> Scope {
        Scope::started(5)
    }

    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)> {
        by_job(portfolio, true, |job| self.look(job))
    }
}

impl ScratchUnused {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let work = measure::work(job, self.coverage)?;
        let bytes = traffic(work.requested_bytes, work.moved_bytes).map(Bytes::new);
        let heavy = [
            bytes.map(|bytes| bytes.gib() > self.gib),
            work.open_files.map(|files| files > u64::from(self.files)),
        ];
        if !heavy.contains(&Some(true)) {
            return if heavy.contains(&None) { Err(Missing::Unmeasured) } else { Ok(None) };
        }
        if work.scratch.ok_or(Missing::Unmeasured)? {
            return Ok(None);
        }
        let figures = Figures::default()
            .with_known("read_and_written", bytes.map(Value::Bytes))
            .with_known("open_files", work.open_files.map(Value::Count));
        Ok(Some(Advice::new(figures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, gib, job};
    use crate::rule::usage::Work;

    fn verdict(bytes: Option<u64>, files: Option<u64>, scratch: Option<bool>) -> Verdict {
        let work = Work { requested_bytes: bytes, open_files: files, scratch, ..Work::default() };
        World::new([job("a").worked(work)]).on(&ScratchUnused::default(), "a")
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let limit = gib(10.0).get();
        let io = |bytes| verdict(Some(bytes), Some(0), Some(false)).finding().is_some();
        assert_eq!([limit - 1, limit, limit + 1].map(io), [false, false, true]);
        let files = |files| verdict(Some(0), Some(files), Some(false)).finding().is_some();
        assert_eq!([999, 1000, 1001].map(files), [false, false, true]);
    }

    /// petricore warns every job.
    #[test]
    fn who_uses_scratch_or_does_little_is_fine() {
        assert_eq!(verdict(Some(u64::MAX), Some(5000), Some(true)), Verdict::Fine);
        assert_eq!(verdict(Some(0), Some(10), Some(false)), Verdict::Fine);
        assert!(verdict(None, Some(5000), Some(false)).finding().is_some(), "one is enough");
    }

    #[test]
    fn what_is_unknown_is_neither_little_nor_unused() {
        let unknown = Verdict::NoData(Missing::Unmeasured);
        assert_eq!(verdict(None, Some(10), Some(false)), unknown);
        assert_eq!(verdict(Some(u64::MAX), Some(10), None), unknown);
    }
}
