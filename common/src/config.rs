//! What the settings of both programs share: how a file that cannot be used is spoken of.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What may be logged, from least to most.
pub const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A configuration that cannot be used; names the file or the key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a configuration.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A value makes no sense.
    #[error("{}{key}: {message}", place(path.as_deref()))]
    Senseless {
        /// The file, if it is from one.
        path: Option<PathBuf>,
        /// The key.
        key: Cow<'static, str>,
        /// What is wrong and what to do.
        message: String,
    },
}

impl ConfigError {
    /// Something in `text` is wrong at byte `at`; `path` is where the text is from.
    #[must_use]
    pub fn malformed(path: &Path, text: &str, at: usize, message: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Malformed {
            path: path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or("").chars().count() + 1,
            message: message.replace('\n', " "),
        }
    }

    /// The value of `key` makes no sense; `message` says what would.
    #[must_use]
    pub fn senseless(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::Senseless { path: None, key: key.into(), message: message.into() }
    }

    /// The same, if it names no file yet, of a setting in this one.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Senseless { path: None, key, message } => {
                Self::Senseless { path: Some(path.to_path_buf()), key, message }
            }
            other => other,
        }
    }
}

fn place(path: Option<&Path>) -> String {
    path.map_or(String::new(), |path| format!("{}: ", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_told_by_line_and_column_in_characters() {
        let text = "a = 1\nñ = ß\n";
        let at = text.find('ß').unwrap();
        let error = ConfigError::malformed(Path::new("f.toml"), text, at, "no\ngood");
        assert_eq!(error.to_string(), "f.toml:2:5: no good");
        let senseless = ConfigError::senseless("log", "must be loud");
        assert_eq!(senseless.to_string(), "log: must be loud");
        let senseless = senseless.in_file(Path::new("f.toml"));
        assert_eq!(senseless.to_string(), "f.toml: log: must be loud");
        let beyond = ConfigError::malformed(Path::new("f.toml"), "a", 99, "x");
        assert_eq!(beyond.to_string(), "f.toml:1:2: x");
    }
}
