//! `many-files-little-io`.

use crate::unit::Bytes;

use super::advice::{Advice, by_job, traffic};
use super::facts::Job;
use super::finding::{Figures, Value};
use super::measure::{self, Missing};
use super::option::{Share, options};
use super::portfolio::{Portfolio, Scope};
use super::{Need, Rule, RuleId, Subject, Verdict};

options! {
    /// A job with many open files that moves little with each.
    ManyFilesLittleIo {
        /// Open files from which on a job counts.
        files: u32 = 1000;
        /// MiB read and written per file below which the job is told of.
        mib_per_file: f64 = 5.0;
        /// Share of a job that must have been measured.
        coverage: Share = Share::per_cent(80);
    }
}

/// The rule with its defaults.
pub(super) fn rule() -> Box<dyn Rule> {
    Box::new(ManyFilesLittleIo::default())
}

impl Rule for ManyFilesLittleIo {
    fn id(&self) -> RuleId {
        RuleId("many-files-little-io")
    }

    fn doc(&self) -> &'static str {
        "Jobs with a thousand open files or more that read and write little with each. What is read and \
         written is the larger of what the program asked for and what was moved.\n\
         A file costs a shared file system more than its content does, if the content is small.\n\
         Put small files into an archive or a database, or onto the node's own disk."
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

impl ManyFilesLittleIo {
    fn look(&self, job: &Job) -> Result<Option<Advice>, Missing> {
        let work = measure::work(job, self.coverage)?;
        let files = work.open_files.ok_or(Missing::Unmeasured)?;
        if files < u64::from(self.files) || files == 0 {
            return Ok(None);
        }
        let bytes = traffic(work.requested_bytes, work.moved_bytes).ok_or(Missing::Unmeasured)?;
        let per_file = Bytes::new(bytes).mib() / files as f64;
        if per_file >= self.mib_per_file {
            return Ok(None);
        }
        let figures = Figures::default()
            .with("open_files", Value::Count(files))
            .with("read_and_written", Value::Bytes(Bytes::new(bytes)))
            .with("mib_per_file", per_file);
        Ok(Some(Advice::new(figures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job};
    use crate::rule::usage::Work;

    const MIB: u64 = 1 << 20;

    fn verdict(files: Option<u64>, requested: Option<u64>, moved: Option<u64>) -> Verdict {
        let work = Work {
            open_files: files,
            requested_bytes: requested,
            moved_bytes: moved,
            ..Work::default()
        };
        World::new([job("a").worked(work)]).on(&ManyFilesLittleIo::default(), "a")
    }

    #[test]
    fn bounds_just_below_equal_and_just_above() {
        let files = |files| verdict(Some(files), Some(0), None).finding().is_some();
        assert_eq!([0, 999, 1000, 1001].map(files), [false, false, true, true]);
        let io = |bytes| verdict(Some(1000), Some(bytes), None).finding().is_some();
        let limit = 5000 * MIB;
        assert_eq!([limit - 1, limit, limit + 1].map(io), [true, false, false]);
    }

    #[test]
    fn the_larger_of_both_counts_and_unknown_is_not_zero() {
        assert_eq!(verdict(Some(1000), Some(1), Some(6000 * MIB)), Verdict::Fine);
        assert_eq!(verdict(Some(1000), Some(6000 * MIB), Some(1)), Verdict::Fine);
        assert_eq!(verdict(Some(1000), None, None), Verdict::NoData(Missing::Unmeasured));
        assert_eq!(verdict(None, Some(1), None), Verdict::NoData(Missing::Unmeasured));
    }
}
