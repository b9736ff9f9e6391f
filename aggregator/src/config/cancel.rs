//! When jobs whose GPUs idle are cancelled.

use serde::Deserialize;
use steward_common::config::ConfigError;

/// When jobs whose GPUs idle are cancelled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Cancel {}

impl Cancel {
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "nothing to set yet")]
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
