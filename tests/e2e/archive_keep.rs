//! What becomes of an archive over time: rebuilt, forgotten, killed, full.

use std::time::{SystemTime, UNIX_EPOCH};

use steward_tests::archive::{self, Site, assert_same, rows};
use steward_tests::sacct_text::Recipe;

const HOUR: u64 = 3600;
/// Of 500 jobs of this seed one has a name with a delimiter, one a name of two lines, and two were
/// put back into the queue.
const SEED: u64 = 2261;
const COLLECT: [&str; 4] = ["collect", "--days", "4", "--no-summary"];

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn recipe(jobs: u64, seed: u64) -> Recipe {
    Recipe { jobs, days: 3, seed, now: now() }
}

/// Collects jobs as they stood half a day ago, as they stand now, and then others, so that all
/// that was open has vanished.
fn collected(site: &Site, jobs: u64, seed: u64) {
    let recipe = recipe(jobs, seed);
    for hours in [12, 5, 0] {
        recipe.write_as_of(recipe.now - hours * HOUR, &site.new_text()).unwrap();
        site.steward(&COLLECT);
    }
    Recipe { seed: seed + 1, ..recipe }.write(&site.new_text()).unwrap();
    site.steward(&COLLECT);
}

#[test]
fn an_archive_that_is_rebuilt_is_the_one_that_was_collected() {
    let site = Site::default();
    collected(&site, 500, SEED);
    let expected = rows(&site.data(), "processed", &[]);
    assert!(expected.len() > 500, "{}", expected.len());
    let raw = rows(&site.data(), "raw", &[]);
    for what in ["form=mended", "form=plain", "step=0", "step=batch"] {
        assert!(raw.iter().any(|row| row.contains(what)), "no {what}");
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
