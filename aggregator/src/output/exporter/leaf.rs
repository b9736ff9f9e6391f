//! The lines of one cluster, by metric: those of several clusters are put together under one
//! heading.

use std::collections::BTreeMap;
use std::fmt;

use steward_common::exposition::{header, line};
use steward_common::metric::MetricDef;

/// A number that stands for a count.
#[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
#[must_use]
pub fn count(value: u64) -> f64 {
    value as f64
}

/// 1 or 0.
#[must_use]
pub fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Slurm's microseconds.
#[must_use]
pub fn micro(value: u64) -> f64 {
    count(value) / 1e6
}

/// Lines of one cluster.
#[derive(Debug, Default)]
pub struct Leaf {
    lines: BTreeMap<&'static str, (&'static MetricDef, String)>,
}

impl Leaf {
    /// Adds a line.
    ///
    /// # Errors
    /// Never, while memory lasts.
    pub fn put(&mut self, def: &'static MetricDef, labels: &[&str], value: f64) -> fmt::Result {
        let (_, lines) = self.lines.entry(def.name).or_insert_with(|| (def, String::new()));
        line(lines, def, labels, value)
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.values().map(|(_, lines)| lines.len()).sum()
    }
}

/// Puts leaves together, each metric under one heading.
///
/// # Errors
/// Never, while memory lasts.
pub fn bind(leaves: &[&Leaf]) -> Result<String, fmt::Error> {
    let mut metrics: BTreeMap<&'static str, &'static MetricDef> = BTreeMap::new();
    for leaf in leaves {
        metrics.extend(leaf.lines.iter().map(|(name, (def, _))| (*name, *def)));
    }
    let size = leaves.iter().map(|leaf| leaf.len()).sum::<usize>() + metrics.len() * 200;
    let mut text = String::with_capacity(size);
    for (name, def) in metrics {
        header(&mut text, def)?;
        for leaf in leaves {
            if let Some((_, lines)) = leaf.lines.get(name) {
                text.push_str(lines);
            }
        }
    }
    Ok(text)
}
