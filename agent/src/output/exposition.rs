//! Samples in the formats that Prometheus understands: two of them by prometheus-client, which knows
//! them and their escaping.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_protobuf, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use steward_common::metric::{JOB_LABEL, Kind, MetricDef, NODE_LABELS};

use crate::sample::{Point, Samples};

/// The formats that Prometheus understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0 text.
    OpenMetrics,
    /// Delimited protobuf.
    Protobuf,
}

impl Format {
    /// Its media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
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
pub fn encode(samples: &[&Samples], format: Format) -> Result<Vec<u8>, EncodeError> {
    if format == Format::Text {
        return Ok(super::text::write(samples)?.into_bytes());
    }
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Merged::new(samples)));
    match format {
        Format::Protobuf => prometheus_protobuf::encode_to_vec(&registry)
            .map_err(|error| EncodeError(error.to_string())),
        Format::OpenMetrics | Format::Text => {
            let mut out = String::new();
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

/// One series: all its labels and its value.
type Series = (Vec<(&'static str, String)>, f64);

#[derive(Debug)]
struct Merged {
    families: BTreeMap<&'static str, (&'static MetricDef, Vec<Series>)>,
}

impl Merged {
    fn new(samples: &[&Samples]) -> Self {
        let mut families: BTreeMap<_, (_, Vec<Series>)> = BTreeMap::new();
        for one in samples {
            let [cluster, instance] = NODE_LABELS;
            let node = [(cluster, one.cluster.to_string()), (instance, one.node.to_string())];
            for family in one.families() {
                let entry = families.entry(family.def.name).or_insert((family.def, Vec::new()));
                entry.1.extend(family.points.iter().map(|point| series(&node, point)));
            }
        }
        Self { families }
    }
}

fn series(node: &[(&'static str, String)], point: &Point) -> Series {
    let job = point.job.map(|job| (JOB_LABEL, job.to_string()));
    let labels = node.iter().cloned().chain(job).chain(point.labels.iter().cloned());
    (labels.collect(), point.value)
}

impl Collector for Merged {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for (def, series) in self.families.values() {
            // prometheus-client writes the suffix of a counter itself.
            let (name, kind) = match def.kind {
                Kind::Counter => (def.name.trim_end_matches("_total"), MetricType::Counter),
                Kind::Gauge => (def.name, MetricType::Gauge),
            };
            let mut metric = encoder.encode_descriptor(name, def.help, None, kind)?;
            for (labels, value) in series {
                let mut one = metric.encode_family(labels)?;
                match def.kind {
                    Kind::Counter => {
                        one.encode_counter::<[(&str, &str); 0], _, f64>(value, None)?
                    }
                    Kind::Gauge => one.encode_gauge(value)?,
                }
            }
        }
        Ok(())
    }
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
