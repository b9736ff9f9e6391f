//! Groups of agents that fell silent, taken off the Pushgateway. It would show what they pushed
//! last for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, Url};
use steward_common::metric::PUSH_GROUPS;

use crate::config::Pushgateway;
use crate::output::pushgateway::delete;
use crate::shutdown::Shutdown;
use crate::source::pushgateway::groups;

/// A group of a Pushgateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The value of the label `job`, which every group has.
    pub job: String,
    /// The other labels that make its key, in order of their names.
    pub labels: Vec<(String, String)>,
    /// Unix time of the last push, by the gateway's clock.
    pub pushed: f64,
}

/// The groups at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The gateway's own time where it tells: its clock stamps the pushes.
    pub now: Option<Timestamp>,
    /// Every group, whoever pushed it.
    pub all: Vec<Group>,
}

impl Group {
    /// Whether an agent pushed it, and not for `after` or longer.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp, after: Duration) -> bool {
        let age = now.as_duration().as_secs_f64() - self.pushed;
        PUSH_GROUPS.contains(&self.job.as_str()) && age >= after.as_secs_f64()
    }
}

/// Takes stale groups off one gateway.
#[derive(Clone, Debug)]
pub struct Sweeper {
    client: Client,
    gateway: Url,
    after: Duration,
}

impl Sweeper {
    /// For the configured gateway; `None` if there is none.
    ///
    /// # Errors
    /// If its address is none or TLS cannot be set up.
    pub fn new(config: &Pushgateway) -> anyhow::Result<Option<Self>> {
        let Some(url) = &config.url else { return Ok(None) };
        let client = Client::builder()
            .timeout(config.timeout.0)
            // A login page that answers 200 has deleted nothing.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Some(Self { client, gateway: Url::parse(url)?, after: config.stale_after.0 }))
    }

    /// Deletes the groups that are stale now, and counts each in `deleted`. An agent that comes
    /// back in this very moment pushes again an interval later.
    ///
    /// # Errors
    /// If the gateway cannot be asked, or did not delete one of them; the others are deleted all
    /// the same unless it does not answer at all.
    pub async fn run(&self, deleted: &AtomicU64, shutdown: &Shutdown) -> anyhow::Result<()> {
        let found = groups(&self.client, &self.gateway).await?;
        let now = found.now.unwrap_or_else(Timestamp::now);
        let mut first_refusal = None;
        for group in found.all.iter().filter(|group| group.is_stale(now, self.after)) {
            if shutdown.is_due() {
                break;
            }
            match delete(&self.client, &self.gateway, group).await {
                Ok(()) => {
                    deleted.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(job = group.job, labels = ?group.labels, "deleted a stale group from the Pushgateway");
                }
                Err(error) if error.is_refusal() => {
                    first_refusal.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        first_refusal.map_or(Ok(()), |error| Err(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_agents_that_are_old_enough_are_stale() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (job, pushed, stale) in [
            ("jobs_exporter", 700.0, true),
            ("steward_agent", 700.0, true),
            ("steward_agent", 700.5, false),
            ("steward_agent", 1_100.0, false),
            ("backup", 0.0, false),
            ("jobs_exporter2", 0.0, false),
        ] {
            let group = Group { job: job.to_owned(), labels: Vec::new(), pushed };
            assert_eq!(group.is_stale(now, Duration::from_secs(300)), stale, "{job} {pushed}");
        }
    }
}
