//! Samples in the formats that Prometheus understands: two of them by prometheus-client, which knows
//! them and their escaping.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_protobuf, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use steward_common::exposition::CONTENT_TYPE;
use steward_common::metric::{JOB_LABEL, Kind, NODE_LABELS};

use crate::sample::{Point, Samples};

/// The formats that Prometheus understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0 text.
    OpenMetrics,
    /// Delimited protobuf: what a Pushgateway is given.
    Protobuf,
}

impl Format {
    /// Its media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format that a client's `Accept` header likes best; text if it does not say.
    #[must_use]
    pub fn negotiate(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for choice in accept.split(',') {
            let mut parts = choice.split(';').map(str::trim);
            let format = match parts.next() {
                Some("application/openmetrics-text") => Self::OpenMetrics,
                Some("application/vnd.google.protobuf") => Self::Protobuf,
                Some("text/plain") => Self::Text,
                _ => continue,
            };
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok()).unwrap_or(1.0);
            // The first of equals, as the client wrote it.
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }
}

/// Writes the samples of several nodes, each metric once with the points of all of them.
///
/// # Errors
/// If prometheus-client refuses a metric.
pub fn encode(samples: Vec<Arc<Samples>>, format: Format) -> Result<Vec<u8>, EncodeError> {
    if format == Format::Text {
        return Ok(super::text::write(&samples)?.into_bytes());
    }
    let series: usize = samples.iter().map(|one| one.series()).sum();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(samples)));
    match format {
        Format::Protobuf => prometheus_protobuf::encode_to_vec(&registry)
            .map_err(|error| EncodeError(error.to_string())),
        Format::OpenMetrics | Format::Text => {
            let mut out = String::with_capacity(series * super::text::LINE);
            text::encode(&mut out, &registry)?;
            Ok(out.into_bytes())
        }
    }
}

/// A metric that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write metrics: {0}")]
pub struct EncodeError(String);

impl From<fmt::Error> for EncodeError {
    fn from(error: fmt::Error) -> Self {
        Self(error.to_string())
    }
}

/// Samples as prometheus-client sees them. Labels are put together a series at a time: a copy of
/// all would be larger than all else that the agent holds.
#[derive(Debug)]
struct Page(Vec<Arc<Samples>>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for parts in super::text::families(&self.0).values() {
            let Some((_, first)) = parts.first() else { continue };
            // prometheus-client writes the suffix of a counter itself.
            let (name, kind) = match first.def.kind {
                Kind::Counter => (first.def.name.trim_end_matches("_total"), MetricType::Counter),
                Kind::Gauge => (first.def.name, MetricType::Gauge),
            };
            let mut metric = encoder.encode_descriptor(name, first.def.help, None, kind)?;
            for (node, family) in parts {
                for point in &family.points {
                    let labels = labels(node, point);
                    let mut one = metric.encode_family(&labels)?;
                    match first.def.kind {
                        Kind::Counter => {
                            one.encode_counter::<[(&str, &str); 0], _, f64>(&point.value, None)?
                        }
                        Kind::Gauge => one.encode_gauge(&point.value)?,
                    }
                }
            }
        }
        Ok(())
    }
}

fn labels(node: &Samples, point: &Point) -> Vec<(&'static str, String)> {
    let [cluster, instance] = NODE_LABELS;
    let node = [(cluster, node.cluster.to_string()), (instance, node.node.to_string())];
    let job = point.job.map(|job| (JOB_LABEL, job.to_string()));
    node.into_iter().chain(job).chain(point.labels.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gets_the_format_it_likes_best() {
        // What Prometheus 2.42 and 3.5 and curl send.
        for (accept, format) in [
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.2",
                Format::Protobuf,
            ),
            ("*/*", Format::Text),
            ("", Format::Text),
            ("text/plain;q=1,application/openmetrics-text;q=0.3", Format::Text),
            ("text/html;q=high", Format::Text),
        ] {
            assert_eq!(Format::negotiate(accept), format, "{accept}");
        }
    }
}
