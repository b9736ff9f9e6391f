//! The dashboards: well-formed, true to the catalogue, and alive on a real Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use promql_parser::parser;
use serde_json::Value;
use steward_agent::config::Span;
use steward_tests::agent::{self, RunningAgent};
use steward_tests::dashboard::{Dashboard, Query, dashboards, fill, list, text};
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::{prometheus, slurm, wait};

use crate::promql::{Labels, labels, within};

/// Columns of Grafana's grid.
const COLUMNS: u64 = 24;

/// Metrics that one hierarchy does not have, with whether it is v1 that has them, and the reason.
const ONLY_ON_ONE: [(&str, bool, &str); 2] = [
    ("jobs_cpu_core_seconds_total", true, "cgroup v2 does not count CPU time by core"),
    ("jobs_stall_seconds_total", false, "cgroup v1 has no pressure stall information"),
];

/// How often the testbed's Prometheus scrapes; asking again earlier is in vain.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(2);

/// The labels of a query's result, once its variables are filled with any text.
fn labels_of_query(dashboard: &Dashboard, query: &str) -> Result<Labels, String> {
    let variables = dashboard.variables();
    let filled = fill(query, |name| variables.contains(&name).then(|| "x".to_owned()))?;
    labels(&parser::parse(&filled)?)
}

/// The names between `{{` and `}}`.
fn placeholders(legend: &str) -> Vec<String> {
    let starts = legend.split("{{").skip(1);
    starts
        .filter_map(|rest| rest.split_once("}}"))
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Calls `visit` with every value of that key, however deep.
fn each<'a>(json: &'a Value, key: &str, visit: &mut impl FnMut(&'a Value)) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| each(item, key, visit)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            if name == key {
                visit(value);
            }
            each(value, key, visit);
        }),
        _ => {}
    }
}

