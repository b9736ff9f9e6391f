//! Other ways out than mail: an Alertmanager, a webhook.

use serde::Deserialize;
use steward_common::config::ConfigError;

/// Other ways out than mail: an Alertmanager, a webhook.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Outlets {}

impl Outlets {
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "nothing to set yet")]
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
