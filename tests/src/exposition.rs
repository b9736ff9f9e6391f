//! Reading what was exposed: Prometheus text 0.0.4.

use std::collections::BTreeMap;

/// One line of an exposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// A whole exposition.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    /// Its samples in order.
    pub samples: Vec<Sample>,
}

impl Exposition {
    /// Reads `text`.
    ///
    /// # Panics
    /// If a line is no sample.
    pub fn parse(text: &str) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| parse_line(line).unwrap_or_else(|| panic!("not a sample: {line}")))
            .collect();
        Self { samples }
    }

    /// The samples of that name that have at least these labels.
    pub fn all(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&Sample> {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .filter(|sample| {
                labels
                    .iter()
                    .all(|(key, value)| sample.labels.get(*key).is_some_and(|v| v == value))
            })
            .collect()
    }

    /// The value of the one sample with that name and these labels; `None` if there is none.
    ///
    /// # Panics
    /// If there are several.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let found = self.all(name, labels);
        assert!(found.len() <= 1, "{name}{labels:?} is not unique: {found:?}");
        found.first().map(|sample| sample.value)
    }

    /// The value for a job on whatever node it runs.
    ///
    /// # Panics
    /// If it runs on several.
    pub fn job(&self, name: &str, job: &str) -> Option<f64> {
        self.value(name, &[("slurm_job", job)])
    }

    /// The bytes that a job passed to write calls.
    pub fn written(&self, job: &str) -> Option<f64> {
        self.value("jobs_io_requested_bytes_total", &[("slurm_job", job), ("direction", "write")])
    }

    /// Every sample of a job.
    pub fn of_job(&self, job: &str) -> Vec<&Sample> {
        self.samples
            .iter()
            .filter(|sample| sample.labels.get("slurm_job").is_some_and(|id| id == job))
            .collect()
    }
}

fn parse_line(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?.replace("Inf", "inf").parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

fn parse_labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (key, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next()? {
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (at, '"') => break at,
                (_, other) => value.push(other),
            }
        };
        labels.insert(key.to_owned(), value);
        rest = after.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_commas_inside_values_are_read() {
        let text = "# HELP a b\na{x=\"1,}\\\"\\\\\\n\",y=\"2\"} 3.5\nb 4\n";
        let found = Exposition::parse(text);
        assert_eq!(found.value("a", &[("y", "2"), ("x", "1,}\"\\\n")]), Some(3.5));
        assert_eq!(found.value("b", &[]), Some(4.0));
        assert_eq!(found.value("c", &[]), None);
    }
}
