//! What the ledger charges for a day of real jobs, against what sacct says of them.

use std::sync::Arc;
use std::time::Duration;

use steward_aggregator::config::Config;
use steward_aggregator::store::Store;
use steward_aggregator::{bank, shutdown};
use steward_common::bank::Kind;
use steward_common::time::Timestamp;
use steward_tests::bank::{Account, Bank};
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::{slurm, wait};

/// Until jobs have ended and slurmdbd knows it, on a machine that is full of other tests.
const PATIENCE: Duration = Duration::from_secs(300);

const DAY: i64 = 86_400;

fn cluster() -> &'static str {
    Testbed::get().value("STEWARD_CLUSTER")
}

/// Billing times seconds of all jobs of an account, and how many there are, by sacct; `None` while one has not ended.
fn billed(account: &str) -> Option<(usize, i64)> {
    let format = "State,AllocTRES,ElapsedRaw,End";
    let text = slurm::run("sacct", &["-nPXD", "-S", "now-2days", "-A", account, "-o", format]);
    let mut jobs = Vec::new();
    for line in text.lines() {
        let [state, tres, elapsed, end] = line.split('|').collect::<Vec<_>>().try_into().ok()?;
        if end == "Unknown" || state.starts_with("RUNNING") || state.starts_with("PENDING") {
            return None;
        }
        let billing = tres.split(',').find_map(|one| one.strip_prefix("billing="));
        jobs.push(billing?.parse::<i64>().ok()? * elapsed.parse::<i64>().ok()?);
    }
    Some((jobs.len(), jobs.iter().sum()))
}

/// Charges as the service would after so many more days: the archive is as the program left it, only the clock is moved.
async fn charge_in(bank: &Bank, days: i64) -> usize {
    let config = Config::load(Some(bank.config())).unwrap();
    let store = Store::at(config.store()).await.unwrap();
    let (_stopper, shutdown) = shutdown::channel();
    let own = bank::Bank::open(Arc::new(config), store, "test".to_owned(), &shutdown).await;
    let then = Timestamp::new(bank::now().get() + days * DAY);
    let charged = own.charge_at(then).await.unwrap();
    own.store.close().await;
    assert_eq!(charged.unbilled, 0);
    charged.entries
}

/// What the ledger has charged an account, in billing-seconds.
async fn charged(bank: &Bank, account: &str) -> i64 {
    let config = Config::load(Some(bank.config())).unwrap();
    let store = Store::at(config.store()).await.unwrap();
    let entries = store.entries(account).await.unwrap();
    store.close().await;
    let charges = entries.iter().filter(|entry| entry.kind == Kind::Charge);
    -charges.map(|entry| entry.amount.seconds()).sum::<i64>()
}

#[tokio::test]
async fn the_charge_of_a_day_is_what_sacct_says_of_its_jobs() {
    let work = tokio::task::spawn_blocking(|| {
        let account = Account::new("bank-charge", USERS[0]);
        let bank = Bank::new(&format!("clusters = [{:?}]", cluster()));
        bank.done(&["insert", &account.name, "1000"]);
        let script = |end: &str| format!("#!/bin/sh\nsleep 3\n{end}\n");
        let jobs = [
            account.submit(&["-c", "1"], &script("exit 0")),
            account.submit(&["-c", "2"], &script("exit 3")),
            account.submit(&["-c", "1", "-t", "1"], &script("kill -9 $$")),
        ];
        let billed = wait::until("all of them have ended", PATIENCE, || {
            billed(&account.name).filter(|(count, _)| *count == jobs.len())
        });
        bank.collect(1);
        (account, bank, billed.1)
    });
    let (account, bank, billed) = work.await.unwrap();
    assert!(billed >= 12, "three jobs of three seconds on four CPUs: {billed}");
    // A day that is not over is not charged.
    charge_in(&bank, 0).await;
    let today = charged(&bank, &account.name).await;
    assert!(today < billed, "{today} of {billed} are of yesterday");
    charge_in(&bank, 1).await;
    assert_eq!(charged(&bank, &account.name).await, billed);
    // What was charged is not charged again.
    assert_eq!(charge_in(&bank, 2).await, 0);
    let work = tokio::task::spawn_blocking(move || {
        let history = bank.done(&["history", &account.name, "--json"]);
        assert!(history.contains("\"charge\""), "{history}");
        bank.info(&account.name)["ledger"]["charged"].as_f64().unwrap()
    });
    let shown = work.await.unwrap();
    #[allow(clippy::cast_precision_loss, reason = "a few seconds")]
    let hours = billed as f64 / 3600.0;
    assert!((shown - hours).abs() < 1e-6, "{shown} SUs, {hours} by sacct");
}
