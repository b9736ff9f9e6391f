//! What a Pushgateway holds.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::{Client, Response, Url, header};
use steward_common::causes::with_causes;
use steward_common::exposition::read_labels;

use crate::sweep::{Group, Groups};

/// The metric that a gateway adds to each group.
const PUSH_TIME: &str = "push_time_seconds{";

/// A line that is longer is none of the gateway's own.
const LONGEST_LINE: usize = 1 << 20;

/// A gateway that did not say what it holds.
#[derive(Debug, thiserror::Error)]
#[error("{gateway}: cannot list the Pushgateway's groups: {why}")]
pub struct ListError {
    gateway: String,
    why: String,
}

/// Every group of the gateway. Its page is as large as all jobs of all nodes together, so it is
/// read as it comes and not kept; the gateway's API would give the same as one piece of JSON.
///
/// # Errors
/// If it does not answer.
pub async fn groups(client: &Client, gateway: &Url) -> Result<Groups, ListError> {
    let failed = |why: String| ListError { gateway: gateway.to_string(), why };
    let mut url = gateway.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("metrics");
    }
    let sent = client.get(url).header(header::ACCEPT, "text/plain;version=0.0.4").send().await;
    let mut response = sent.map_err(|error| failed(with_causes(&error)))?;
    if !response.status().is_success() {
        return Err(failed(response.status().to_string()));
    }
    let now = date(&response);
    let mut lines = Lines::default();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(with_causes(&error)))? {
        lines.feed(&chunk);
    }
    Ok(Groups { now, all: lines.groups })
}

fn date(response: &Response) -> Option<Timestamp> {
    let text = response.headers().get(header::DATE)?.to_str().ok()?;
    Some(rfc2822::parse(text).ok()?.timestamp())
}

/// Lines put together from pieces.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
    groups: Vec<Group>,
}

impl Lines {
    fn feed(&mut self, chunk: &[u8]) {
        let mut pieces = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if self.begun.len() < LONGEST_LINE {
                self.begun.extend_from_slice(piece);
            }
            if pieces.peek().is_some() {
                self.groups.extend(str::from_utf8(&self.begun).ok().and_then(group));
                self.begun.clear();
            }
        }
    }
}

/// The group that a line tells of; `None` if it tells of something else.
fn group(line: &str) -> Option<Group> {
    let (labels, value) = read_labels(line.strip_prefix(PUSH_TIME)?)?;
    let pushed = value.trim().parse().ok()?;
    let job = labels.iter().find(|(name, _)| name == "job")?.1.clone();
    let others = labels.into_iter().filter(|(name, value)| {
        // The gateway shows an empty instance for a group that has none.
        name != "job" && !(name == "instance" && value.is_empty())
    });
    Some(Group { job, labels: others.collect(), pushed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP push_time_seconds Last Unix time when changing this group in the Pushgateway succeeded.
# TYPE push_time_seconds gauge
push_time_seconds{cluster="c1",instance="n1",job="jobs_exporter"} 1.7948115751234567e+09
push_time_seconds{instance="",job="backup \"é\""} 0
push_failure_time_seconds{instance="",job="backup"} 5
jobs_rss{cluster="c1",instance="n1",job="jobs_exporter",slurm_job="7"} 1
"#;

    #[test]
    fn groups_are_read_whatever_the_pieces() {
        let text = |text: &str| text.to_owned();
        let expected = [
            Group {
                job: text("jobs_exporter"),
                labels: vec![(text("cluster"), text("c1")), (text("instance"), text("n1"))],
                pushed: 1_794_811_575.123_456_7,
            },
            Group { job: text("backup \"é\""), labels: Vec::new(), pushed: 0.0 },
        ];
        for size in [1, 7, 64, 4096] {
            let mut lines = Lines::default();
            PAGE.as_bytes().chunks(size).for_each(|chunk| lines.feed(chunk));
            assert_eq!(lines.groups, expected, "pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut lines = Lines::default();
        for _ in 0..64 {
            lines.feed(&[b'x'; 65_536]);
        }
        assert!(lines.begun.len() <= LONGEST_LINE + 65_536);
        lines.feed(b"\npush_time_seconds{job=\"a\"} 1\n");
        assert_eq!(lines.groups.len(), 1);
    }
}
