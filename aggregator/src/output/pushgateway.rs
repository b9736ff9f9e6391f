//! Groups deleted from a Pushgateway.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use reqwest::{Client, StatusCode, Url};
use steward_common::causes::with_causes;

use crate::sweep::Group;

/// A group that is still there.
#[derive(Debug, thiserror::Error)]
#[error("{url}: cannot delete the group: {why}")]
pub struct DeleteError {
    url: String,
    why: String,
    status: Option<StatusCode>,
}

impl DeleteError {
    /// Whether the gateway answered, and may treat another group better.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.status.is_some()
    }
}

/// Deletes the group with exactly this key.
///
/// # Errors
/// If the gateway does not answer or does not do it.
pub async fn delete(client: &Client, gateway: &Url, group: &Group) -> Result<(), DeleteError> {
    let url = url(gateway, group);
    let failed = |why, status| DeleteError { url: url.to_string(), why, status };
    match client.delete(url.clone()).send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(failed(answer.status().to_string(), Some(answer.status()))),
        Err(error) => Err(failed(with_causes(&error), None)),
    }
}

/// The gateway's address of a group.
fn url(gateway: &Url, group: &Group) -> Url {
    let mut url = gateway.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("metrics");
        let labels = group.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in std::iter::once(("job", group.job.as_str())).chain(labels) {
            if is_plain(value) {
                path.extend([name, value]);
            } else {
                // An empty value has a sign of its own.
                let encoded = URL_SAFE.encode(value);
                let encoded = if encoded.is_empty() { "=" } else { &encoded };
                path.extend([&format!("{name}@base64"), encoded]);
            }
        }
    }
    url
}

/// Whether a path may hold it as it is: no slash, nothing that a proxy might change, and not the
/// dots that mean a directory.
fn is_plain(value: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    value.chars().all(usual) && value.chars().any(|c| c != '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_its_whole_key_and_odd_values_are_encoded() {
        let gateway = "http://gw/push/".parse().unwrap();
        for (instance, path) in [
            ("n1", "instance/n1"),
            ("n-1.example_org", "instance/n-1.example_org"),
            ("a/b", "instance@base64/YS9i"),
            ("..", "instance@base64/Li4="),
            ("", "instance@base64/="),
            ("a b?", "instance@base64/YSBiPw=="),
        ] {
            let group = Group {
                job: "jobs_exporter".to_owned(),
                labels: vec![
                    ("cluster".to_owned(), "c1".to_owned()),
                    ("instance".to_owned(), instance.to_owned()),
                ],
                pushed: 0.0,
            };
            assert_eq!(
                url(&gateway, &group).as_str(),
                format!("http://gw/push/metrics/job/jobs_exporter/cluster/c1/{path}")
            );
        }
    }
}
