//! Identities. Each is a type of its own, so that a job id is never taken for a uid.

use std::fmt;
use std::str::FromStr;

use crate::slurm::ParseError;
use crate::slurm::number::canonical_u32;

/// Longest name of a cluster or node; longer than any host name may be.
pub(crate) const NAME_MAX: usize = 255;

/// Slurm's raw job id: unique on a cluster at one time, the same over requeues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// The highest number that is a job id: Slurm uses the two above it for "no value" and
    /// "infinite".
    const LAST: u32 = u32::MAX - 2;

    /// `None` for the numbers that Slurm gives to no job.
    #[must_use]
    pub fn new(number: u32) -> Option<JobId> {
        (1..=JobId::LAST).contains(&number).then_some(JobId(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for JobId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<JobId, ParseError> {
        canonical_u32(text)
            .and_then(JobId::new)
            .ok_or_else(|| ParseError::new("job id", text, "a number from 1 to 4294967293"))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kernel's number of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(u32);

impl Uid {
    /// The user with this number.
    #[must_use]
    pub fn new(number: u32) -> Uid {
        Uid(number)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Uid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Uid, ParseError> {
        canonical_u32(text)
            .map(Uid)
            .ok_or_else(|| ParseError::new("uid", text, "a number from 0 to 4294967295"))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Refuses an empty name, and one with a character that would end it in a list, a
            /// path or a line.
            ///
            /// # Errors
            /// If `text` is no name.
            pub fn new(text: &str) -> Result<$name, ParseError> {
                if is_name(text) {
                    Ok($name(text.to_owned()))
                } else {
                    Err(ParseError::new($what, text, NAME_EXPECTED))
                }
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<$name, ParseError> {
                $name::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name!(
    /// Slurm's name of a cluster.
    ClusterName,
    "cluster name"
);

name!(
    /// Slurm's name of a node: `NodeName` in slurm.conf, which need not be the host name.
    NodeName,
    "node name"
);

const NAME_EXPECTED: &str =
    "a name of 1 to 255 bytes without blanks, control characters or any of / , [ ] ( )";

fn is_name(text: &str) -> bool {
    let only_dots = text.bytes().all(|byte| byte == b'.');
    let bad = |c: char| c.is_whitespace() || c.is_control() || "/,[]()".contains(c);
    !only_dots && text.len() <= NAME_MAX && !text.contains(bad)
}

/// A step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepId {
    /// The batch script.
    Batch,
    /// Everything that entered the job from outside, as by ssh.
    Extern,
    /// The shell of `salloc` with `use_interactive_step`.
    Interactive,
    /// A step that has no number yet.
    Tbd,
    /// A step started by `srun`.
    Number {
        /// Its number in the job.
        step: u32,
        /// Its component, where the step spans a heterogeneous job.
        het: Option<u32>,
    },
}

impl StepId {
    /// The numbered step, not heterogeneous.
    #[must_use]
    pub fn new(step: u32) -> StepId {
        StepId::Number { step, het: None }
    }

    /// The step with this number in Slurm's own tables and socket names, where the topmost
    /// numbers are the special steps. `None` for numbers that name no step.
    #[must_use]
    pub fn from_raw(step: u32, het: Option<u32>) -> Option<StepId> {
        match step {
            0xffff_fffa => Some(StepId::Interactive),
            0xffff_fffb => Some(StepId::Batch),
            0xffff_fffc => Some(StepId::Extern),
            0xffff_fffd => Some(StepId::Tbd),
            0xffff_fffe.. => None,
            step => Some(StepId::Number { step, het }),
        }
    }

    /// The step's number, if it is a numbered one.
    #[must_use]
    pub fn get(self) -> Option<u32> {
        match self {
            StepId::Number { step, .. } => Some(step),
            _ => None,
        }
    }
}

/// Reads `batch`, `0`, `0+1`, and the same as a directory, `step_batch`.
impl FromStr for StepId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<StepId, ParseError> {
        let numbered = |name: &str| {
            let (step, het) = match name.split_once('+') {
                Some((step, het)) => (step, Some(canonical_u32(het)?)),
                None => (name, None),
            };
            Some(StepId::Number { step: canonical_u32(step)?, het })
        };
        match text.strip_prefix("step_").unwrap_or(text) {
            "batch" => Ok(StepId::Batch),
            "extern" => Ok(StepId::Extern),
            "interactive" => Ok(StepId::Interactive),
            "TBD" => Ok(StepId::Tbd),
            name => numbered(name).ok_or_else(|| {
                let expected = "batch, extern, interactive, TBD or a number such as 0 or 0+1";
                ParseError::new("step", text, expected)
            }),
        }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepId::Batch => f.pad("batch"),
            StepId::Extern => f.pad("extern"),
            StepId::Interactive => f.pad("interactive"),
            StepId::Tbd => f.pad("TBD"),
            StepId::Number { step, het: None } => step.fmt(f),
            StepId::Number { step, het: Some(het) } => f.pad(&format!("{step}+{het}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterName, JobId, NodeName, StepId, Uid};
    use proptest::prelude::*;

    #[test]
    fn job_ids() {
        assert_eq!("1".parse::<JobId>().unwrap().get(), 1);
        assert_eq!("4294967293".parse::<JobId>().unwrap().get(), u32::MAX - 2);
        for text in [
            "",
            "0",
            "01",
            "+1",
            "-1",
            "12x",
            " 1",
            "1_2",
            "4294967294",
            "4294967295",
            "4294967296",
        ] {
            let error = text.parse::<JobId>().unwrap_err();
            assert_eq!(error.text, text);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn uids() {
        assert_eq!("0".parse::<Uid>(), Ok(Uid::new(0)));
        assert_eq!("4294967295".parse::<Uid>().unwrap().get(), u32::MAX);
        for text in ["", "root", "-1", "00", "4294967296"] {
            assert_eq!(text.parse::<Uid>().unwrap_err().text, text);
        }
    }

    #[test]
    fn names() {
        for text in ["n1", "gpu-a01.site.org", "node_01", "näme", "N1", "a..b"] {
            assert_eq!(NodeName::new(text).unwrap().as_str(), text);
            assert_eq!(ClusterName::new(text).unwrap().to_string(), text);
        }
        let long = "n".repeat(256);
        for text in [
            "", " ", "a b", "a\tb", "a\u{0}b", "a\nb", "a/b", "a,b", "n[1", "n]", "(null)", ".",
            "..", &long,
        ] {
            assert_eq!(NodeName::new(text).unwrap_err().text, text, "{text:?}");
            assert!(ClusterName::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn steps() {
        let het = |step, het| StepId::Number { step, het };
        let cases = [
            ("batch", StepId::Batch),
            ("extern", StepId::Extern),
            ("interactive", StepId::Interactive),
            ("TBD", StepId::Tbd),
            ("0", StepId::new(0)),
            ("12", het(12, None)),
            ("0+1", het(0, Some(1))),
        ];
        for (text, step) in cases {
            assert_eq!(text.parse::<StepId>(), Ok(step));
            assert_eq!(format!("step_{text}").parse::<StepId>(), Ok(step));
            assert_eq!(step.to_string(), text);
        }
        for text in
            ["", "step_", "Batch", "tbd", "-1", "01", "1+", "+1", "1+2+3", "1.0", "step_step_0"]
        {
            assert_eq!(text.parse::<StepId>().unwrap_err().text, text);
        }
    }

    #[test]
    fn raw_step_numbers() {
        let cases = [
            (0, Some(StepId::new(0))),
            (4_294_967_290, Some(StepId::Interactive)),
            (4_294_967_291, Some(StepId::Batch)),
            (4_294_967_292, Some(StepId::Extern)),
            (4_294_967_293, Some(StepId::Tbd)),
            (4_294_967_294, None),
            (4_294_967_295, None),
        ];
        for (raw, step) in cases {
            assert_eq!(StepId::from_raw(raw, None), step, "{raw}");
        }
        assert_eq!(StepId::from_raw(7, Some(1)).map(|s| s.to_string()), Some("7+1".into()));
        assert_eq!(StepId::new(7).get(), Some(7));
        assert_eq!(StepId::Batch.get(), None);
    }

    proptest! {
        #[test]
        fn round_trips(number in 1..=JobId::LAST, het: Option<u32>) {
            prop_assert_eq!(number.to_string().parse::<JobId>().unwrap().get(), number);
            prop_assert_eq!(number.to_string().parse::<Uid>().unwrap().get(), number);
            let step = StepId::Number { step: number, het };
            prop_assert_eq!(step.to_string().parse::<StepId>(), Ok(step));
        }

        #[test]
        fn what_parses_is_canonical(text in "\\PC{0,6}|[0-9+]{1,11}") {
            if let Ok(id) = text.parse::<JobId>() {
                prop_assert_eq!(id.to_string(), text.clone());
            }
            if let Ok(uid) = text.parse::<Uid>() {
                prop_assert_eq!(uid.to_string(), text.clone());
            }
            match text.parse::<StepId>() {
                Ok(step) => prop_assert_eq!(step.to_string(), text),
                Err(error) => prop_assert_eq!(error.text, text),
            }
        }

        #[test]
        fn names_keep_their_text(text in any::<String>()) {
            match NodeName::new(&text) {
                Ok(name) => prop_assert_eq!(name.as_str(), text),
                Err(error) => prop_assert_eq!(error.text, text),
            }
        }
    }
}
