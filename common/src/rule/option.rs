//! Options of rules: plain data with defaults, which also carry their manual.
//!
//! `options!` makes a struct whose fields a rule reads directly, and which the config layer fills
//! by name ([`Options::set`]) and `steward rules` prints ([`Options::list`]). So a new option is
//! one line, in the rule's own file.

use std::fmt;
use std::time::Duration;

use crate::span::Span;

/// A part of a whole: 0 is nothing of it, 1 is all.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// All of it.
    pub const ALL: Share = Share(1.0);
    /// Nothing of it.
    pub const NONE: Share = Share(0.0);

    /// `None` unless it is from 0 to 1.
    #[must_use]
    pub fn new(share: f64) -> Option<Share> {
        (0.0..=1.0).contains(&share).then_some(Share(share))
    }

    /// For defaults that stand in the code: what is beyond 1 is 1.
    pub(crate) const fn per_cent(per_cent: u8) -> Share {
        if per_cent >= 100 { Share::ALL } else { Share(per_cent as f64 / 100.0) }
    }

    /// The number, from 0 to 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value as a config file has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// `true`, `false`.
    Flag(bool),
    /// `0.25`, `100`.
    Number(f64),
    /// `"61m"`.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Flag(flag) => flag.fmt(f),
            Setting::Number(number) => number.fmt(f),
            Setting::Text(text) => write!(f, "the text {text:?}"),
        }
    }
}

/// Why an option could not be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SetError {
    /// The rule has no such option.
    #[error("there is no option {name:?}; there are {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// It is of another kind, or out of range.
    #[error("{name}: expected {expected}, found {found}")]
    Unfit {
        /// The option.
        name: &'static str,
        /// What would have been right.
        expected: &'static str,
        /// What was given.
        found: Setting,
    },
}

/// One option, as a manual shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its key.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What can stand there.
    pub expected: &'static str,
    /// Its value; `None` if it is not set.
    pub value: Option<String>,
}

/// Options that can be listed and set by name.
pub trait Options {
    /// All of them with their present values, in the order of the manual.
    fn list(&self) -> Vec<Shown>;

    /// Sets one of them.
    ///
    /// # Errors
    /// If there is no such option, or the value does not fit. Nothing is changed then.
    fn set(&mut self, name: &str, value: Setting) -> Result<(), SetError>;
}

/// A type that an option can have.
pub(super) trait Field: Sized {
    const EXPECTED: &'static str;
    /// The same for an option that may have no value.
    const OR_NONE: &'static str;
    fn read(setting: &Setting) -> Option<Self>;
    fn show(&self) -> Option<String>;
}

impl Field for bool {
    const EXPECTED: &'static str = "true or false";
    const OR_NONE: &'static str = "true, false or \"none\"";

