//! Job states.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::id::Uid;

macro_rules! states {
    ($($(#[$doc:meta])* $phase:ident $variant:ident = $name:literal $(, $compact:literal)?;)*) => {
        /// The state of a job, as Slurm's commands print it: the base state, or the flag that
        /// they show in its place.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum JobState {
            $($(#[$doc])* $variant,)*
            /// Cancelled.
            Cancelled {
                /// By whom, where Slurm says it.
                by: Option<Uid>,
            },
            /// A state that this program does not know, in Slurm's own words.
            Other(Box<str>),
        }

        impl JobState {
            fn known(text: &str) -> Option<JobState> {
                match text {
                    $($name $(| $compact)? => Some(JobState::$variant),)*
                    "CANCELLED" | "CA" => Some(JobState::Cancelled { by: None }),
                    _ => None,
                }
            }

            /// Slurm's long name of the state, without the user of `CANCELLED by 1000`.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(JobState::$variant => $name,)*
                    JobState::Cancelled { .. } => "CANCELLED",
                    JobState::Other(text) => text,
                }
            }

            fn phase(&self) -> Phase {
                match self {
                    $(JobState::$variant => Phase::$phase,)*
                    JobState::Cancelled { .. } => Phase::Ended,
                    JobState::Other(_) => Phase::Unclear,
                }
            }

            /// Every known state, without the user of a cancelled one.
            #[must_use]
            pub fn all() -> Vec<JobState> {
                vec![$(JobState::$variant,)* JobState::Cancelled { by: None }]
            }
        }
    };
}

/// What a state says about a run. The one place where states are sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It waits for nodes.
    Waits,
    /// It has nodes, and its processes may work.
    Works,
    /// It has nodes, and its processes do not work.
    Stays,
    /// A job that works; a run that has this state and an end is the part before its size changed.
    Changes,
    /// The job waits again; a run that has this state and an end is one before it went back.
    GoesBack,
    /// It is over.
    Ended,
    /// The base state, which may be any, is hidden or not known; with an end it is over.
    Unclear,
}

states! {
    /// Ended: a node did not boot.
    Ended BootFail = "BOOT_FAIL", "BF";
    /// Ended with exit code zero.
    Ended Completed = "COMPLETED", "CD";
    /// Work is over, clean-up is not.
    Stays Completing = "COMPLETING", "CG";
    /// Has nodes and waits for them to boot.
    Stays Configuring = "CONFIGURING", "CF";
    /// Ended: could not have met its deadline.
    Ended Deadline = "DEADLINE", "DL";
    /// Ended with a non-zero exit code or another failure.
    Ended Failed = "FAILED", "F";
    /// Could not be launched on its nodes.
    Unclear LaunchFailed = "LAUNCH_FAILED";
    /// Ended: a node failed.
    Ended NodeFail = "NODE_FAIL", "NF";
    /// Ended: out of memory.
    Ended OutOfMemory = "OUT_OF_MEMORY", "OOM";
    /// Waits in the queue.
    Waits Pending = "PENDING", "PD";
    /// Has nodes that were powered down and waits for them to boot.
    Stays PowerUpNode = "POWER_UP_NODE";
    /// Ended by preemption.
    Ended Preempted = "PREEMPTED", "PR";
    /// The nodes could not be configured for it.
    Unclear ReconfigFail = "RECONFIG_FAIL";
    /// Goes back to the queue.
    GoesBack Requeued = "REQUEUED", "RQ";
    /// Goes back to the queue of a federation.
    GoesBack RequeueFed = "REQUEUE_FED", "RF";
    /// Goes back to the queue and is held there.
    GoesBack RequeueHold = "REQUEUE_HOLD", "RH";
    /// Its size is changing.
    Changes Resizing = "RESIZING", "RS";
    /// Held: its reservation was deleted.
    GoesBack ResvDelHold = "RESV_DEL_HOLD", "RD";
    /// Given to another cluster of the federation.
    Unclear Revoked = "REVOKED", "RV";
    /// Running.
    Works Running = "RUNNING", "R";
    /// A signal to it is under way.
    Works Signaling = "SIGNALING", "SI";
    /// Goes back to the queue and is held there as a special case.
    GoesBack SpecialExit = "SPECIAL_EXIT", "SE";
    /// Data is being brought out of the burst buffer.
    Stays StageOut = "STAGE_OUT", "SO";
    /// Stopped by SIGSTOP; keeps its CPUs.
    Stays Stopped = "STOPPED", "ST";
    /// Suspended; its CPUs are given to others.
    Stays Suspended = "SUSPENDED", "S";
    /// Ended at its time limit.
    Ended Timeout = "TIMEOUT", "TO";
    /// News of it are on their way to the database.
    Stays UpdateDb = "UPDATE_DB";
}

