//! `steward analyze`: whose jobs are summed up, and how it looks on a terminal.

use serde_json::{Value, json};
use steward_tests::scripted::{Scripted, now};
use steward_tests::terminal::{plain, shown};

const COLLECT: [&str; 4] = ["collect", "--days", "1", "--no-summary"];

/// A job of an hour that ended a while ago.
fn job(id: u32, user: &str, account: &str, partition: &str, cpus: u32) -> Value {
    let end = now() - 1800;
    json!({
        "JobIDRaw": id, "JobID": id, "User": user, "Account": account, "Partition": partition,
        "State": "COMPLETED", "Submit": end - 4000, "Start": end - 3600, "End": end,
        "ElapsedRaw": 3600, "AllocCPUS": cpus, "AllocNodes": 1, "NodeList": "n1",
        "TotalCPU": "00:30:00",
    })
}

/// Each has twice the hours of the one before: a sum tells whose it is.
fn jobs() -> Value {
    json!([
        job(1, "ann", "a", "cpu", 1),
        job(2, "bob", "a", "gpu", 2),
        job(3, "bob", "b", "cpu", 4),
        job(4, "cid", "b", "cpu", 8),
        job(5, "dan", "a", "gpu", 16),
        job(6, "dan", "b", "cpu", 32),
    ])
}

fn hours(line: &Value) -> f64 {
    let hours = line["cpu_hours"].as_f64().unwrap_or_else(|| panic!("{line}"));
    (hours * 1e6).round() / 1e6
}

