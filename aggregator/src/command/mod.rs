//! The commands, one a file.
//!
//! A file has `Args` (its doc comment is the help) and `run`. To add a command: the file, its `mod`
//! line and its line in `commands!`.

pub mod analyze;
pub mod archive;
pub mod ask;
pub mod audit;
pub mod backtest;
pub mod bank;
pub mod cancel;
pub mod collect;
pub mod config;
pub mod current;
pub mod doctor;
pub mod effect;
mod email;
pub mod evaluate;
pub mod exempt;
pub mod exporter;
pub mod import;
pub mod jobs;
pub mod nodes;
pub mod notices;
pub mod now;
pub(crate) mod reader;
pub mod report;
pub mod rules;
pub mod serve;
pub mod service;
pub mod status;

use clap::Subcommand;
use steward_common::causes::with_causes;
use steward_common::config::ConfigError;

use crate::analyze::AnalyzeError;
use crate::config::Config;
use crate::serve::client::AskError;
use crate::shutdown::Shutdown;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All that was asked is done.
    Done,
    /// It ran, and the answer is no: a check found trouble.
    Failed,
    /// Some of it is done; the text says what is not.
    InPart,
}

impl End {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::InPart => 3,
        }
    }
}

/// What a command has to say, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output.
    pub text: String,
    /// For the exit code.
    pub end: End,
}

impl Outcome {
    /// All done.
    pub fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: End::Done }
    }

    /// The answer is no.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: End::Failed }
    }

    /// Done in part.
    pub fn in_part(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: End::InPart }
    }
}

/// What a person gave makes no sense, as opposed to something that went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// A signal came before the command was through.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// The exit code for an error: 2 for what a person can put right in what he gave, else 1.
#[must_use]
pub fn code(error: &anyhow::Error) -> u8 {
    let input = error.chain().any(|cause| cause.is::<BadInput>() || cause.is::<ConfigError>())
        || matches!(error.downcast_ref(), Some(AskError::BadInput(_)))
        || matches!(error.downcast_ref(), Some(AnalyzeError::Days(_)));
    if input { 2 } else { 1 }
}

/// An error with all that caused it, in one line, each once: many errors name their cause themselves.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    with_causes(error.as_ref())
}

/// Makes the enum that clap reads and the call of each command from one list.
macro_rules! commands {
    ($($(#[$more:meta])* $variant:ident $module:ident,)*) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        #[allow(missing_docs, reason = "the help of a command stands on its Args")]
        pub enum Command {
            $($(#[$more])* $variant($module::Args),)*
        }

        impl Command {
            /// Does what was asked. A command that takes long looks at `shutdown`, cleans up and
            /// returns when it comes.
            ///
            /// # Errors
            /// If it cannot be done; the message says what to try.
            pub async fn run(self, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
                match self {
                    $(Self::$variant(args) => $module::run(args, config, shutdown).await,)*
                }
            }
        }
    };
}

impl Command {
    /// What a command makes of settings that cannot be used: the doctor tells and goes on with the
    /// defaults, all others end.
    ///
    /// # Errors
    /// The same, for all others.
    pub fn without_settings(&mut self, error: ConfigError) -> Result<Config, ConfigError> {
        match self {
            Self::Doctor(args) => {
                args.settings = Some(error.to_string());
                Ok(Config::default())
            }
            _ => Err(error),
        }
    }
}

commands! {
    Analyze analyze,
    Archive archive,
    Audit audit,
    Backtest backtest,
    Bank bank,
    Cancel cancel,
    Collect collect,
    Config config,
    Current current,
    #[command(visible_alias = "test")]
    Doctor doctor,
    Effect effect,
    Evaluate evaluate,
    Exempt exempt,
    Exporter exporter,
    Import import,
    Jobs jobs,
    Nodes nodes,
    #[command(visible_alias = "check")]
    Notices notices,
    Now now,
    Report report,
    Rules rules,
    Serve serve,
    Service service,
    Status status,
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use crate::analyze::days::DaysError;

    #[test]
    fn a_file_that_is_not_there_is_told_once() {
        let path = std::path::Path::new("/nonexistent.toml");
        let error = anyhow::Error::from(Config::load(Some(path)).unwrap_err());
        let message = message(&error.context("settings"));
        assert_eq!(message, "settings: /nonexistent.toml: No such file or directory (os error 2)");
    }

    #[test]
    fn what_a_person_gave_wrong_ends_with_2_and_what_went_wrong_with_1() {
        let bad = || BadInput("no day".to_owned());
        for (error, expected) in [
            (bad().into(), 2),
            (Err::<(), _>(bad()).context("--from").unwrap_err(), 2),
            (AskError::from(bad()).into(), 2),
            (ConfigError::senseless("log", "must be loud").into(), 2),
            (AnalyzeError::from(DaysError::Future(jiff::civil::date(2030, 1, 1))).into(), 2),
            (anyhow::anyhow!("no answer"), 1),
            (Interrupted.into(), 1),
        ] {
            assert_eq!(code(&error), expected, "{error:#}");
        }
    }
}