impl JobState {
    /// Whether a job of this state is over.
    ///
    /// Only base states end a job. The flags LAUNCH_FAILED, RECONFIG_FAIL and REVOKED hide the
    /// base state, which may be PENDING, so they are not taken for an end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.phase() == Phase::Ended
    }

    /// Whether a run of which sacct says this state and an end is over: also one before the job went
    /// back to the queue, and the part before its size changed. A run that goes on may have an end,
    /// the one that is expected.
    #[must_use]
    pub fn ends_run(&self) -> bool {
        !matches!(self.phase(), Phase::Waits | Phase::Works | Phase::Stays)
    }

    /// The states that a run has in Slurm's database when it is over: the base states that end a job,
    /// and three flags that are kept in their place.
    pub fn of_past_runs() -> impl Iterator<Item = JobState> {
        let flags = [JobState::Requeued, JobState::Resizing, JobState::Revoked];
        JobState::all().into_iter().filter(JobState::is_ended).chain(flags)
    }

    /// Whether the job holds nodes and its processes may work.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.phase(), Phase::Works | Phase::Changes)
    }

    /// Whether the job waits for nodes.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.phase(), Phase::Waits | Phase::GoesBack)
    }

    /// The state of this name, long or short, in letters of any size, as people give it; `None`
    /// if Slurm has none such.
    #[must_use]
    pub fn named(text: &str) -> Option<JobState> {
        JobState::known(&text.to_ascii_uppercase())
    }

    /// The long names of all known states, for whoever gave another.
    #[must_use]
    pub fn names() -> String {
        let states = JobState::all();
        states.iter().map(JobState::name).collect::<Vec<_>>().join(", ")
    }

    /// Whether this program knows the state.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, JobState::Other(_))
    }
}

/// Never fails: what is not known is [`JobState::Other`].
impl From<&str> for JobState {
    #[inline]
    fn from(text: &str) -> JobState {
        // What most jobs are.
        if text == "COMPLETED" {
            return JobState::Completed;
        }
        JobState::any(text)
    }
}

impl JobState {
    #[inline(never)]
    fn any(text: &str) -> JobState {
        let cancelled_by = || {
            let uid = text.strip_prefix("CANCELLED by ")?.parse().ok()?;
            Some(JobState::Cancelled { by: Some(uid) })
        };
        JobState::known(text).or_else(cancelled_by).unwrap_or_else(|| JobState::Other(text.into()))
    }
}

