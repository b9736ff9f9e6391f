//! From rows to text: shapes against golden files, figures by computation.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;
use steward_common::time;

use super::*;
use crate::output::plain::{is_hidden, width};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

const EVIL: &str = "e\u{1b}[2Jvil<b>|\u{202e}";

/// A week of a small site; the same every time.
fn rows(names: &mut Names) -> Vec<Row> {
    let begin: Timestamp = "2026-11-09T00:00:00Z".parse().unwrap();
    let begin = begin.as_second();
    let states =
        ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"];
    let users = ["alice", "bob", "carol", "a-user-with-a-very-long-name-indeed", EVIL];
    let mut rows = Vec::new();
    for i in 0..140u32 {
        let at = |list: &[&'static str], step: u32| list[(i / step) as usize % list.len()];
        let submit = begin + i64::from(i) * 4000;
        let start = submit + i64::from(i % 11) * 600;
        let elapsed = 1800 + i % 7 * 5000;
        let gpus = if at(&users, 1) == "bob" { 2 } else { 0 };
        let cpus = 4 << (i % 5);
        let open = i > 136;
        rows.push(Row {
            cluster: names.intern("c1"),
            user: names.intern(at(&users, 1)),
            account: names.intern(at(&["physics", "biology"], 1)),
            partition: names.intern(if gpus > 0 { "gpu" } else { "cpu" }),
            qos: names.intern(at(&["normal", "high"], 9)),
            state: names.intern(if open { "RUNNING" } else { at(&states, 1) }),
            nodes: names.intern(at(&["n[1-2]", "n1", "n3"], 1)),
            gpu_types: names.intern(if gpus > 0 { "a100=2" } else { "" }),
            submit: time::Timestamp::new(submit),
            start: Some(time::Timestamp::new(start)),
            end: (!open).then(|| time::Timestamp::new(start + i64::from(elapsed))),
            collected: time::Timestamp::new(begin + 7 * 86_400),
            elapsed: Some(elapsed),
            cpus: Some(cpus),
            gpus: Some(gpus),
            alloc_mem_mb: Some(f64::from(cpus) * 4096.0),
            max_rss_mb: (i % 3 > 0).then(|| f64::from(cpus) * f64::from(i % 40) * 100.0),
            cpu_seconds: (!open).then(|| f64::from(cpus * elapsed) * f64::from(i % 5 + 1) / 5.5),
            gpu_seconds: None,
            time_limit: Some(86_400),
        });
    }
    rows
}

fn analyse(arguments: &str, screen: Screen) -> Result<String, AnalyzeError> {
    let mut names = Names::default();
    let rows = rows(&mut names);
    let options =
        Line::parse_from(["analyze"].into_iter().chain(arguments.split_whitespace())).options;
    let size = NodeSize { cpus: Some(64), gpus: Some(4) };
    let nodes = ["n1", "n2", "n4"].map(|node| (node.to_owned(), size));
    let groups = [("particles".to_owned(), vec!["alice".to_owned(), "bob".to_owned()])];
    let setting = Setting {
        zone: TimeZone::UTC,
        now: "2026-11-16T06:00:00Z".parse().unwrap(),
        groups: GroupSource::Config(BTreeMap::from(groups)),
        nodes: HashMap::from([("c1".to_owned(), HashMap::from(nodes))]),
        screen,
    };
    let mut analysis = Analysis::new(options, setting)?;
    rows.chunks(50).for_each(|batch| analysis.add(batch, &names));
    analysis.text(&names)
}

fn plain(width: usize) -> Screen {
    Screen { width, colour: false }
}

/// Compares with a file of `tests/golden`; STEWARD_BLESS=1 writes it instead.
fn golden(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/analyze").join(file);
    if std::env::var_os("STEWARD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(text == expected, "{file} is different; STEWARD_BLESS=1 writes it anew:\n{text}");
}

#[test]
fn shapes_are_those_of_the_golden_files() {
    golden("table-100.txt", &analyse("", plain(100)).unwrap());
    golden("table-60.txt", &analyse("--top 3", plain(60)).unwrap());
    golden("colour.txt", &analyse("--table users", Screen { width: 100, colour: true }).unwrap());
    golden("all.json", &analyse("--json --user alice", plain(100)).unwrap());
    golden("all.csv", &analyse("--format csv --top 2", plain(100)).unwrap());
    golden("all.md", &analyse("--format markdown --top 5", plain(100)).unwrap());
    golden("page.html", &analyse("--format html", plain(100)).unwrap());
}

#[test]
fn users_alone_have_the_figures_that_they_have_among_all() {
    let all = analyse("--format csv", plain(100)).unwrap();
    let users = analyse("--format csv --table users", plain(100)).unwrap();
    assert!(users.contains("alice") && all.contains(&users), "{users}");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for columns in [40, 60, 72, 80, 100, 120, 160] {
        for line in analyse("--top 0", plain(columns)).unwrap().lines() {
            assert!(width(line) <= columns, "{columns}: {line:?}");
        }
    }
}

#[test]
fn nothing_of_a_name_acts_on_a_terminal_or_a_page() {
    for format in ["table", "json", "csv", "markdown", "html"] {
        let text = analyse(&format!("--format {format}"), plain(100)).unwrap();
        let acts = |c: &char| is_hidden(*c) && !matches!(c, '\n' | '\r');
        assert_eq!(text.chars().find(acts), None, "{format}");
        assert!(
            text.contains("e\\x1b[2Jvil")
                || text.contains("e\\u001b[2Jvil")
                || text.contains("x1b"),
            "{format}"
        );
    }
    assert!(!analyse("--format html", plain(100)).unwrap().contains("<b>"));
}

#[test]
fn colours_only_where_there_are_some() {
    assert!(!analyse("", plain(100)).unwrap().contains('\u{1b}'));
    assert!(analyse("", Screen { width: 100, colour: true }).unwrap().contains("\u{1b}[32m"));
}

#[test]
fn json_has_numbers_and_every_table_adds_up() {
    let all: Value = serde_json::from_str(&analyse("--json", plain(100)).unwrap()).unwrap();
    let total = all["totals"]["cpu_hours"].as_f64().unwrap();
    for table in ["days", "users", "groups", "accounts", "partitions", "qos", "clusters", "nodes"] {
        let rows = all[table].as_array().unwrap();
        let sum: f64 = rows.iter().map(|row| row["cpu_hours"].as_f64().unwrap()).sum();
        assert!((sum - total).abs() < 1e-3, "{table}: {sum} of {total}");
    }
    let causes = all["waste"].as_array().unwrap();
    let wasted: f64 = causes.iter().map(|row| row["cpu_hours_wasted"].as_f64().unwrap()).sum();
    assert!((wasted - all["totals"]["cpu_hours_wasted"].as_f64().unwrap()).abs() < 1e-3);
    // Nobody measured GPUs; those of failed jobs are lost all the same.
    assert!(all["gpu_types"][0]["gpu_efficiency_percent"].is_null());
    assert!(all["totals"]["gpu_hours_waste_unknown"].as_f64().unwrap() > 0.0);
    assert_eq!(all["users"].as_array().unwrap().len(), 5);
    assert!(all["users"].as_array().unwrap().iter().any(|row| row["user"] == EVIL));
}

#[test]
fn one_table_can_be_had_alone() {
    let csv = analyse("--format csv --table users --top 2", plain(100)).unwrap();
    assert_eq!((csv.lines().count(), csv.starts_with("user,jobs,cpu_hours,")), (3, true));
    let json: Value =
        serde_json::from_str(&analyse("--json --table states", plain(100)).unwrap()).unwrap();
    assert!(json.as_array().unwrap().iter().any(|row| row["state"] == "COMPLETED"));
    let every: Vec<String> = report::TABLES.iter().map(|name| format!("# {name}\r\n")).collect();
    let all = analyse("--format csv", plain(100)).unwrap();
    assert!(every.iter().all(|head| all.contains(head)));
}

#[test]
fn nothing_found_says_what_to_do() {
    let told = |arguments: &str| analyse(arguments, plain(100)).unwrap_err().to_string();
    let empty = told("--from 2025-01-01 --to 2025-01-02");
    assert!(empty.contains("steward collect"), "{empty}");
    // To collect does not help against a slip in a name.
    let slip = told("--user nobody");
    assert!(slip.contains("matches user nobody") && !slip.contains("steward collect"), "{slip}");
}
