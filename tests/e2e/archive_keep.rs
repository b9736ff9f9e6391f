//! What becomes of an archive over time: rebuilt, forgotten, killed, full.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use steward_tests::archive::{self, Site, assert_same, rows};
use steward_tests::sacct_text::Recipe;
use steward_tests::scripted::Scripted;

const HOUR: u64 = 3600;
/// Of 500 jobs of this seed one has a name with a delimiter, one a name of two lines, and two were
/// put back into the queue.
const SEED: u64 = 2261;
const COLLECT: [&str; 4] = ["collect", "--days", "4", "--no-summary"];

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn recipe(jobs: u64, seed: u64) -> Recipe {
    Recipe { jobs, days: 3, seed, now: now(), comments: false }
}

/// Collects jobs as they stood half a day ago, then later, then as they stand now.
fn collected(site: &Site, recipe: Recipe) {
    for hours in [12, 5, 0] {
        recipe.write_as_of(recipe.now - hours * HOUR, &site.new_text()).unwrap();
        site.steward(&COLLECT);
    }
}

#[test]
fn an_archive_that_is_rebuilt_is_the_one_that_was_collected() {
    let site = Site::default();
    collected(&site, recipe(500, SEED));
    // Other jobs in place of these: all that was open has vanished.
    recipe(500, SEED + 1).write(&site.new_text()).unwrap();
    site.steward(&COLLECT);
    let expected = rows(&site.data(), "processed", &[]);
    assert!(expected.len() > 500, "{}", expected.len());
    let raw = rows(&site.data(), "raw", &[]);
    for what in ["form=mended", "form=short", "\u{1b}\u{1c}0\u{1f}", "steps=\u{1c}batch\u{1f}"] {
        assert!(raw.iter().any(|row| row.contains(what)), "no {what:?}");
    }
    let again = expected.iter().filter(|row| !row.contains("restart=0")).count();
    assert!(again >= 2, "{again} runs are not the first of their jobs");
    let open = expected.iter().filter(|row| row.contains("open.parquet")).count();
    assert!(open > 10, "{open} open runs");
    let said = site.steward(&["archive", "rebuild"]);
    assert!(said.contains(&format!("{} runs computed anew", expected.len())), "{said}");
    assert!(!said.contains("stay as they were") && !said.contains("cannot be read"), "{said}");
    assert_same(&rows(&site.data(), "processed", &[]), &expected, "rebuilt");
    assert_same(&rows(&site.data(), "raw", &[]), &raw, "raw of rebuilt");
    // Again, from nothing but raw.
    for file in archive::files(&site.data().join("processed")) {
        if !file.ends_with("open.parquet") {
            std::fs::remove_file(file).unwrap();
        }
    }
    site.steward(&["archive", "rebuild"]);
    assert_same(&rows(&site.data(), "processed", &[]), &expected, "rebuilt from raw alone");
    // And what raw has not stays.
    std::fs::remove_dir_all(site.data().join("raw")).unwrap();
    let said = site.steward(&["archive", "rebuild"]);
    assert!(said.contains(&format!("{} runs stay as they were", expected.len())), "{said}");
    assert_same(&rows(&site.data(), "processed", &[]), &expected, "rebuilt from nothing");
}

/// The user with most runs.
fn somebody(data: &Path) -> String {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows(data, "processed", &[]) {
        *runs
            .entry(row.split(" user=").nth(1).unwrap().split(' ').next().unwrap().to_owned())
            .or_default() += 1;
    }
    runs.into_iter().max_by_key(|(_, runs)| *runs).unwrap().0
}

/// Lines that hold a word.
fn with(lines: &[String], word: &str) -> usize {
    lines
        .iter()
        .filter(|line| line.split([' ', '=', '\x1f', '/', '"']).any(|part| part == word))
        .count()
}

#[test]
fn a_user_who_is_forgotten_stays_absent() {
    let site = Site::default();
    let recipe = recipe(500, SEED);
    collected(&site, recipe);
    let data = site.data();
    let user = somebody(&data);
    let (jobs, raw) = (rows(&data, "processed", &[]), rows(&data, "raw", &[]));
    let runs = with(&jobs, &user);
    assert!(runs > 20 && with(&raw, &user) >= runs, "{runs} of {user}");
    let refused = site.run(&data, &["archive", "forget-user", &user]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains(&format!("{runs} runs")) && why.contains("--yes"), "{why}");
    assert_same(&rows(&data, "raw", &[]), &raw, "refused");
    let said = site.steward(&["archive", "forget-user", &user, "--yes"]);
    assert!(said.starts_with(&format!("{runs} runs and ")), "{said}");
    let absent = |when: &str| {
        for layer in ["processed", "raw"] {
            assert_eq!(with(&rows(&data, layer, &[]), &user), 0, "{when}: {layer}");
        }
        for file in archive::files(&data) {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(user.len()).any(|part| part == user.as_bytes());
            assert!(!found, "{when}: {}", file.display());
        }
    };
    absent("forgotten");
    // All others are as they were, down to the byte.
    let others = |lines: &[String], of: &[String]| -> Vec<String> {
        let gone: BTreeSet<&str> = of
            .iter()
            .filter(|line| with(std::slice::from_ref(*line), &user) > 0)
            .map(|line| key(line))
            .collect();
        lines.iter().filter(|line| !gone.contains(key(line))).cloned().collect()
    };
    assert_same(&rows(&data, "processed", &[]), &others(&jobs, &jobs), "jobs of others");
    assert_same(&rows(&data, "raw", &[]), &others(&raw, &raw), "rows of others");
    recipe.write_as_of(recipe.now - HOUR, &site.new_text()).unwrap();
    site.steward(&COLLECT);
    absent("collected again");
    site.steward(&["archive", "rebuild"]);
    absent("rebuilt");
    // Nothing is left to forget, and that is no error.
    let said = site.steward(&["archive", "forget-user", &user, "--yes"]);
    assert!(said.starts_with(&format!("the archive has no run of {user};")), "{said}");
}

