use std::sync::Arc;

use steward_common::bank::{Change, Kind, Line};
use steward_common::time::Timestamp;

use super::*;
use crate::config::Config;
use crate::shutdown;
use crate::store::Store;

/// As slurm_su_bank writes it.
const DUMP: &str = r#"{"count": 2, "results": [
  {"id": 1, "account": "test1", "su_limit_hrs": 10000, "date": "2026-01-05",
   "upper_limit_informed": true, "lower_limit_informed": 1, "max_limit_informed": "False"},
  {"id": 2, "account": "free", "su_limit_hrs": -1, "date": "2025-12-31",
   "upper_limit_informed": false, "lower_limit_informed": false, "max_limit_informed": null}]}"#;

async fn bank() -> (tempfile::TempDir, Bank) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("steward.db")).await.unwrap();
    let (_stopper, shutdown) = shutdown::channel();
    let config = Arc::new(Config::default());
    (dir, Bank::open(config, store, "ada".to_owned(), &shutdown).await)
}

fn hours(hours: i64) -> Units {
    Units::of_hours(hours).unwrap()
}

#[test]
fn a_dump_is_read_whatever_its_flags_look_like() {
    let all = parse(DUMP, 365).unwrap();
    assert_eq!(all[0].floating, Limit::At(hours(10_000)));
    assert_eq!(all[0].told, Told { lower: true, upper: true, over: false, end: false });
    assert_eq!(all[0].period.1.to_string(), "2027-01-05");
    assert_eq!(all[1].floating, Limit::Unlimited);
    let list = DUMP.split_once("\"results\": ").unwrap().1.trim_end_matches('}').to_owned() + "";
    let list = list.trim_end().strip_suffix(']').map_or(list.clone(), |head| format!("{head}]"));
    assert_eq!(parse(&list, 365).unwrap(), all, "the list alone");
}

#[test]
fn a_damaged_file_gives_nothing() {
    for cut in [10, DUMP.len() / 2, DUMP.len() - 1] {
        assert!(parse(&DUMP[..cut], 365).is_err(), "cut at {cut}");
    }
    for (from, to) in [
        ("10000", "1.5"),
        ("10000", "\"many\""),
        ("10000", "-2"),
        ("10000", "9223372036854775807"),
        ("2026-01-05", "01/05/26"),
        ("2026-01-05", "2026-02-30"),
        ("\"test1\"", "\"free\""),
        ("\"test1\"", "\"a b\""),
        ("\"test1\"", "\"a\\u001b[31m\""),
        ("\"False\"", "\"perhaps\""),
        ("\"count\": 2", "\"count\": 3"),
        ("su_limit_hrs", "limit"),
    ] {
        let error = parse(&DUMP.replacen(from, to, 1), 365).unwrap_err();
        assert!(error.to_string().ends_with("nothing was changed"), "{from} → {to}: {error}");
    }
}

#[tokio::test]
async fn b20_a_dump_that_is_read_again_is_the_same() {
    let (_dir, bank) = bank().await;
    let wanted = parse(DUMP, 365).unwrap();
    assert_eq!(bank.repopulate(&wanted, "import").await.unwrap(), (2, 0));
    let first = json(&bank.store.accounts().await.unwrap()).unwrap();
    let own = parse(&first, 365).unwrap();
    assert_eq!(own.iter().find(|one| one.name == "test1"), wanted.first());
    let text = raw(&bank.store.accounts().await.unwrap());
    assert!(text.contains("|test1|10000|2026-01-05|1|1|0\n"), "{text}");
    // Changed, and set again: by entries, none of which is lost.
    let plan = |account: &Account| account.give(Some("c2"), hours(5), Kind::Grant, None);
    bank.change("test1", "add", plan).await.unwrap();
    assert_eq!(bank.repopulate(&own, "repopulate_json").await.unwrap(), (0, 2));
    assert_eq!(json(&bank.store.accounts().await.unwrap()).unwrap(), first);
    let entries = bank.store.entries("test1").await.unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[2].kind, Kind::Adjustment);
    assert_eq!(entries[2].reason, "repopulate_json");
}

