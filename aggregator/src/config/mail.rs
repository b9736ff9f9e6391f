//! How mails are written and sent.

use serde::Deserialize;
use steward_common::config::ConfigError;

/// How mails are written and sent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Mail {}

impl Mail {
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "nothing to set yet")]
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
