//! What goes over the Unix socket: one line of JSON each way.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request may have so many bytes.
pub const LONGEST_REQUEST: u64 = 64 * 1024;

/// An answer may have so many.
pub const LONGEST_REPLY: u64 = 256 * 1024 * 1024;

/// What is asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Which handler.
    pub command: String,
    /// What it is to know.
    #[serde(default)]
    pub args: Value,
}

/// What comes back.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// The answer.
    Ok(Value),
    /// None.
    Error {
        /// What went wrong.
        message: String,
        /// The exit code that a command ends with: 1 refused or failed, 2 bad input.
        code: u8,
    },
}