#[test]
fn only_those_who_were_asked_for_are_summed_up() {
    let site = Scripted::new("");
    let groups = "[groups.members]\nphysics = [\"ann\", \"bob\"]\nchemistry = [\"bob\", \"cid\"]\n";
    // Both clusters tell of the same jobs.
    site.configure("clusters = [\"c1\", \"c2\"]\n", groups);
    site.answer(&jobs());
    site.steward(&COLLECT);
    let ask =
        |options: &[&str]| site.json(&[&["analyze", "--days", "1", "--json"], options].concat());
    let (bob, dan) = (2.0 + 4.0, 16.0 + 32.0);
    let cases: [(&[&str], u32, f64); 12] = [
        (&[], 12, 126.0),
        (&["--cluster", "c2"], 6, 63.0),
        (&["--cluster", "c1", "--cluster", "c2"], 12, 126.0),
        (&["--cluster", "c1", "--group", "physics"], 3, 1.0 + bob),
        (&["--cluster", "c1", "--group", "chemistry"], 3, bob + 8.0),
        // Who is in both counts once.
        (&["--cluster", "c1", "--group", "physics", "--group", "chemistry"], 4, 1.0 + bob + 8.0),
        (&["--cluster", "c1", "--group", "ungrouped"], 2, dan),
        (&["--cluster", "c1", "--account", "a"], 3, 1.0 + 2.0 + 16.0),
        (&["--cluster", "c1", "--partition", "gpu"], 2, 2.0 + 16.0),
        (&["--cluster", "c1", "--partition", "cpu", "--account", "b"], 3, 4.0 + 8.0 + 32.0),
        (&["--cluster", "c1", "--group", "ungrouped", "--account", "b"], 1, 32.0),
        (&["--cluster", "c2", "--user", "bob", "--partition", "gpu"], 1, 2.0),
    ];
    for (options, count, expected) in cases {
        let report = ask(options);
        let totals = &report["totals"];
        assert_eq!((&totals["jobs"], hours(totals)), (&json!(count), expected), "{options:?}");
        // Users, accounts and partitions add up to it, whoever is left out.
        for table in ["users", "accounts", "partitions", "states"] {
            let lines = report[table].as_array().unwrap();
            let sum: f64 = lines.iter().map(hours).sum();
            assert!((sum - expected).abs() < 1e-4, "{options:?}: {table}: {sum}");
        }
    }
    let report = ask(&["--cluster", "c1"]);
    let mut groups: Vec<(&str, u64, f64)> = report["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["name"].as_str().unwrap(), line["jobs"].as_u64().unwrap(), hours(line)))
        .collect();
    groups.sort_by_key(|(name, ..)| *name);
    assert_eq!(
        groups,
        [("chemistry", 3, bob + 8.0), ("physics", 3, 1.0 + bob), ("ungrouped", 2, dan)]
    );
    for nobody in [["--group", "biology"], ["--account", "c"], ["--cluster", "c3"]] {
        let output = site.run(&[&["analyze", "--days", "1"], &nobody[..]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{nobody:?}: {told}");
        assert!(told.contains("No data found"), "{nobody:?}: {told}");
    }
    // Without lists a group is an account.
    site.configure("clusters = [\"c1\", \"c2\"]\n", "");
    let report = ask(&["--cluster", "c1", "--group", "b"]);
    assert_eq!(hours(&report["totals"]), 4.0 + 8.0 + 32.0);
}

/// The longest line, and the longest bar.
fn longest(text: &str) -> (usize, usize) {
    let bar = |line: &str| line.chars().filter(|c| *c == '█').count();
    let longest = |of: &dyn Fn(&str) -> usize| text.lines().map(of).max().unwrap();
    (longest(&|line| line.chars().count()), longest(&bar))
}

#[test]
fn colours_are_for_terminals_and_bars_fit_them() {
    let site = Scripted::new("");
    site.answer(&jobs());
    site.steward(&COLLECT);
    let analyze = site.command(&["analyze", "--days", "1"]);
    let mut bars = Vec::new();
    for columns in [40, 50, 64, 80] {
        let text = shown(columns, &analyze, "");
        for colour in ["\u{1b}[1m", "\u{1b}[36m█", "\u{1b}[31m"] {
            assert!(text.contains(colour), "no {colour:?} in {columns} columns: {text:?}");
        }
        let text = plain(&text);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let (line, bar) = longest(&text);
        assert!(line <= usize::from(columns), "{line} in {columns} columns:\n{text}");
        bars.push(bar);
    }
    assert!(bars.is_sorted_by(|one, next| one < next), "wider terminals, longer bars: {bars:?}");
    // The same without colours: in a pipe, by wish, and where there are none.
    let piped = site.steward(&["analyze", "--days", "1"]);
    assert!(!piped.contains('\u{1b}') && piped.contains('█'), "{piped:?}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut analyze = site.command(&["analyze", "--days", "1"]);
        analyze.env(name, value);
        let text = shown(80, &analyze, "");
        assert!(!text.contains('\u{1b}') && text.contains('█'), "{name}: {text:?}");
    }
    // Redirected on a terminal it is a file.
    let file = site.data().with_file_name("report");
    shown(80, &analyze, &format!("> '{}'", file.display()));
    assert_eq!(std::fs::read_to_string(file).unwrap(), piped);
}

#[test]
fn how_far_a_collection_is_stands_on_a_terminal_only() {
    let site = Scripted::new("");
    // Long enough to be seen.
    site.wrap("sleep 0.4\nexec $SACCT \"$@\"\n", "clusters = [\"c1\"]\n", "parallel = 1\n");
    site.answer(&jobs());
    let collect = ["collect", "--days", "2", "--no-summary"];
    let text = shown(100, &site.command(&collect), "> /dev/null");
    let text = plain(&text);
    assert!(text.contains("collecting") && text.contains("1 of 3 days"), "{text:?}");
    assert_eq!(site.runs().len(), 6);
    let output = site.run(&collect);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing on a pipe");
    // Nor is the answer of one that is piped spoilt by it.
    let file = site.data().with_file_name("said");
    shown(100, &site.command(&collect), &format!("> '{}'", file.display()));
    let said = std::fs::read_to_string(file).unwrap();
    assert!(said.starts_with("c1: 0 runs new or changed") && !said.contains('\u{1b}'), "{said:?}");
}
