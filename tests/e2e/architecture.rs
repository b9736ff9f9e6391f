//! The walls of the house, held by a machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    steward_tests::directory().join("..")
}

/// The Rust files below `dir`, with the part before their tests.
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(dir)];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or("").to_owned();
                found.push((path.strip_prefix(root()).unwrap().display().to_string(), code));
            }
        }
    }
    assert!(!found.is_empty(), "{dir} has no source");
    found
}

fn lines_with<'a>(code: &'a str, words: &[&str]) -> Vec<&'a str> {
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter(|line| words.iter().any(|word| line.contains(word)))
        .collect()
}

fn assert_none(dir: &str, words: &[&str], why: &str) {
    for (file, code) in sources(dir) {
        let found = lines_with(&code, words);
        assert!(found.is_empty(), "{file}: {why}: {found:?}");
    }
}

#[test]
fn common_is_pure() {
    assert_none(
        "common/src",
        &[
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "tokio",
            "reqwest",
            "tracing",
            "::now()",
        ],
        "common does no I/O, reads no clock and logs nothing",
    );
    assert_none("common/src", &["Serialize"], "domain types are not Serialize");
}

#[test]
fn readers_and_writers_do_not_know_each_other() {
    let why = "kernel, source and output never import one another";
    assert_none("agent/src/kernel", &["crate::output", "crate::collector", "crate::sample"], why);
    assert_none("agent/src/output", &["crate::kernel", "crate::scan"], why);
    assert_none("agent/src/collector", &["crate::output"], why);
    assert_none("aggregator/src/source", &["crate::output"], why);
    assert_none("aggregator/src/output", &["crate::source"], why);
}

#[test]
fn names_of_metrics_stand_in_the_catalogue_only() {
    let why = "metric names live in common/src/metric.rs";
    assert_none("agent/src/kernel", &["\"jobs_", "metric::"], why);
    assert_none("agent/src/collector", &["\"jobs_", "\"steward_agent_"], why);
    assert_none("aggregator/src", &["\"jobs_", "steward_agent_"], why);
    let why = "collectors read no files";
    assert_none("agent/src/collector", &["std::fs", "/proc", "\"memory.", "cgroup."], why);
}

#[test]
fn the_archives_format_is_named_inside_the_archive_only() {
    let words = ["arrow_", "arrow::", "parquet::", "use parquet"];
    let archive = "aggregator/src/archive/";
    let all = ["agent/src", "aggregator/src", "common/src"].map(sources).concat();
    let (inside, outside): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(file, _)| file.starts_with(archive));
    let names = |(_, code): &&(String, String)| !lines_with(code, &words).is_empty();
    assert!(inside.iter().filter(names).count() > 3, "looked for the wrong words");
    let found: Vec<&String> = outside.iter().filter(names).map(|(file, _)| file).collect();
    assert!(found.is_empty(), "types of arrow and parquet stay in {archive}: {found:?}");
    // And the other crates have no way to.
    let manifests = [("agent", false), ("common", false), ("aggregator", true)];
    for (part, may) in manifests {
        let text = fs::read_to_string(root().join(part).join("Cargo.toml")).unwrap();
        let depends =
            text.lines().any(|line| line.starts_with("parquet") || line.starts_with("arrow"));
        assert_eq!(depends, may, "{part}/Cargo.toml");
    }
}

/// Not offline: a build does not fetch what only stands in the lock file, for engines of sqlx that are off.
fn metadata() -> Value {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn common_depends_on_next_to_nothing() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let common = packages.iter().find(|one| one["name"] == "steward-common").unwrap();
    let names: Vec<&str> = common["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["kind"].is_null())
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["thiserror"]);
}

#[test]
fn every_licence_is_allowed_by_deny_toml() {
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = deny.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
    let allowed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name}: no licence"));
        // Every AND part must have one OR choice that is allowed; an old slash means OR.
        let fine =
            licence.replace('/', " OR ").replace(['(', ')'], " ").split(" AND ").all(|part| {
                part.split(" OR ").any(|choice| {
                    let choice = choice.trim();
                    allowed.contains(&choice) || choice.split(" WITH ").next() == Some("Apache-2.0")
                })
            });
        assert!(fine, "{name}: {licence} is not in deny.toml");
    }
}

#[test]
fn no_file_holds_more_than_one_subject_should_need() {
    for dir in
        ["agent/src", "aggregator/src", "common/src", "tests/src", "tests/e2e", "tests/cluster"]
    {
        let mut waiting = vec![root().join(dir)];
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    let lines = fs::read_to_string(&path).unwrap().lines().count();
                    assert!(lines <= 500, "{}: {lines} lines", path.display());
                }
            }
        }
    }
}