#[tokio::test]
async fn the_table_of_slurm_su_bank_is_read_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bank.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut file = options.connect().await.unwrap();
    for text in [
        "CREATE TABLE sbank (id INTEGER NOT NULL PRIMARY KEY, account TEXT, su_limit_hrs BIGINT, \
         date DATE, upper_limit_informed BOOLEAN, lower_limit_informed BOOLEAN, \
         max_limit_informed BOOLEAN)",
        "INSERT INTO sbank VALUES (1, 'test1', 10000, '2026-01-05', 1, 1, 1)",
        "INSERT INTO sbank VALUES (2, 'free', -1, '2025-12-31', 0, 0, NULL)",
    ] {
        sqlx::query(text).execute(&mut file).await.unwrap();
    }
    drop(file);
    let before = std::fs::read(&path).unwrap();
    let all = read_sqlite(&path, "sbank", 365).await.unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].floating, all[0].told.over), (Limit::At(hours(10_000)), true));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(read_sqlite(&path, "nosuch", 365).await.is_err());
    assert!(read_sqlite(&path, "a; DROP TABLE sbank", 365).await.is_err());
    assert!(read_sqlite(&dir.path().join("none.db"), "sbank", 365).await.is_err());
}

/// Made by slurm_su_bank's own libraries: see the README beside them.
#[tokio::test]
async fn files_of_slurm_su_bank_come_in_and_go_out_as_they_were() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/slurm-su-bank");
    let read = |name: &str| std::fs::read_to_string(fixtures.join(name)).unwrap();
    let dump = parse(&read("dump.json"), 365).unwrap();
    // SQLite writes beside a file that it reads.
    let (dir, bank) = bank().await;
    let database = dir.path().join("slurm_bank.db");
    std::fs::copy(fixtures.join("slurm_bank.db"), &database).unwrap();
    assert_eq!(read_sqlite(&database, "sbank", 365).await.unwrap(), dump);
    assert_eq!(bank.repopulate(&dump, "import").await.unwrap(), (4, 0));
    let all = bank.store.accounts().await.unwrap();
    assert_eq!(csv(&all), read("dump.csv"));
    assert_eq!(raw(&all).lines().nth(1), Some("2|physics|20000|2026-06-15|1|1|1"));
    // The part for a single cluster counts, and the dump has it apart.
    let (cluster, amount) = (Some("c2".to_owned()), Units::new(5 * 3600));
    let line = Line { cluster, kind: Kind::Grant, amount, about: None };
    let part = Change { lines: vec![line], ..Change::default() };
    let parted = Row::new(1, &all["physics"].after(&part));
    assert_eq!((&*parted.columns(["0", "1"])[2], parted.su_limit_hrs), ("20005", 20_005));
    assert_eq!(parted.floating_seconds, Some(20_000 * 3600));
    assert_eq!(parted.cluster_seconds, [("c2".to_owned(), 5 * 3600)].into());
    let again = parse(&serde_json::to_string(&[&parted]).unwrap(), 365).unwrap().remove(0);
    assert_eq!(again.floating, Limit::At(hours(20_000)));
    assert_eq!(again.clusters, [("c2".to_owned(), hours(5))].into());
    // A number stays the same when an account with an earlier name comes.
    let mut more = all.clone();
    let mut first = all["chemistry"].clone();
    (first.name, first.made) = ("astro".to_owned(), Timestamp::new(i64::MAX));
    more.insert("astro".to_owned(), first);
    assert!(raw(&more).starts_with(&raw(&all)), "{}", raw(&more));
    // The same, and what only we know.
    let (theirs, ours): (Value, Value) = (
        serde_json::from_str(&read("dump.json")).unwrap(),
        serde_json::from_str(&json(&all).unwrap()).unwrap(),
    );
    for (their, our) in
        theirs["results"].as_array().unwrap().iter().zip(ours["results"].as_array().unwrap())
    {
        for (key, value) in their.as_object().unwrap() {
            assert_eq!(our.get(key), Some(value), "{key}");
        }
    }
}
