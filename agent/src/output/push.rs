//! The Pushgateway: two groups a node, replaced whole, removed when there is nothing to say.
//!
//! `job="jobs_exporter"` holds the node's jobs and goes with the last of them; `job="steward_agent"`
//! is the heartbeat. Both go when the agent ends. A PUT replaces a group at once, so that readers
//! never see a gap.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Url, header};
use steward_common::causes::with_causes;
use steward_common::id::{ClusterName, NodeName};
use steward_common::metric::PUSH_GROUPS;

use super::exposition::{Format, encode};
use crate::config::Push;
use crate::publish::{Latest, Pushes, Snapshot};
use crate::sample::Samples;
use crate::shutdown::Shutdown;

/// The group of a node's jobs.
const JOBS: &str = PUSH_GROUPS[0];
/// The group of the agent itself.
const OWN: &str = PUSH_GROUPS[1];

/// While the gateway is away it is asked no less often than this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Whether the gateway holds a node's jobs group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// A predecessor that was killed may have left one.
    Unknown,
    Yes,
    No,
}

/// Whose groups.
type Key = (ClusterName, NodeName);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    Refused,
    /// Nobody answered.
    None,
}

/// Whether the gateway was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Yes,
    No,
}

/// Pushes every snapshot until the agent ends.
#[derive(Debug)]
pub struct Pusher {
    client: Client,
    gateway: Url,
    interval: Duration,
    spread: f64,
    pushes: Arc<Pushes>,
    held: BTreeMap<Key, Held>,
    failures: u32,
    retry_at: Option<Instant>,
    /// The scan that was pushed last.
    pushed: Option<Instant>,
}

/// A pusher that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("push.gateway: {0}")]
pub struct BadGateway(String);

impl Pusher {
    /// Makes a client for the configured gateway; `None` if there is none.
    ///
    /// # Errors
    /// If the address is no address or TLS cannot be set up.
    pub fn new(
        push: &Push,
        interval: Duration,
        pushes: Arc<Pushes>,
    ) -> Result<Option<Self>, BadGateway> {
        let Some(gateway) = &push.gateway else {
            return Ok(None);
        };
        let gateway =
            Url::parse(gateway).map_err(|error| BadGateway(format!("{gateway}: {error}")))?;
        let client = Client::builder()
            .timeout(push.timeout.0)
            // A login page that answers 200 has not taken anything.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("steward-agent/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| BadGateway(error.to_string()))?;
        Ok(Some(Self {
            client,
            gateway,
            interval,
            spread: push.spread,
            pushes,
            held: BTreeMap::new(),
            failures: 0,
            retry_at: None,
            pushed: None,
        }))
    }

    /// Pushes each new snapshot until `shutdown`, then removes what it pushed.
    pub async fn run(mut self, mut latest: Latest, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => break,
                changed = latest.changed() => if changed.is_err() { break },
            }
            let snapshot = latest.borrow_and_update().clone();
            let Some(snapshot) = snapshot else { continue };
            // A look between scans is for those who ask; the gateway gets scans.
            if self.pushed == Some(snapshot.at) {
                continue;
            }
            self.pushed = Some(snapshot.at);
            if self.retry_at.is_some_and(|at| Instant::now() < at) {
                continue;
            }
            // A request on its way is waited for, or it might arrive after the removal below.
            if self.push(&snapshot, &shutdown).await == Reached::No {
                self.back_off();
            }
        }
        self.remove_all().await;
    }

    async fn push(&mut self, snapshot: &Snapshot, shutdown: &Shutdown) -> Reached {
        // A node that is reported no more, such as the host name before the scopes were seen.
        let gone: Vec<Key> = self
            .held
            .keys()
            .filter(|key| !snapshot.nodes.iter().any(|node| node.key() == **key))
            .cloned()
            .collect();
        for key in gone {
            match (self.delete(JOBS, &key).await, self.delete(OWN, &key).await) {
                (Answer::Taken, Answer::Taken) => {
                    self.held.remove(&key);
                }
                (Answer::None, _) | (_, Answer::None) => return Reached::No,
                _ => {}
            }
        }

        let mut nodes: Vec<_> = snapshot.nodes.iter().collect();
        nodes.sort_by_key(|node| offset(&node.own.node, self.interval, self.spread));
        for node in nodes {
            let key = node.key();
            let due = snapshot.at + offset(&key.1, self.interval, self.spread);
            tokio::select! {
                () = shutdown.wait() => return Reached::Yes,
                () = tokio::time::sleep_until(due.into()) => {}
            }
            // What is not known to be gone is removed at the end: a PUT without an answer may have
            // arrived all the same.
            let held = self.held.insert(key.clone(), Held::Unknown).unwrap_or(Held::Unknown);
            if self.put(OWN, &key, &node.own).await == Answer::None {
                return Reached::No;
            }
            let (answer, now_held) = match &node.jobs {
                Some(jobs) => (self.put(JOBS, &key, jobs).await, Held::Yes),
                None if held == Held::No => (Answer::Taken, Held::No),
                None => (self.delete(JOBS, &key).await, Held::No),
            };
            match answer {
                Answer::Taken => {
                    self.held.insert(key, now_held);
                }
                // The gateway does not like this node's; the other nodes' may be fine.
                Answer::Refused => {}
                Answer::None => return Reached::No,
            }
        }
        Reached::Yes
    }

    /// On the way out: one try for each group, with the usual timeout.
    async fn remove_all(mut self) {
        let held: Vec<_> = self.held.clone().into_iter().collect();
        for (key, held) in held {
            let jobs = if held == Held::No { Answer::Taken } else { self.delete(JOBS, &key).await };
            if jobs != Answer::Taken || self.delete(OWN, &key).await != Answer::Taken {
                tracing::warn!(node = %key.1, gateway = %self.gateway,
                    "could not remove this node's groups from the Pushgateway: delete them by hand, or start an agent there again");
                // A gateway that is away would cost a timeout for each of the others.
                return;
            }
        }
    }

    async fn put(&mut self, group: &str, key: &Key, samples: &Arc<Samples>) -> Answer {
        match encode(vec![Arc::clone(samples)], Format::Protobuf) {
            Ok(body) => self.request(Method::PUT, group, key, body).await,
            Err(error) => {
                tracing::error!(%error, "nothing pushed");
                Answer::Refused
            }
        }
    }

    async fn delete(&mut self, group: &str, key: &Key) -> Answer {
        self.request(Method::DELETE, group, key, Vec::new()).await
    }

    async fn request(&mut self, method: Method, group: &str, key: &Key, body: Vec<u8>) -> Answer {
        let Some(url) = group_url(&self.gateway, group, key) else { return Answer::Refused };
        let sent = self
            .client
            .request(method, url)
            .header(header::CONTENT_TYPE, Format::Protobuf.content_type())
            .body(body)
            .send()
            .await;
        let (answer, why) = match sent {
            Ok(response) if response.status().is_success() => (Answer::Taken, String::new()),
            Ok(response) => {
                let status = response.status();
                // The status says enough if the rest does not come.
                let text = response.text().await.unwrap_or_default();
                let text: String = text.trim().chars().take(200).collect();
                (Answer::Refused, format!("{status}: {text}"))
            }
            Err(error) => (Answer::None, with_causes(&error)),
        };
        self.note(answer, &why);
        answer
    }

    /// Counts it, and logs when the gateway begins and ends to fail.
    fn note(&mut self, answer: Answer, why: &str) {
        if answer == Answer::Taken {
            self.pushes.ok.fetch_add(1, Ordering::Relaxed);
            if self.failures > 0 {
                tracing::info!(gateway = %self.gateway, "the Pushgateway takes pushes again");
            }
            self.failures = 0;
            return;
        }
        self.pushes.failed.fetch_add(1, Ordering::Relaxed);
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            tracing::warn!(gateway = %self.gateway, why, "cannot push; trying again until it works");
        }
    }

    fn back_off(&mut self) {
        let wait = back_off(self.failures, self.interval, random());
        self.retry_at = Some(Instant::now() + wait);
    }
}