#[test]
fn who_forgets_a_user_is_told_what_the_store_still_has_of_him() {
    let site = Scripted::new("");
    site.steward(&["collect", "--days", "1", "--no-summary"]);
    let forget = ["archive", "forget-user", "ann", "--yes"];
    // Nothing is made for somebody who forgets.
    assert_eq!(site.steward(&forget).lines().count(), 1);
    for name in ["ann", "anna"] {
        site.steward(&["exempt", "add", name, "--reason", "a course", "--for", "30d"]);
    }
    let said = site.steward(&forget);
    assert!(said.contains("still name ann:\n       1 exemptions: "), "{said}");
    assert!(said.contains(" 1 audit log: ") && said.contains("`steward exempt remove`"), "{said}");
    let said = site.json(&[forget.as_slice(), &["--json"]].concat());
    assert_eq!((&said["runs"], &said["store"]["gone"]), (&0.into(), &serde_json::json!({})));
    let left = said["store"]["left"].as_array().unwrap();
    let kinds: Vec<_> = left.iter().map(|one| (&one["kind"], &one["entries"])).collect();
    assert_eq!(kinds, [(&"exemptions".into(), &1.into()), (&"audit_log".into(), &1.into())]);
    // Of another archive the store knows nothing.
    let elsewhere = site.data().with_file_name("elsewhere").display().to_string();
    let said = site.steward(&[forget.as_slice(), &["--data-dir", &elsewhere]].concat());
    assert!(said.contains("leave out --data-dir"), "{said}");
}

/// Which run a line is of.
fn key(line: &str) -> &str {
    let start = line.find("job_id_raw=").unwrap();
    let end = line[start..].find(' ').unwrap();
    &line[start..start + end]
}

#[test]
fn the_files_that_count_are_listed() {
    let site = Site::default();
    recipe(300, 5).write(&site.new_text()).unwrap();
    site.steward(&COLLECT);
    site.steward(&["archive", "rebuild"]);
    let data = site.data();
    let stray = data.join("raw/cluster=bench/date=2026-01-01/00000099-0000.parquet");
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "no table").unwrap();
    let list: Value = serde_json::from_str(&site.steward(&["archive", "files", "--json"])).unwrap();
    assert_eq!(list["generation"], 2);
    let files = list["files"].as_array().unwrap();
    let mut paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    let mut expected: Vec<String> = ["processed", "raw"]
        .iter()
        .flat_map(|layer| archive::files(&data.join(layer)))
        .filter(|path| *path != stray)
        .map(|path| path.display().to_string())
        .collect();
    expected.sort_unstable();
    assert_eq!(paths, expected);
    for (layer, generation) in [("processed", 2), ("raw", 1)] {
        let of: Vec<&Value> = files.iter().filter(|file| file["layer"] == layer).collect();
        assert!(of.iter().all(|file| file["generation"] == generation), "{of:?}");
        let sum: u64 = of.iter().map(|file| file["rows"].as_u64().unwrap()).sum();
        std::fs::remove_file(&stray).ok();
        assert_eq!(sum, rows(&data, layer, &[]).len() as u64);
    }
    let said = site.steward(&["archive", "files"]);
    assert_eq!(said.lines().count(), files.len() + 1, "{said}");
}

#[test]
fn what_is_older_than_the_retention_goes_and_does_not_come_back() {
    let site = Site::new("retention_processed = \"2d\"\n");
    let recipe = Recipe { days: 6, ..recipe(400, 7) };
    recipe.write(&site.new_text()).unwrap();
    let collect = ["collect", "--days", "6", "--no-summary"];
    let said = site.steward(&collect);
    assert!(said.contains("let go as too old: ") && said.contains(" 0 files"), "{said}");
    let data = site.data();
    let jobs = rows(&data, "processed", &[]);
    let days: BTreeSet<&str> =
        jobs.iter().map(|row| row.split(".parquet").next().unwrap()).collect();
    // Two days, the parts of days around them, and the open ones.
    assert!((3..=4).contains(&days.len()), "{days:?}");
    let said = site.steward(&["archive", "rebuild"]);
    assert!(said.contains("let go as too old: "), "{said}");
    assert_same(&rows(&data, "processed", &[]), &jobs, "rebuilt");
    // Raw is by the day of the collection, and this one is of today.
    site.configure("retention_raw = \"1d\"\nretention_processed = \"2d\"\n");
    let raw = rows(&data, "raw", &[]).len();
    let old = data.join("raw/cluster=bench/date=2020-01-01");
    let today = std::fs::read_dir(data.join("raw/cluster=bench")).unwrap().next().unwrap().unwrap();
    archive::copy(&today.path(), &old);
    let said = site.steward(&collect);
    assert!(said.contains("let go as too old: 0 days of jobs, "), "{said}");
    assert!(!old.exists() && rows(&data, "raw", &[]).len() == raw);
    assert_same(
        &rows(&data, "processed", &["collected_at"]),
        &without_time(&jobs),
        "collected again",
    );
}

fn without_time(lines: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .iter()
        .map(|line| {
            let (before, rest) = line.split_once(" collected_at=").unwrap();
            format!(
                "{before} {}",
                rest.split_once(" row_digest").map(|(_, r)| format!("row_digest{r}")).unwrap()
            )
        })
        .collect();
    lines.sort();
    lines
}
