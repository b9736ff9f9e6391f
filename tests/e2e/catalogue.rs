//! Names are promises: a change is seen, and said in the changelog.

use steward_tests::agent::run;

#[test]
fn the_command_lists_every_metric_for_people_and_for_programs() {
    let text = String::from_utf8(run(&["metrics"]).stdout).unwrap();
    let rows: Vec<serde_json::Value> =
        serde_json::from_slice(&run(&["metrics", "--json"]).stdout).unwrap();
    assert_eq!(rows.len(), steward_common::metric::CATALOGUE.len());
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert!(text.contains(&format!("{name} (")), "{name}");
        assert!(!row["help"].as_str().unwrap().is_empty());
    }
}
