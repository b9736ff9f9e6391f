//! The files of `dashboards/`.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::prometheus;

/// One dashboard file.
#[derive(Debug)]
pub struct Dashboard {
    /// Its name.
    pub file: String,
    /// What it holds.
    pub json: Value,
}

/// One question to Prometheus, variables not yet filled in.
#[derive(Debug)]
pub struct Query {
    /// File and panel or variable, for messages.
    pub place: String,
    /// In PromQL.
    pub text: String,
    /// How its series are called.
    pub legend: String,
}

/// All of them.
///
/// # Panics
/// If they cannot be read.
pub fn dashboards() -> Vec<Dashboard> {
    let dir = crate::directory().join("../dashboards");
    let mut paths: Vec<_> = std::fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        Dashboard { file, json }
    };
    let found: Vec<_> = paths.iter().map(read).collect();
    let files: Vec<_> = found.iter().map(|dashboard| dashboard.file.as_str()).collect();
    assert!(
        ["cluster.json", "job.json", "node.json"].iter().all(|name| files.contains(name)),
        "found {files:?}"
    );
    found
}

/// Waits until Prometheus has a series for each of these questions, which come with their places.
///
/// # Panics
/// If one is refused, or has none within a minute.
pub fn must_answer(url: &str, mut pending: Vec<(String, String)>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !pending.is_empty() && Instant::now() < deadline {
        pending.retain(|(place, text)| {
            let found =
                prometheus::query_at(url, text).unwrap_or_else(|error| panic!("{place}: {error}"));
            !found.iter().any(|series| series.value.1.parse().is_ok_and(f64::is_finite))
        });
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(pending.is_empty(), "no series: {pending:#?}");
}

/// The items of a list; none if it is no list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; empty if it is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Dashboard {
    /// Its id in addresses.
    pub fn uid(&self) -> &str {
        text(&self.json["uid"])
    }

    /// All panels, those inside collapsed rows included.
    pub fn panels(&self) -> Vec<&Value> {
        let outer = list(&self.json["panels"]).iter();
        outer.flat_map(|panel| std::iter::once(panel).chain(list(&panel["panels"]))).collect()
    }

    /// The names of its variables.
    pub fn variables(&self) -> Vec<&str> {
        list(&self.json["templating"]["list"]).iter().map(|v| text(&v["name"])).collect()
    }

    /// A panel, for messages.
    pub fn place(&self, panel: &Value) -> String {
        format!("{}: {:?}", self.file, text(&panel["title"]))
    }

    /// All that it asks.
    ///
    /// # Panics
    /// If a variable shows another query than it has.
    pub fn queries(&self) -> Vec<Query> {
        let variables = list(&self.json["templating"]["list"]).iter();
        let of_variables =
            variables.filter(|variable| variable["type"] == "query").map(|variable| {
                let place = format!("{}: ${}", self.file, text(&variable["name"]));
                let query = text(&variable["query"]["query"]);
                assert_eq!(variable["definition"], query, "{place} shows another query");
                Query { place, text: as_promql(query), legend: String::new() }
            });
        let of_panels = self.panels().into_iter().flat_map(|panel| {
            list(&panel["targets"]).iter().map(|target| Query {
                place: format!("{} {}", self.place(panel), text(&target["refId"])),
                text: text(&target["expr"]).to_owned(),
                legend: text(&target["legendFormat"]).to_owned(),
            })
        });
        of_variables.chain(of_panels).collect()
    }
}

/// Grafana's `label_values(series, label)` as the aggregation that it stands for.
fn as_promql(query: &str) -> String {
    query
        .strip_prefix("label_values(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|inside| inside.rsplit_once(','))
        .map(|(series, label)| format!("group by ({}) ({series})", label.trim()))
        .unwrap_or_else(|| panic!("not label_values(series, label): {query}"))
}

/// `text` with `$name`, `${name}` and `${name:format}` replaced; an unknown name is an error.
///
/// # Errors
/// The name that is not known.
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut pieces = text.split('$');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = if let Some(braced) = piece.strip_prefix('{') {
            let (inside, rest) = braced.split_once('}').ok_or("a ${ without its }")?;
            (inside.split(':').next().unwrap_or(inside), rest)
        } else {
            let end = piece.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            piece.split_at(end.unwrap_or(piece.len()))
        };
        let found = match name {
            "__rate_interval" => Some("1m".to_owned()),
            "__range" => Some("5m".to_owned()),
            name => value(name),
        };
        filled.push_str(&found.ok_or_else(|| format!("${name} is not defined"))?);
        filled.push_str(rest);
    }
    Ok(filled)
}