impl FromStr for JobState {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<JobState, Infallible> {
        Ok(JobState::from(text))
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobState::Cancelled { by: Some(uid) } => f.pad(&format!("CANCELLED by {uid}")),
            state => f.pad(state.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JobState;
    use crate::id::Uid;
    use proptest::prelude::*;

    #[test]
    fn long_and_compact() {
        let cases = [
            ("COMPLETED", "CD", JobState::Completed),
            ("RUNNING", "R", JobState::Running),
            ("PENDING", "PD", JobState::Pending),
            ("CANCELLED", "CA", JobState::Cancelled { by: None }),
            ("COMPLETING", "CG", JobState::Completing),
            ("CONFIGURING", "CF", JobState::Configuring),
            ("OUT_OF_MEMORY", "OOM", JobState::OutOfMemory),
            ("SUSPENDED", "S", JobState::Suspended),
            ("STOPPED", "ST", JobState::Stopped),
            ("TIMEOUT", "TO", JobState::Timeout),
            ("REQUEUE_FED", "RF", JobState::RequeueFed),
        ];
        for (long, compact, state) in cases {
            assert_eq!(JobState::from(long), state);
            assert_eq!(JobState::from(compact), state, "{compact}");
            assert_eq!(state.to_string(), long);
        }
    }

    #[test]
    fn people_name_states_long_or_short_in_any_case() {
        assert_eq!(JobState::named("oom"), Some(JobState::OutOfMemory));
        assert_eq!(JobState::named("Failed"), Some(JobState::Failed));
        assert_eq!(JobState::named("CA"), Some(JobState::Cancelled { by: None }));
        for text in ["", "foo", "CANCELLED by 7"] {
            assert_eq!(JobState::named(text), None, "{text}");
        }
        assert_eq!(JobState::names().split(", ").count(), JobState::all().len());
    }

    #[test]
    fn cancelled_keeps_the_user() {
        let state = JobState::from("CANCELLED by 352864");
        assert_eq!(state, JobState::Cancelled { by: Some(Uid::new(352_864)) });
        assert_eq!(state.to_string(), "CANCELLED by 352864");
        assert_eq!(state.name(), "CANCELLED");
        assert!(state.is_ended());
    }

    #[test]
    fn unknown_is_kept_and_counts_as_nothing() {
        for text in ["", "EXPEDITING", "running", "CANCELLED by root", "CANCELLED+", "IDLE+DRAIN"] {
            let state = JobState::from(text);
            assert_eq!(state, JobState::Other(text.into()));
            assert!(!state.is_known());
            assert!(!state.is_ended() && !state.is_running() && !state.is_pending());
        }
    }

    #[test]
    fn all_states_of_the_manual() {
        let manual = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PENDING",
            "PREEMPTED",
            "RUNNING",
            "SUSPENDED",
            "TIMEOUT",
            "COMPLETING",
            "CONFIGURING",
            "LAUNCH_FAILED",
            "POWER_UP_NODE",
            "RECONFIG_FAIL",
            "REQUEUED",
            "REQUEUE_FED",
            "REQUEUE_HOLD",
            "RESIZING",
            "RESV_DEL_HOLD",
            "REVOKED",
            "SIGNALING",
            "SPECIAL_EXIT",
            "STAGE_OUT",
            "STOPPED",
            "UPDATE_DB",
        ];
        assert_eq!(JobState::all().len(), manual.len());
        for name in manual {
            assert!(JobState::from(name).is_known(), "{name}");
        }
    }

    #[test]
    fn a_state_is_of_one_class_at_most() {
        for state in JobState::all() {
            let classes = [state.is_ended(), state.is_running(), state.is_pending()];
            assert!(classes.iter().filter(|yes| **yes).count() <= 1, "{state}");
            assert!(state.ends_run() || !state.is_ended(), "{state}");
        }
        let goes_on = |text| !JobState::from(text).ends_run();
        assert!(
            goes_on("RUNNING")
                && goes_on("PENDING")
                && goes_on("SUSPENDED")
                && goes_on("STAGE_OUT")
        );
        assert!(
            !goes_on("REQUEUED") && !goes_on("RESIZING") && !goes_on("REVOKED") && !goes_on("NEW")
        );
        let ended = |text| JobState::from(text).is_ended();
        assert!(ended("PREEMPTED") && ended("NODE_FAIL") && ended("COMPLETED"));
        assert!(!ended("LAUNCH_FAILED") && !ended("RECONFIG_FAIL") && !ended("REVOKED"));
        assert!(!ended("COMPLETING") && !ended("REQUEUED") && !ended("SUSPENDED"));
    }

    /// sacct of Slurm 22.05 refuses every other state but PENDING, RUNNING and SUSPENDED as "not supported
    /// / accounted" or as unknown.
    #[test]
    fn past_runs_have_the_states_that_slurm_accounts() {
        let mut names: Vec<_> = JobState::of_past_runs().map(|s| s.to_string()).collect();
        names.sort();
        let accounted = "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED \
                         REQUEUED RESIZING REVOKED TIMEOUT";
        assert_eq!(names.join(" "), accounted);
        assert!(JobState::of_past_runs().all(|state| state.ends_run()));
    }

    proptest! {
        #[test]
        fn every_text_survives(text in "\\PC*|CANCELLED by [0-9]{0,11}|[A-Z_]{3,12}") {
            let state = JobState::from(text.as_str());
            let compact = text.len() <= 3 && state.is_known();
            if !compact {
                prop_assert_eq!(state.to_string(), text);
            }
            prop_assert_eq!(JobState::from(state.to_string().as_str()), state);
        }
    }
}