    fn read(setting: &Setting) -> Option<bool> {
        if let Setting::Flag(flag) = setting { Some(*flag) } else { None }
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Field for f64 {
    const EXPECTED: &'static str = "a number that is not negative";
    const OR_NONE: &'static str = "a number that is not negative, or \"none\"";

    fn read(setting: &Setting) -> Option<f64> {
        let Setting::Number(number) = setting else { return None };
        (number.is_finite() && *number >= 0.0).then_some(*number)
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Field for u32 {
    const EXPECTED: &'static str = "a whole number that is not negative";
    const OR_NONE: &'static str = "a whole number that is not negative, or \"none\"";

    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    fn read(setting: &Setting) -> Option<u32> {
        let number = f64::read(setting)?;
        let whole = number.fract() == 0.0 && number <= f64::from(u32::MAX);
        whole.then_some(number as u32)
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Field for Share {
    const EXPECTED: &'static str = "a share from 0 to 1";
    const OR_NONE: &'static str = "a share from 0 to 1, or \"none\"";

    fn read(setting: &Setting) -> Option<Share> {
        f64::read(setting).and_then(Share::new)
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Field for Duration {
    const EXPECTED: &'static str = "a length of time such as 30m or 24h";
    const OR_NONE: &'static str = "a length of time such as 30m or 24h, or \"none\"";

    fn read(setting: &Setting) -> Option<Duration> {
        let Setting::Text(text) = setting else { return None };
        text.parse::<Span>().ok().map(|span| span.0)
    }

    fn show(&self) -> Option<String> {
        Some(Span(*self).to_string())
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTED: &'static str = T::OR_NONE;
    const OR_NONE: &'static str = T::OR_NONE;

    fn read(setting: &Setting) -> Option<Option<T>> {
        if matches!(setting, Setting::Text(text) if text == "none") {
            return Some(None);
        }
        T::read(setting).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(Field::show)
    }
}

/// Makes a struct of options: `name: type = default;`, each with its `///` line as manual.
macro_rules! options {
    ($(#[$top:meta])* $rule:ident {
        $(#[doc = $doc:literal] $name:ident: $type:ty = $default:expr;)*
    }) => {
        $(#[$top])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $rule {
            $(#[doc = $doc] pub $name: $type,)*
        }

        impl Default for $rule {
            fn default() -> $rule {
                $rule { $($name: $default,)* }
            }
        }

        impl $crate::rule::option::Options for $rule {
            fn list(&self) -> Vec<$crate::rule::option::Shown> {
                use $crate::rule::option::{Field, Shown};
                vec![$(Shown {
                    name: stringify!($name),
                    doc: $doc.trim_ascii(),
                    expected: <$type as Field>::EXPECTED,
                    value: Field::show(&self.$name),
                },)*]
            }

            fn set(
                &mut self,
                name: &str,
                value: $crate::rule::option::Setting,
            ) -> Result<(), $crate::rule::option::SetError> {
                use $crate::rule::option::{Field, SetError};
                match name {
                    $(stringify!($name) => match <$type as Field>::read(&value) {
                        Some(read) => self.$name = read,
                        None => return Err(SetError::Unfit {
                            name: stringify!($name),
                            expected: <$type as Field>::EXPECTED,
                            found: value,
                        }),
                    },)*
                    _ => return Err(SetError::Unknown {
                        name: name.to_owned(),
                        known: [$(stringify!($name)),*].join(", "),
                    }),
                }
                Ok(())
            }
        }
    };
}
pub(super) use options;

#[cfg(test)]
mod tests {
    use super::*;

    options! {
        /// Options of a test.
        Sample {
            /// A share of something.
            ratio: Share = Share::per_cent(20);
            /// How long.
            time: Duration = Duration::from_secs(3660);
            /// How many at most.
            most: Option<u32> = None;
        }
    }

    #[test]
    fn options_are_listed_with_manual_and_default() {
        let list = Sample::default().list();
        let shown: Vec<_> = list.iter().map(|s| (s.name, s.doc, s.value.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("ratio", "A share of something.", Some("0.2")),
                ("time", "How long.", Some("61m")),
                ("most", "How many at most.", None),
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut sample = Sample::default();
        sample.set("time", Setting::Text("2h".into())).unwrap();
        sample.set("most", Setting::Number(3.0)).unwrap();
        assert_eq!((sample.time, sample.most), (Duration::from_secs(7200), Some(3)));
        sample.set("most", Setting::Text("none".into())).unwrap();
        assert_eq!(sample.most, None, "what may be left out can be taken away again");
        let before = sample.clone();
        for (name, value) in [
            ("ratio", Setting::Text("none".into())),
            ("ratio", Setting::Number(1.01)),
            ("ratio", Setting::Number(f64::NAN)),
            ("ratio", Setting::Text("0.2".into())),
            ("time", Setting::Number(60.0)),
            ("most", Setting::Number(1.5)),
            ("most", Setting::Number(-1.0)),
            ("safety_frac", Setting::Number(0.1)),
        ] {
            assert!(sample.set(name, value.clone()).is_err(), "{name} {value:?}");
        }
        assert_eq!(sample, before);
        let error = sample.set("safety_frac", Setting::Flag(true)).unwrap_err().to_string();
        assert_eq!(error, r#"there is no option "safety_frac"; there are ratio, time, most"#);
    }
}
