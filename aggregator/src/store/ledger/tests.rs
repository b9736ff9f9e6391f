use steward_common::bank::standing::Usage;
use steward_common::bank::{Level, Mechanism, account};
use steward_common::limit::Limit;

use super::*;
use crate::store::holds::{Action, Hold, Reset, Stage};

fn hours(hours: i64) -> Units {
    Units::of_hours(hours).unwrap()
}

fn author(reason: &str) -> Author {
    Author { actor: "ada".into(), reason: reason.into(), at: Timestamp::new(1_794_800_000) }
}

fn period() -> (Day, Day) {
    account::period("2026-11-16".parse().unwrap(), 365).unwrap()
}

async fn open(store: &Store, name: &str, limit: Limit<Units>) -> Result<(), LedgerError> {
    store.open_account(name, period(), &account::opening(None, limit), &author("insert")).await
}

async fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("steward.db")).await.unwrap();
    (dir, store)
}

async fn add(store: &Store, name: &str, units: Units) -> Result<Account, LedgerError> {
    let plan = |all: &Accounts| {
        let change = all[name].give(None, units, Kind::Grant, None)?;
        Ok(vec![(name.to_owned(), change)])
    };
    Ok(store.change_accounts(&[name], &author("add"), &[], plan).await?.remove(name).unwrap())
}

#[tokio::test]
async fn b1_b3_an_account_is_made_once_and_added_to() {
    let (_dir, store) = store().await;
    open(&store, "test1", Limit::At(hours(10_000))).await.unwrap();
    let again = open(&store, "test1", Limit::At(hours(5))).await.unwrap_err();
    assert!(matches!(again, LedgerError::Refused(Refused::Exists(_))), "{again}");
    let at = Timestamp::new(0);
    assert!(store.note_level("test1", Level::Lower, &[], at).await.unwrap());
    assert!(!store.note_level("test1", Level::Lower, &[], at).await.unwrap(), "once");
    assert!(store.account_named("test1").await.unwrap().told.lower);
    let after = add(&store, "test1", hours(500)).await.unwrap();
    assert_eq!(after.limit(), Limit::At(hours(10_500)));
    assert_eq!((after.told, after.start), (Told::default(), period().0));
    let entries = store.entries("test1").await.unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|one| (one.number, one.kind, one.amount, one.actor.as_str(), one.reason.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (1, Kind::Grant, hours(10_000), "ada", "insert"),
            (2, Kind::Grant, hours(500), "ada", "add"),
        ]
    );
    let unknown = add(&store, "test2", hours(1)).await.unwrap_err();
    assert!(matches!(unknown, LedgerError::Refused(Refused::Unknown(_))), "{unknown}");
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let (_dir, store) = store().await;
    open(&store, "a", Limit::At(hours(10))).await.unwrap();
    open(&store, "b", Limit::Unlimited).await.unwrap();
    let plan = |all: &Accounts| {
        let (away, there) = all["a"].transfer(&all["b"], hours(5), &Usage::new())?;
        Ok(vec![("a".to_owned(), away), ("b".to_owned(), there)])
    };
    let refused =
        store.change_accounts(&["a", "b"], &author("transfer"), &[], plan).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Refused(Refused::Unlimited(_))), "{refused}");
    assert_eq!(store.entries("a").await.unwrap().len(), 1);
    let all = store.accounts().await.unwrap();
    assert_eq!((all["a"].limit(), all["b"].limit()), (Limit::At(hours(10)), Limit::Unlimited));
}

#[tokio::test]
async fn many_at_once_add_up_exactly() {
    let (dir, store) = store().await;
    let path = dir.path().join("steward.db");
    for name in ["a", "b"] {
        open(&store, name, Limit::At(hours(1000))).await.unwrap();
    }
    let mut all = Vec::new();
    for worker in 0..8_u32 {
        let path = path.clone();
        all.push(tokio::spawn(async move {
            let own = Store::open(&path).await.unwrap();
            for turn in 0..25_u32 {
                if (worker + turn) % 2 == 0 {
                    add(&own, "a", hours(3)).await.unwrap();
                    continue;
                }
                let plan = |all: &Accounts| {
                    let (away, there) =
                        all["a"].transfer(&all["b"], Units::new(7), &Usage::new())?;
                    Ok(vec![("a".to_owned(), away), ("b".to_owned(), there)])
                };
                own.change_accounts(&["b", "a"], &author("transfer"), &[], plan).await.unwrap();
            }
        }));
    }
    for one in all {
        one.await.unwrap();
    }
    let all = store.accounts().await.unwrap();
    assert_eq!(all["a"].limit(), Limit::At(Units::new(1300 * 3600 - 700)));
    assert_eq!(all["b"].limit(), Limit::At(Units::new(1000 * 3600 + 700)));
    let entries = store.entries("a").await.unwrap();
    assert_eq!(entries.last().unwrap().number, 201, "no number is missing or twice");
    assert_eq!(entries.len(), 201);
}

#[tokio::test]
async fn what_is_meant_to_be_set_is_kept() {
    let (_dir, store) = store().await;
    let mut hold = Hold {
        account: "a".into(),
        cluster: "c1".into(),
        mechanism: Mechanism::CpuMinutes,
        value: 0,
        previous: Some(100),
        stage: Stage::Wanted,
        since: Timestamp::new(5),
    };
    store.put_hold(&hold, "ada").await.unwrap();
    hold.stage = Stage::Held;
    hold.previous = None;
    store.put_hold(&hold, "ada").await.unwrap();
    assert_eq!(store.holds().await.unwrap().into_values().collect::<Vec<_>>(), [hold]);
    store.drop_hold("a", "c1").await.unwrap();
    assert!(store.holds().await.unwrap().is_empty());
    let reset = Reset { account: "a".into(), cluster: "c1".into(), used: Units::new(77) };
    let later = Reset { used: Units::new(5), ..reset.clone() };
    open(&store, "a", Limit::At(hours(1))).await.unwrap();
    for one in [&reset, &later] {
        let plan = |_: &Accounts| Ok(Vec::new());
        let resets = std::slice::from_ref(one);
        store.change_accounts(&["a"], &author("reset"), resets, plan).await.unwrap();
    }
    assert_eq!(store.resets().await.unwrap(), [reset], "the first one knows what it was");
    store.drop_reset("a", "c1").await.unwrap();
    assert_eq!(store.resets().await.unwrap(), []);
    let action = Action {
        at: Timestamp::new(5),
        account: "a".into(),
        cluster: "c1".into(),
        actor: "ada".into(),
        command: "sacctmgr …".into(),
        outcome: "done".into(),
    };
    store.add_action(&action).await.unwrap();
    assert_eq!(store.actions("a").await.unwrap(), [action]);
}
