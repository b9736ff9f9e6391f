//! Prometheus text 0.0.4, a line at a time.

use std::fmt::{self, Write};

use crate::metric::{Kind, MetricDef};

/// Its media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes what stands above the lines of a metric.
///
/// # Errors
/// Never, while memory lasts.
pub fn header(out: &mut String, def: &MetricDef) -> fmt::Result {
    let kind = match def.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    write!(out, "# HELP {} ", def.name)?;
    escape(out, def.help, false);
    writeln!(out, "\n# TYPE {} {kind}", def.name)
}

/// Writes one label, after a brace or a comma.
#[inline]
pub fn label(out: &mut String, before: char, name: &str, value: &str) {
    out.push(before);
    out.push_str(name);
    out.push_str("=\"");
    escape(out, value, true);
    out.push('"');
}

/// Writes one line: a metric whose labels are all its own.
///
/// # Errors
/// Never, while memory lasts.
pub fn line(out: &mut String, def: &MetricDef, values: &[&str], value: f64) -> fmt::Result {
    debug_assert_eq!(def.labels.len(), values.len(), "{}: one value a label", def.name);
    out.push_str(def.name);
    let mut before = '{';
    for (name, value) in def.labels.iter().zip(values) {
        label(out, before, name, value);
        before = ',';
    }
    if before == ',' {
        out.push('}');
    }
    writeln!(out, " {}", Number(value))
}

#[inline]
fn escape(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

/// A number as Prometheus reads it.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_infinite() {
            f.write_str(if self.0 > 0.0 { "+Inf" } else { "-Inf" })
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Reads the labels of a line, from after the opening brace; gives them and what follows the
/// closing one. `None` if that is no list of labels.
#[must_use]
pub fn read_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
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
        labels.push((name.to_owned(), value));
        rest = after.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;

    #[test]
    fn a_hostile_value_stays_inside_its_quotes_and_reads_as_it_was() {
        let hostile = "a\"b\\c\nd},e=\"f";
        let mut out = String::new();
        line(&mut out, &metric::CENTRE_TASK_RUNNING, &[hostile], 1.0).unwrap();
        assert_eq!(out, "steward_task_running{task=\"a\\\"b\\\\c\\nd},e=\\\"f\"} 1\n");
        let (labels, rest) = read_labels(out.split_once('{').unwrap().1).unwrap();
        assert_eq!(labels, [("task".to_owned(), hostile.to_owned())]);
        assert_eq!(rest, " 1\n");
    }

    #[test]
    fn a_metric_without_labels_has_no_braces() {
        let mut out = String::new();
        header(&mut out, &metric::CENTRE_LEADER).unwrap();
        line(&mut out, &metric::CENTRE_LEADER, &[], f64::INFINITY).unwrap();
        let mut lines = out.lines();
        assert!(lines.next().unwrap().starts_with("# HELP steward_leader "));
        assert_eq!(lines.next(), Some("# TYPE steward_leader gauge"));
        assert_eq!(lines.next(), Some("steward_leader +Inf"));
    }

    #[test]
    fn what_is_no_list_of_labels_is_none() {
        for bad in ["", "a", "a=\"b", "a=\"b\\", "a=b}"] {
            assert_eq!(read_labels(bad), None, "{bad:?}");
        }
        assert_eq!(read_labels("}"), Some((Vec::new(), "")));
    }
}
