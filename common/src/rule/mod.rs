//! Rules: who wastes what, decided from figures alone.
//!
//! Entry points:
//! - [`Facts`]: the jobs and hardware of one cluster; [`Portfolio`]: those of one [`Scope`].
//! - [`Rule`]: its options are the fields of the type that implements it; [`Rule::check`] takes a
//!   portfolio and gives a [`Verdict`] on each [`Subject`]. [`RULES`] lists all of them.
//! - [`measure`]: what counts as measured. A figure that covers less of a job than the rule's
//!   `coverage` is none. A finding about a sum (idle hours) stands on the jobs that were measured;
//!   one about a ratio (efficiency) needs `hours_coverage` of a user's hours measured. "Fine" is
//!   said only with that much, else it is [`Verdict::NoData`].
//!
//! Thresholds are compared as they are, without rounding.
//!
//! To add a rule: a file here with `options!` and `impl Rule`, its `mod` line, its line in
//! [`RULES`].

mod advice;
pub mod cancel_zero_gpu_jobs;
mod efficiency;
pub mod excess_cpu_memory;
pub mod excessive_time_cpu;
pub mod excessive_time_gpu;
pub mod facts;
pub mod failure_loop;
pub mod finding;
pub mod gpu_model_too_powerful;
pub mod gpu_without_process;
pub mod instance;
pub mod irregular_cpu;
pub mod low_cpu;
pub mod low_cpu_efficiency;
pub mod low_gpu_efficiency;
pub mod low_memory;
pub mod low_xpu_efficiency;
pub mod many_files_little_io;
pub mod measure;
pub mod multinode_cpu_fragmentation;
pub mod multinode_gpu_fragmentation;
pub mod need;
pub mod option;
pub mod portfolio;
#[cfg(test)]
pub(crate) mod sample;
pub mod scratch_unused;
mod search;
pub mod serial_allocating_multiple;
pub mod short_job_flood;
pub mod specialized_nodes;
mod spread;
mod time_limits;
pub mod too_many_cores_per_gpu;
pub mod too_many_threads;
pub mod too_much_cpu_mem_per_gpu;
pub mod unbalanced_cores;
pub mod usage;
pub mod zero_cpu_utilization;
pub mod zero_util_gpu_hours;

use std::fmt;

use crate::intern::Name;

pub use facts::{Facts, Gathering, Hardware, Job, JobKey, NodeSize};
pub use finding::{Audience, Figures, Finding, Hit, Value};
pub use instance::Instance;
pub use measure::Missing;
pub use need::Need;
pub use option::{Options, SetError, Setting, Share};
pub use portfolio::{Portfolio, Scope, Totals};
pub use usage::{Figure, GpuUsage, Idle, NodeUsage, Origin, Usage, Utilisation, Work};

/// The name of a rule: key in configs, folder of templates, column and URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(&'static str);

impl RuleId {
    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

/// Which of a user's jobs a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All that the rule looks at.
    All,
    /// Those in one partition.
    Partition(Name),
    /// Those of one name.
    JobName(Name),
}

/// Whom or what a verdict is about. Names are those of the portfolio's [`Facts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A user.
    User {
        /// Who.
        user: Name,
        /// Which of the jobs.
        part: Part,
    },
    /// A job.
    Job {
        /// Whose.
        user: Name,
        /// Which.
        job: JobKey,
    },
}

impl Subject {
    pub(crate) fn user(user: Name) -> Subject {
        Subject::User { user, part: Part::All }
    }

    pub(crate) fn job(job: &Job) -> Subject {
        Subject::Job { user: job.user, job: job.key }
    }
}

/// Why a rule does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There are no jobs of the kind that it is about.
    NoSuchJobs,
    /// Others hold or waste more.
    NotAmongTop,
    /// The job is one that the rule spares.
    Exempt,
    /// There are too few jobs to speak of a habit.
    TooFewJobs,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// All is well, as far as this rule looks.
    Fine,
    /// Something is not.
    Finding(Finding),
    /// The rule has nothing to say here.
    NotApplicable(Why),
    /// It would have, if more were known.
    NoData(Missing),
}

impl Verdict {
    /// The finding, if it is one.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        if let Verdict::Finding(finding) = self { Some(finding) } else { None }
    }
}

/// A rule with its options.
pub trait Rule: Options + fmt::Debug + Send + Sync {
    /// Its name.
    fn id(&self) -> RuleId;

    /// Its manual: what it looks at, why that matters, what to do.
    fn doc(&self) -> &'static str;

    /// The jobs that it is about unless the site says otherwise.
    fn scope(&self) -> Scope;

    /// What must be known for it.
    fn needs(&self) -> &'static [Need];

    /// Whether it compares users with one another (the top ten of something), so that what others do
    /// can change a verdict.
    fn compares_users(&self) -> bool {
        false
    }

    /// Judges. Total: every user or job of the portfolio that it is about gets a verdict.
    fn check(&self, portfolio: &Portfolio<'_>) -> Vec<(Subject, Verdict)>;
}

/// Makes a rule with its defaults.
pub type Make = fn() -> Box<dyn Rule>;

/// THE LIST of rules, by name.
pub const RULES: &[(&str, Make)] = &[
    ("cancel-zero-gpu-jobs", cancel_zero_gpu_jobs::rule),
    ("excess-cpu-memory", excess_cpu_memory::rule),
    ("excessive-time-cpu", excessive_time_cpu::rule),
    ("excessive-time-gpu", excessive_time_gpu::rule),
    ("failure-loop", failure_loop::rule),
    ("gpu-model-too-powerful", gpu_model_too_powerful::rule),
    ("gpu-without-process", gpu_without_process::rule),
    ("irregular-cpu", irregular_cpu::rule),
    ("low-cpu", low_cpu::rule),
    ("low-cpu-efficiency", low_cpu_efficiency::rule),
    ("low-gpu-efficiency", low_gpu_efficiency::rule),
    ("low-memory", low_memory::rule),
    ("low-xpu-efficiency", low_xpu_efficiency::rule),
    ("many-files-little-io", many_files_little_io::rule),
    ("multinode-cpu-fragmentation", multinode_cpu_fragmentation::rule),
    ("multinode-gpu-fragmentation", multinode_gpu_fragmentation::rule),
    ("scratch-unused", scratch_unused::rule),
    ("serial-allocating-multiple", serial_allocating_multiple::rule),
    ("short-job-flood", short_job_flood::rule),
    ("specialized-nodes", specialized_nodes::rule),
    ("too-many-cores-per-gpu", too_many_cores_per_gpu::rule),
    ("too-many-threads", too_many_threads::rule),
    ("too-much-cpu-mem-per-gpu", too_much_cpu_mem_per_gpu::rule),
    ("unbalanced-cores", unbalanced_cores::rule),
    ("zero-cpu-utilization", zero_cpu_utilization::rule),
    ("zero-util-gpu-hours", zero_util_gpu_hours::rule),
];

/// The rule of that name, with its defaults.
#[must_use]
pub fn find(name: &str) -> Option<Box<dyn Rule>> {
    RULES.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}

/// Judges with little memory: verdicts are told as they come, a user at a time where the rule does
/// not compare users. They are those of [`Rule::check`].
pub fn judge(rule: &dyn Rule, portfolio: &Portfolio<'_>, mut tell: impl FnMut(Subject, Verdict)) {
    let mut check = |part: &Portfolio<'_>| {
        rule.check(part).into_iter().for_each(|(subject, verdict)| tell(subject, verdict));
    };
    if rule.compares_users() {
        check(portfolio);
    } else {
        portfolio.by_user().for_each(|part| check(&part));
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