#[test]
fn dashboards_have_unique_ids_and_every_panel_says_what_it_shows() {
    let found = dashboards();
    let uids: BTreeSet<_> = found.iter().map(Dashboard::uid).collect();
    assert_eq!(uids.len(), found.len(), "each a uid of its own: {uids:?}");
    let mut faults = Vec::new();
    for dashboard in &found {
        assert!(!dashboard.uid().is_empty(), "{}: no uid", dashboard.file);
        assert!(dashboard.json.get("id").is_none(), "{}: id belongs to a server", dashboard.file);
        let mut ids = BTreeSet::new();
        for panel in dashboard.panels() {
            let place = dashboard.place(panel);
            let mut check = |holds: bool, what: &str| {
                if !holds {
                    faults.push(format!("{place}: {what}"));
                }
            };
            check(panel["id"].as_u64().is_some_and(|id| ids.insert(id)), "no id of its own");
            check(!text(&panel["title"]).is_empty(), "no title");
            if panel["type"] != "row" {
                check(!text(&panel["description"]).is_empty(), "no description");
                check(!list(&panel["targets"]).is_empty(), "no query");
                let unit = text(&panel["fieldConfig"]["defaults"]["unit"]);
                check(!unit.is_empty() || panel["type"] == "table", "no unit");
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn panels_lie_within_the_grid_and_do_not_overlap() {
    let mut faults = Vec::new();
    for dashboard in dashboards() {
        let mut taken: BTreeMap<(u64, u64), &str> = BTreeMap::new();
        for panel in list(&dashboard.json["panels"]) {
            let side = |name: &str| {
                let place = dashboard.place(panel);
                panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("{place}: gridPos.{name}"))
            };
            let (x, y, w, h) = (side("x"), side("y"), side("w"), side("h"));
            if w == 0 || h == 0 || x + w > COLUMNS {
                faults.push(format!("{}: outside the grid", dashboard.place(panel)));
            }
            let mut cells = (x..x + w).flat_map(|column| (y..y + h).map(move |row| (column, row)));
            let under = cells.find_map(|cell| taken.insert(cell, text(&panel["title"])));
            if let Some(other) = under {
                faults.push(format!("{}: over {other:?}", dashboard.place(panel)));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn the_data_source_is_always_the_variable() {
    for dashboard in dashboards() {
        let variable = list(&dashboard.json["templating"]["list"])
            .iter()
            .find(|variable| variable["name"] == "datasource")
            .unwrap_or_else(|| panic!("{}: no variable datasource", dashboard.file));
        assert_eq!(
            (&variable["type"], &variable["query"]),
            (&"datasource".into(), &"prometheus".into())
        );
        let expected = serde_json::json!({ "type": "prometheus", "uid": "${datasource}" });
        each(&dashboard.json, "datasource", &mut |source| {
            assert_eq!(source, &expected, "{}", dashboard.file);
        });
        let panels = dashboard.panels().into_iter().filter(|panel| panel["type"] != "row");
        let targets = panels.flat_map(|panel| {
            std::iter::once(panel).chain(list(&panel["targets"])).map(move |it| (panel, it))
        });
        for (panel, holder) in targets {
            assert_eq!(holder["datasource"], expected, "{}", dashboard.place(panel));
        }
    }
}

#[test]
fn links_lead_to_dashboards_that_exist_with_variables_that_they_have() {
    let found = dashboards();
    for dashboard in &found {
        let mut followed = 0;
        each(&dashboard.json, "url", &mut |url| {
            let url = text(url);
            let (path, arguments) = url.split_once('?').unwrap_or((url, ""));
            let target = found
                .iter()
                .find(|other| path.strip_prefix("/d/") == Some(other.uid()))
                .unwrap_or_else(|| panic!("{}: {url} leads nowhere", dashboard.file));
            for argument in arguments.split('&').filter(|argument| !argument.is_empty()) {
                let own = argument.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                let name = match own {
                    Some("__url_time_range") => continue,
                    Some(name) => name.strip_suffix(":queryparam"),
                    None => argument.strip_prefix("var-").and_then(|rest| rest.split('=').next()),
                };
                let known = name.is_some_and(|name| target.variables().contains(&name));
                assert!(
                    known,
                    "{}: {} has no variable for {argument}",
                    dashboard.file, target.file
                );
            }
            followed += usize::from(target.uid() != dashboard.uid());
        });
        assert!(followed > 0, "{}: no link to another dashboard", dashboard.file);
    }
}

#[test]
fn queries_name_only_metrics_and_labels_of_the_catalogue() {
    let mut faults = Vec::new();
    for dashboard in dashboards() {
        for query in dashboard.queries() {
            let checked = labels_of_query(&dashboard, &query.text)
                .and_then(|found| within("legend", &placeholders(&query.legend), &found));
            if let Err(fault) = checked {
                faults.push(format!("{}: {fault}\n    {}", query.place, query.text));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn tables_arrange_only_columns_that_their_queries_give() {
    let mut faults = Vec::new();
    for dashboard in dashboards() {
        for panel in dashboard.panels().into_iter().filter(|panel| panel["type"] == "table") {
            let mut columns = Labels::from(["Time".to_owned()]);
            for target in list(&panel["targets"]) {
                columns.insert(format!("Value #{}", text(&target["refId"])));
                // A faulty query is the matter of another test.
                columns
                    .extend(labels_of_query(&dashboard, text(&target["expr"])).unwrap_or_default());
            }
            let mut shown = columns.clone();
            for step in list(&panel["transformations"]) {
                for part in ["excludeByName", "indexByName", "renameByName"] {
                    for (name, new) in step["options"][part].as_object().into_iter().flatten() {
                        if !columns.contains(name) {
                            faults.push(format!("{}: {part} {name:?}", dashboard.place(panel)));
                        }
                        shown.extend(new.as_str().map(str::to_owned));
                    }
                }
            }
            for rule in list(&panel["fieldConfig"]["overrides"]) {
                let name = text(&rule["matcher"]["options"]);
                if !shown.contains(name) {
                    faults.push(format!("{}: override of {name:?}", dashboard.place(panel)));
                }
            }
        }
    }
    assert_none(&faults);
}

/// Computes, keeps 64 MiB and a file open, reads and writes it; gently, for the host is shared.
const BUSY_JOB: &str = r#"#!/bin/bash
exec python3 -c '
import tempfile, time
memory = bytearray(b"x") * (64 << 20)
file = tempfile.TemporaryFile()
while True:
    sum(i * i for i in range(200000))
    file.seek(0)
    file.write(memory[:1 << 16])
    file.flush()
    file.seek(0)
    file.read()
    time.sleep(0.05)
'
"#;

/// Waits until the first query of that panel has one series, and that the right one.
fn shows(
    queries: &[(Query, String)],
    title: &str,
    right: impl Fn(&BTreeMap<String, String>, f64) -> bool,
) {
    let place = format!("job.json: {title:?} A");
    let (_, filled) = queries
        .iter()
        .find(|(query, _)| query.place == place)
        .unwrap_or_else(|| panic!("{place} is gone"));
    wait::until_true(&place, Duration::from_secs(30), || {
        let found = prometheus::query(filled).unwrap_or_else(|error| panic!("{place}: {error}"));
        let value = |series: &prometheus::Series| series.value.1.parse().ok();
        matches!(&found[..], [one] if value(one).is_some_and(|value| right(&one.metric, value)))
    });
}

#[test]
fn every_query_finds_series_of_a_real_job() {
    let testbed = Testbed::get();
    let mut config = agent::config();
    config.push.gateway = Some(testbed.pushgateway().to_owned());
    config.threads.interval = Span(Duration::from_secs(2));
    let _agent = RunningAgent::start(config);
    let options = ["-p", "gpu", "--gres=gpu:2", "-c", "2", "--mem=400M"];
    let job = slurm::submit(USERS[0], &options, BUSY_JOB);
    job.wait_running();
    let node = slurm::run("squeue", &["-h", "-j", &job.id, "-o", "%N"]);
    let value = |name: &str| {
        let known = match name {
            "cluster" => testbed.value("STEWARD_CLUSTER"),
            "instance" | "node" => &node,
            "job" => &job.id,
            _ => return None,
        };
        Some(known.to_owned())
    };

    let queries: Vec<(Query, String)> = dashboards()
        .iter()
        // What the service says about clusters and the bank has tests of its own.
        .filter(|dashboard| !["bank.json", "cluster.json"].contains(&dashboard.file.as_str()))
        .flat_map(Dashboard::queries)
        .map(|query| {
            let filled =
                fill(&query.text, value).unwrap_or_else(|e| panic!("{}: {e}", query.place));
            (query, filled)
        })
        .collect();
    for (name, _, reason) in ONLY_ON_ONE {
        let used = queries.iter().any(|(_, filled)| filled.contains(name));
        assert!(used, "no query has {name}: drop the exception ({reason})");
    }
    let (mut pending, absent): (Vec<_>, Vec<_>) = queries.iter().partition(|(_, filled)| {
        let is_missing =
            |(name, v1, _): &(&str, bool, &str)| *v1 != testbed.is_v1() && filled.contains(name);
        !ONLY_ON_ONE.iter().any(is_missing)
    });

    let has_numbers = |(query, filled): &(Query, String)| {
        let found =
            prometheus::query(filled).unwrap_or_else(|e| panic!("{}: {e}\n{filled}", query.place));
        found.iter().any(|series| series.value.1.parse().is_ok_and(f64::is_finite))
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    wait::until_true("a first rate", Duration::from_secs(60), || {
        let id = &job.id;
        prometheus::query(&format!(
            "rate(jobs_cpu_usage_seconds_total{{slurm_job={id:?}}}[1m]) > 0"
        ))
        .is_ok_and(|found| !found.is_empty())
    });
    while !pending.is_empty() && std::time::Instant::now() < deadline {
        pending.retain(|query| !has_numbers(query));
        if !pending.is_empty() {
            std::thread::sleep(SCRAPE_INTERVAL);
        }
    }
    let empty: Vec<_> =
        pending.iter().map(|(query, filled)| format!("{}:\n    {filled}", query.place)).collect();
    assert_none(&empty);
    for query in absent {
        assert!(!has_numbers(query), "{} has data here too: drop its exception", query.0.place);
    }

    shows(&queries, "User", |labels, _| labels["user"] == USERS[0]);
    shows(&queries, "Partition", |labels, _| labels["partition"] == "gpu");
    shows(&queries, "Nodes", |_, nodes| nodes == 1.0);
    shows(&queries, "CPUs held", |_, cpus| cpus == 2.0);
    // One thread on two CPUs.
    shows(&queries, "CPU efficiency", |_, share| share > 0.0 && share < 0.6);
    // 64 MiB and Python itself, of 400 MiB.
    shows(&queries, "Memory needed of limit", |_, share| (0.16..0.5).contains(&share));
    shows(&queries, "Peak memory", |_, bytes| bytes >= f64::from(64 << 20));
    shows(&queries, "Open files", |_, files| files == 1.0);
}
