//! Jobs whose rows cannot be cut, where sacct does not give their texts as JSON either.

use super::site::{SACCT, Site};
use super::{TWO_BARE, TWO_BROKEN, TWO_TEXTS, run};

/// A site whose sacct fails for JSON with this complaint, as long as there is a file `nojson`.
fn site(complaint: &str) -> Site {
    let site = Site::new();
    let fails = "*--json*) answer=json; [ -e nojson ] && { cat nojson >&2; exit 1; } ;;";
    site.write("sacct", &SACCT.replace("*--json*) answer=json ;;", fails));
    site.write("nojson", complaint);
    site.write("window", TWO_BROKEN);
    site.write("bare", TWO_BARE);
    site.write("json", TWO_TEXTS);
    site
}

fn waiting(site: &Site) -> usize {
    site.archive().manifest().unwrap().clusters["c1"].waiting.len()
}

/// The rows of the two jobs as sacct gave them.
fn rows() -> Vec<String> {
    let row = |row: &str| format!("{}\n", row.replace('~', "\x1f").replace('@', ""));
    let mut rows: Vec<String> = TWO_BROKEN.lines().take(2).map(row).collect();
    rows.reverse();
    rows
}

#[test]
fn texts_that_no_json_tells_are_kept_as_they_came_and_shown() {
    for complaint in [
        "sacct: unrecognized option '--json'",
        "sacct: error: cannot find serializer plugin for serializer/json",
    ] {
        let site = site(complaint);
        let collected = site.collect(1000);
        assert_eq!((collected.runs, collected.malformed), (3, 2), "{complaint}");
        let nameless = [
            run(5, "", "COMPLETED", false),
            run(6, "", "FAILED", false),
            run(7, "plain", "FAILED", false),
        ];
        assert_eq!(site.runs(), nameless);
        assert_eq!(site.malformed(), rows());
        let examples = collected.examples.join(" ");
        assert!(examples.contains("job 5") && examples.contains("x\\u{1f}y"), "{examples}");
        assert_eq!((site.collect(1001).malformed, waiting(&site)), (0, 0));
    }
}

#[test]
fn a_failure_that_speaks_of_json_is_no_sacct_without_json() {
    let site = site("sacct: error: slurm_persist_conn_open: failed to talk to json-db:6819");
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed, waiting(&site)), (3, 2, 2));
    assert_eq!(site.malformed(), rows());
    // They are no longer in the time that is asked for.
    site.remove("nojson");
    site.write("window", "");
    assert_eq!(site.collect(9000).runs, 2);
    assert_eq!(site.runs()[0], run(5, "x\x1fy", "COMPLETED", false));
    assert_eq!(waiting(&site), 0);
}

#[test]
fn texts_that_are_known_are_not_lost_when_json_fails_later() {
    let site = site("sacct: error: busy");
    site.remove("nojson");
    site.collect(1000);
    site.write("nojson", "sacct: error: busy");
    assert_eq!(site.collect(1001).runs, 0);
    assert_eq!(site.runs()[0], run(5, "x\x1fy", "COMPLETED", false));
    assert_eq!(site.runs()[1], run(6, "z\x1f9", "FAILED", false));
}

#[test]
fn a_run_that_json_does_not_tell_of_is_kept_as_it_came_too() {
    let site = site("");
    site.remove("nojson");
    site.write("json", &TWO_TEXTS.replace("\"job_id\":6", "\"job_id\":66"));
    let collected = site.collect(1000);
    assert_eq!((collected.runs, collected.malformed), (3, 1));
    assert_eq!(site.malformed(), rows()[..1]);
}
