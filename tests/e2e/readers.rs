//! The archive as others read it: DuckDB and polars, with the very lines that README.md shows.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use steward_tests::centre::{Centre, Text};
use steward_tests::object_storage::{BUCKET, ObjectStorage};
use steward_tests::python;
use steward_tests::sacct_text::Recipe;

/// Where README.md has the archive.
const SHOWN: &str = "/var/lib/steward/archive";

/// Runs README's SQL and prints each answer.
const DUCKDB: &str = r#"
import duckdb, glob, json, os, sys
sql, endpoint = sys.argv[1:]
if endpoint:
    import duckdb_extension_httpfs
    home = os.path.dirname(duckdb_extension_httpfs.__file__)
    [extension] = glob.glob(home + "/extensions/*/httpfs.duckdb_extension")
    duckdb.sql(f"LOAD '{extension}'")
    duckdb.sql(f"""CREATE SECRET (TYPE s3, KEY_ID 'testing', SECRET 'testing', REGION 'us-east-1', URL_STYLE 'path',
                   USE_SSL false, ENDPOINT '{endpoint.removeprefix("http://")}')""")
def rows(query):
    answer = duckdb.sql(query)
    return [dict(zip(answer.columns, row)) for row in answer.fetchall()]
print(json.dumps([rows(query) for query in sql.split(";") if query.strip()]))
"#;

/// Runs README's Python and prints what it made.
const POLARS: &str = r#"
import json, sys
made = {}
exec(sys.argv[1], made)
print(json.dumps([made["users"].to_dicts(), made["partitions"].to_dicts()]))
"#;

/// The block of README.md in this language, with the archive at `place`.
fn snippet(language: &str, place: &str) -> String {
    let readme = steward_tests::directory().join("../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let begin = format!("```{language}\n");
    let mut blocks = text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains(SHOWN)).unwrap();
    block.replace(SHOWN, place)
}

/// README's two answers, over an archive, from DuckDB and from polars.
fn answers(dir: &Path, place: &str, storage: Option<&ObjectStorage>) -> Vec<(String, Value)> {
    let endpoint = storage.map_or("", ObjectStorage::url);
    let environment = [
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL", endpoint),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let environment = if endpoint.is_empty() { &[][..] } else { &environment };
    let duckdb = python::script(DUCKDB, &[&snippet("sql", place), endpoint], dir, environment);
    let polars = python::script(POLARS, &[&snippet("python", place)], dir, environment);
    [("DuckDB", duckdb), ("polars", polars)]
        .map(|(who, text)| (format!("{who} at {place}"), serde_json::from_str(&text).unwrap()))
        .into()
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} of {line}"))
}

/// Holds what another program says against what `steward analyze` says.
fn compare(who: &str, said: &Value, report: &Value) {
    let line = |table: &str, key: &str, name: &Value| {
        let lines = report[table].as_array().unwrap();
        lines.iter().find(|line| line[key] == *name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let same = |one: f64, other: f64, what: &Value| {
        assert!((one - other).abs() <= 1e-6 * other.abs().max(1.0), "{who}: {one} {other} {what}");
    };
    let [users, partitions] = said.as_array().unwrap().as_slice() else { panic!("{said}") };
    let users = users.as_array().unwrap();
    assert_eq!(users.len(), 10, "{who}");
    for user in users {
        let ours = line("users", "user", &user["user"]);
        assert_eq!(user["jobs"], ours["jobs"], "{who}: {user}");
        same(number(user, "cpu_hours"), number(&ours, "cpu_hours"), user);
        same(number(user, "cpu_percent"), number(&ours, "cpu_efficiency_raw_percent"), user);
    }
    // No other user is worse than the last of them.
    let worst = number(&users[9], "cpu_percent");
    let better = report["users"].as_array().unwrap().iter();
    let better = better.filter(|ours| ours["cpu_efficiency_raw_percent"].is_number());
    let worse = better.filter(|ours| number(ours, "cpu_efficiency_raw_percent") < worst - 1e-6);
    assert_eq!(worse.count(), 9, "{who}");
    let partitions = partitions.as_array().unwrap();
    assert_eq!(partitions.len(), report["partitions"].as_array().unwrap().len(), "{who}");
    for partition in partitions {
        let ours = line("partitions", "name", &partition["partition"]);
        for key in ["cpu_hours_idle", "memory_gib_hours_idle"] {
            same(number(partition, key), number(&ours, key), partition);
        }
    }
}

#[test]
fn duckdb_and_polars_read_what_analyze_says_from_a_directory_and_a_bucket() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // All have ended, and the window holds them whole.
    let recipe = Recipe { jobs: 4000, days: 6, seed: 11, now, comments: false };
    let text = Text::write(&dir.path().join("text"), recipe).without_open();
    let settings = storage.settings(dir.path());
    let root = dir.path().join("archive").display().to_string();
    let bucket = format!("s3://{BUCKET}/years");
    for (name, place, storage) in
        [("local", root, None), ("remote", bucket, Some((&storage, &settings)))]
    {
        let more = storage.map_or("", |(_, settings)| settings);
        let centre = Centre::new(dir.path(), name, &place, &text, more);
        centre.done(&["collect", "--days", "7", "--no-summary"]);
        let report = centre.done(&["analyze", "--days", "7", "--format", "json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        for (who, said) in answers(dir.path(), &place, storage.map(|(storage, _)| storage)) {
            compare(&who, &said, &report);
        }
    }
}