/// The gateway's address of one group.
fn group_url(gateway: &Url, group: &str, key: &Key) -> Option<Url> {
    let mut url = gateway.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend([
        "metrics",
        "job",
        group,
        "cluster",
        key.0.as_str(),
        "instance",
        key.1.as_str(),
    ]);
    Some(url)
}

/// Twice as long after each failure, from one interval up, and never all nodes at once.
fn back_off(failures: u32, interval: Duration, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = interval.saturating_mul(1 << doublings).min(LONGEST_WAIT.max(interval));
    // The lower half is certain, the upper half is chance.
    whole.mul_f64(0.5 + random / 2.0)
}

/// From 0 to 1; the standard library's hash keys are random.
fn random() -> f64 {
    share(RandomState::new().build_hasher().finish())
}

/// A node's place in the interval, the same at every push.
fn offset(node: &NodeName, interval: Duration, spread: f64) -> Duration {
    // FNV-1a: short, and the same on every machine and in every release.
    let hash = node.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Names that differ in their last digit differ in FNV's low bits: carry them up.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    interval.mul_f64(spread * share(mixed ^ (mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)))
}

fn share(hash: u64) -> f64 {
    f64::from(u32::try_from(hash >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_job_cluster_and_instance_and_keeps_a_prefix() {
        let key = ("c1".parse().unwrap(), "n1".parse().unwrap());
        for (gateway, expected) in [
            ("http://gw:9091", "http://gw:9091/metrics/job/jobs_exporter/cluster/c1/instance/n1"),
            ("http://gw/push/", "http://gw/push/metrics/job/jobs_exporter/cluster/c1/instance/n1"),
        ] {
            let url = group_url(&gateway.parse().unwrap(), JOBS, &key).unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn waits_double_up_to_a_limit_and_are_never_all_alike() {
        let interval = Duration::from_secs(1);
        assert_eq!(back_off(1, interval, 1.0), Duration::from_secs(1));
        assert_eq!(back_off(1, interval, 0.0), Duration::from_millis(500));
        assert_eq!(back_off(4, interval, 1.0), Duration::from_secs(8));
        assert_eq!(back_off(u32::MAX, interval, 1.0), LONGEST_WAIT);
        // A long interval is never asked more often than it would be anyway.
        let long = Duration::from_secs(120);
        assert_eq!(back_off(9, long, 1.0), long);
    }

    #[test]
    fn nodes_are_spread_over_their_share_of_the_interval() {
        let interval = Duration::from_secs(16);
        let offsets: Vec<_> = (0..1000)
            .map(|n| offset(&format!("node{n:04}").parse().unwrap(), interval, 0.5))
            .collect();
        assert!(offsets.iter().all(|offset| *offset <= Duration::from_secs(8)));
        for second in 0..8 {
            let within = offsets.iter().filter(|offset| offset.as_secs() == second).count();
            // 125 expected in each of eight seconds.
            assert!((60..=190).contains(&within), "{within} nodes in second {second}");
        }
        let node = "n1".parse().unwrap();
        assert_eq!(offset(&node, interval, 0.5), offset(&node, interval, 0.5));
        assert_eq!(offset(&node, interval, 0.0), Duration::ZERO);
    }
}
