//! The ways in which Slurm keeps an account from running jobs.

use std::fmt;
use std::str::FromStr;

use super::units::Units;
use crate::slurm::ParseError;

/// A limit of an association by which an account is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// `GrpTRESMins=cpu=0`.
    CpuMinutes,
    /// `GrpTRESRunMins=cpu=0`.
    #[default]
    RunningMinutes,
    /// `MaxSubmitJobs=0`.
    Submission,
    /// `GrpTRESMins=billing=N`: Slurm itself enforces what may be used.
    Billing,
}

/// Every mechanism with its word in the settings, the limit and what is limited of it.
const TABLE: [(Mechanism, &str, &str, Option<&str>); 4] = [
    (Mechanism::CpuMinutes, "GrpTRESMins", "GrpTRESMins", Some("cpu")),
    (Mechanism::RunningMinutes, "GrpTRESRunMins", "GrpTRESRunMins", Some("cpu")),
    (Mechanism::Submission, "MaxSubmitJobs", "MaxSubmitJobs", None),
    (Mechanism::Billing, "billing", "GrpTRESMins", Some("billing")),
];

/// All mechanisms.
pub const MECHANISMS: [Mechanism; 4] =
    [Mechanism::CpuMinutes, Mechanism::RunningMinutes, Mechanism::Submission, Mechanism::Billing];

/// The value of a limit; `None` if there is none.
pub type Value = Option<u64>;

impl Mechanism {
    fn row(self) -> (&'static str, &'static str, Option<&'static str>) {
        let found = TABLE.iter().find(|(mechanism, ..)| *mechanism == self);
        found.map_or(("", "", None), |(_, word, limit, resource)| (word, limit, *resource))
    }

    /// Its word in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// The name of the limit, which is also sacctmgr's column.
    #[must_use]
    pub fn limit(self) -> &'static str {
        self.row().1
    }

    /// What sacctmgr is told to set. Slurm takes -1 for "no limit".
    #[must_use]
    pub fn setting(self, value: Value) -> String {
        let (_, limit, resource) = self.row();
        let value = value.map_or_else(|| "-1".to_owned(), |value| value.to_string());
        match resource {
            Some(resource) => format!("{limit}={resource}={value}"),
            None => format!("{limit}={value}"),
        }
    }

    /// The value in sacctmgr's column, such as `cpu=10,gres/gpu=5` or `3`.
    ///
    /// # Errors
    /// If it is no such value.
    pub fn read(self, column: &str) -> Result<Value, ParseError> {
        let wrong = || ParseError::new("limit", column, "a number, or resources such as cpu=10");
        let (_, _, resource) = self.row();
        let number = |text: &str| text.parse::<u64>().map(Some).map_err(|_| wrong());
        if column.is_empty() {
            return Ok(None);
        }
        let Some(resource) = resource else { return number(column) };
        for item in column.split(',') {
            let (name, value) = item.split_once('=').ok_or_else(wrong)?;
            if name == resource {
                return number(value);
            }
        }
        Ok(None)
    }

    /// The value that holds an account which may use `left` more beside the `used` of this cluster.
    #[must_use]
    pub fn held(self, may_use: Units) -> u64 {
        match self {
            Mechanism::Billing => u64::try_from(may_use.or_nothing().minutes_up()).unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether running jobs are ended unless Slurm is told to spare them.
    #[must_use]
    pub const fn may_end_jobs(self) -> bool {
        matches!(self, Mechanism::CpuMinutes | Mechanism::Billing)
    }

    /// What becomes of jobs under it, with and without `safe` in AccountingStorageEnforce.
    #[must_use]
    pub fn effect(self, safe: bool) -> &'static str {
        match (self, safe) {
            (Mechanism::CpuMinutes | Mechanism::Billing, true) => {
                "running jobs go on; new ones wait"
            }
            (Mechanism::CpuMinutes | Mechanism::Billing, false) => {
                "running jobs are ended as TIMEOUT within a minute; new ones wait"
            }
            (Mechanism::RunningMinutes, _) => "running jobs go on; new ones wait",
            (Mechanism::Submission, _) => {
                "running and waiting jobs go on; new ones are refused when they are submitted"
            }
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Mechanism {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Mechanism, ParseError> {
        let expected = "GrpTRESMins, GrpTRESRunMins, MaxSubmitJobs or billing";
        let found = TABLE.iter().find(|(_, word, ..)| word.eq_ignore_ascii_case(text));
        found
            .map(|(mechanism, ..)| *mechanism)
            .ok_or_else(|| ParseError::new("way to hold an account", text, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b12_b15_what_sacctmgr_is_told() {
        for (mechanism, hold, release) in [
            (Mechanism::CpuMinutes, "GrpTRESMins=cpu=0", "GrpTRESMins=cpu=-1"),
            (Mechanism::RunningMinutes, "GrpTRESRunMins=cpu=0", "GrpTRESRunMins=cpu=-1"),
            (Mechanism::Submission, "MaxSubmitJobs=0", "MaxSubmitJobs=-1"),
        ] {
            assert_eq!(mechanism.setting(Some(mechanism.held(Units::new(5)))), hold);
            assert_eq!(mechanism.setting(None), release);
        }
        let minutes = Mechanism::Billing.held(Units::of_hours(19_000).unwrap());
        assert_eq!(Mechanism::Billing.setting(Some(minutes)), "GrpTRESMins=billing=1140000");
        assert_eq!(Mechanism::Billing.held(Units::new(-5)), 0);
    }

    #[test]
    fn a_limit_that_was_there_before_is_read() {
        let cpu = Mechanism::CpuMinutes;
        assert_eq!(cpu.read(""), Ok(None));
        assert_eq!(cpu.read("cpu=100,gres/gpu=5"), Ok(Some(100)));
        assert_eq!(cpu.read("gres/gpu=5,billing=7"), Ok(None));
        assert_eq!(Mechanism::Billing.read("cpu=1,billing=7"), Ok(Some(7)));
        assert_eq!(Mechanism::Submission.read("3"), Ok(Some(3)));
        assert_eq!(Mechanism::Submission.read(""), Ok(None));
        for text in ["cpu", "cpu=many", "cpu=-5"] {
            assert!(cpu.read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn words_are_read_in_any_case() {
        for mechanism in MECHANISMS {
            assert_eq!(mechanism.word().to_lowercase().parse(), Ok(mechanism));
        }
        assert!("GrpJobs".parse::<Mechanism>().is_err());
    }
}
