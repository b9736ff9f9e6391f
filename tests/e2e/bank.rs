//! The bank on a real Slurm: vectors of slurm_su_bank, holds of real jobs, many at once.

use std::time::Duration;

use steward_tests::bank::{Account, Bank};
use steward_tests::postgres::Postgres;
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::wait;

/// slurmctld adds up usage once a minute.
const USAGE: Duration = Duration::from_secs(150);

const SLEEP: &str = "#!/bin/sh\nsleep 900\n";

fn cluster() -> &'static str {
    Testbed::get().value("STEWARD_CLUSTER")
}

#[test]
fn b1_to_b4_and_b20_b21_accounts_as_slurm_su_bank_has_them() {
    let bank = Bank::new("");
    let account = Account::new("bank-one", USERS[0]);
    let name = account.name.as_str();
    assert_eq!(bank.done(&["insert", name, "10000"]), format!("Account {name} has 10000 SUs\n"));
    assert!(bank.refused(1, &["insert", name, "10000"]).contains("already exists"), "B1");
    let today = steward_tests::slurm::run("date", &["+%F"]);
    let raw = bank.done(&["list", "--format", "raw"]);
    assert_eq!(raw, format!("1|{name}|10000|{today}|0|0|0\n"));
    for (amount, word) in [("0", "too small"), ("abc", "whole number"), ("1.5", "whole number")] {
        assert!(bank.refused(2, &["modify", name, amount]).contains(word), "B2 {amount}");
    }
    bank.done(&["modify", name, "-1"]);
    assert_eq!(bank.done(&["get-sus", name]), format!("Account {name} has -1 SUs\n"), "B2");
    bank.done(&["modify", name, "10000"]);
    bank.done(&["add", name, "500"]);
    assert_eq!(bank.done(&["get_sus", name]), format!("Account {name} has 10500 SUs\n"), "B3");
    assert!(bank.refused(2, &["add", name, "-1"]).contains("insert and modify only"), "B4");
    bank.done(&["withdraw", name, "500"]);
    for (args, word) in [
        (&["add", "stw-nosuch", "5"][..], "not in the bank"),
        (&["check_service_units_limit", "stw-nosuch"][..], "not in the bank"),
        (&["insert", "stw-nosuch", "5"][..], "Slurm knows no account"),
        (&["change", name, "-1"][..], "insert and modify only"),
        (&["renewal", name, "-1"][..], "insert and modify only"),
        (&["withdraw", name, "-5"][..], "not an amount"),
        (&["refund", name, "0"][..], "not an amount"),
        (&["date", name, "2026-02-30"][..], "not a day of the calendar"),
        (&["statement", "--month", "October"][..], "such as 2026-10"),
        (&["statement", "--month", "9998-12"][..], "still to come"),
        (&["insert", "root", "5"][..], "bank.exclude"),
        (&["rate", "4000000000"][..], "not known"),
        (&["import", "/nonexistent/bank.db"][..], "/nonexistent/bank.db"),
        (&["add", name, "99999999999999999999"][..], "more than can be counted"),
        (&["add", name, "1000000000000"][..], "more SUs than can be counted"),
        (&["date", name, "16.11.2026"][..], "not a day of the calendar"),
        (&["date", name, "9999-01-01"][..], "future"),
        (&["transfer", name, name, "5"][..], "two accounts"),
        (&["add", name, "5", "--cluster", "nosuch"][..], "on nosuch"),
        (&["modify", name, "5", "--cluster", "nosuch"][..], "on nosuch"),
        (&["date", name, "9999-01-01", "--dry-run"][..], "future"),
        (&["rate", "0"][..], "0 is not in"),
    ] {
        let said = bank.refused(2, args);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert!(bank.refused(1, &["withdraw", name, "10001"]).contains("less than 10001"));
    let other = Account::new("bank-none", USERS[0]);
    bank.configure(&format!("include = [{name:?}, {:?}]", other.name));
    let all = bank.done(&["check", "--all"]);
    assert!(all.ends_with(&format!("Not in the bank: 1 account ({})\n", other.name)), "{all}");
    let file = bank.dir.path().join("dump.json");
    let path = file.display().to_string();
    bank.done(&["dump_json", &path]);
    bank.refused(1, &["dump_json", &path]);
    let dump: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(dump["results"][0]["su_limit_hrs"], 10000);
    bank.done(&["add", name, "7"]);
    assert!(bank.refused(2, &["repopulate_json", &path, "--yes"]).contains("bank.backup"));
    let backup = bank.dir.path().join("backup.json");
    bank.configure(&format!("backup = {backup:?}"));
    let whole = std::fs::read_to_string(&file).unwrap();
    let half = bank.dir.path().join("half.json");
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let said = bank.refused(2, &["repopulate_json", &half.display().to_string(), "--yes"]);
    assert!(said.contains("nothing was changed") && !backup.exists(), "{said}");
    assert_eq!(bank.done(&["get_sus", name]), format!("Account {name} has 10007 SUs\n"));
    bank.done(&["repopulate_json", &path, "--yes"]);
    assert_eq!(bank.done(&["get_sus", name]), format!("Account {name} has 10000 SUs\n"), "B20");
    assert!(std::fs::read_to_string(&backup).unwrap().contains("10007"));
    let history = bank.done(&["history", name, "--json"]);
    let history: serde_json::Value = serde_json::from_str(&history).unwrap();
    let entries = history["entries"].as_array().unwrap();
    assert!(entries.iter().all(|one| one["actor"] == "root" && one["reason"] != ""), "{history}");
    assert!(entries.iter().any(|one| one["reason"] == "repopulate_json"), "{history}");
}

#[test]
fn an_account_whose_jobs_burn_past_its_limit_is_held_and_runs_again_when_it_may() {
    let bank = Bank::new("default_allocation = 0");
    let account = Account::new("bank-burn", USERS[1]);
    let name = account.name.as_str();
    // A limit that is its own.
    account.set(cluster(), "GrpTRESRunMins=cpu=77777");
    bank.done(&["insert", name, "0"]);
    let running = account.submit(&["-t", "60"], SLEEP);
    running.wait_running();
    let calm = bank.done(&["check", name]);
    assert!(!calm.contains("held"), "nothing was used: {calm}");
    wait::until_true("slurmctld counts what was used", USAGE, || account.used() > 0);
    let dry = bank.done(&["check", name, "--dry-run"]);
    let order = format!(
        "sacctmgr -i modify account where account={name} cluster={} set GrpTRESRunMins=cpu=0",
        cluster()
    );
    assert!(dry.contains(&order) && dry.contains("running jobs go on"), "{dry}");
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "cpu=77777");
    let held = bank.done(&["check", name]);
    assert!(held.contains("Held") && held.contains(&order), "{held}");
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "cpu=0");
    let again = bank.done(&["check", name]);
    assert!(!again.contains("Held") && again.contains("held on"), "B13: {again}");
    let waiting = account.submit(&["-t", "60"], SLEEP);
    let reason = || steward_tests::slurm::run("squeue", &["-h", "-j", &waiting.id, "-o", "%T %r"]);
    wait::until_true("the new job waits", USAGE, || {
        reason() == "PENDING AssocGrpCPURunMinutesLimit"
    });
    assert_eq!(running.state(), "RUNNING");
    let info = bank.info(name);
    assert_eq!((&info["level"], &info["max_limit_informed"]), (&"over".into(), &true.into()));
    assert_eq!(info["held"][0]["before"], "GrpTRESRunMins=cpu=77777");
    assert!(bank.refused(1, &["release_hold", name]).contains("stays held"), "B14");
    let dry = bank.done(&["add", name, "1000", "--dry-run"]);
    let back = order.replace("cpu=0", "cpu=77777");
    assert!(dry.contains("would enter grant of 1000 SUs") && dry.contains(&back), "{dry}");
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "cpu=0");
    let released = bank.done(&["add", name, "1000", "--reason", "ticket 4711"]);
    assert!(released.contains("released"), "B15: {released}");
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "cpu=77777", "its own limit is back");
    let history: serde_json::Value =
        serde_json::from_str(&bank.done(&["history", name, "--json"])).unwrap();
    let told: Vec<&str> = history["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["command"].as_str().unwrap())
        .collect();
    assert_eq!(told, [order.as_str(), back.as_str()], "every action is recorded");
    waiting.wait_running();
    assert!(bank.refused(1, &["release_hold", name]).contains("no hold"), "only the bank's");
    // The job's weight is that of its CPU.
    let rate = bank.done(&["rate", &running.id]);
    assert!(rate.contains("1 SUs an hour"), "{rate}");
    let tree = bank.done(&["tree"]);
    assert!(tree.contains(name) && tree.contains("cpu=77777"), "{tree}");
    bank.done(&["reset_usage", name]);
    assert!(account.used() < 60, "usage began anew: {}", account.used());
}

/// Adds and moves units from eight processes at a time, so often each, and holds the sums against what was done.
fn add_up(bank: &Bank, names: [&str; 2], each: u32) {
    let accounts = names.map(|name| Account::new(name, USERS[2]));
    let [one, two] = [&accounts[0].name, &accounts[1].name];
    bank.done(&["insert", one, "100000"]);
    bank.done(&["insert", two, "100000"]);
    std::thread::scope(|scope| {
        for worker in 0..8_u32 {
            scope.spawn(move || {
                for turn in 0..each {
                    let done = match (worker + turn) % 4 {
                        0 | 1 => bank.done(&["add", one, "3"]),
                        2 => bank.done(&["transfer", one, two, "5"]),
                        _ => bank.done(&["transfer", two, one, "2"]),
                    };
                    assert!(done.contains("has"), "{done}");
                }
            });
        }
    });
    let quarter = 8 * each / 4;
    let sus = |account: &str| bank.done(&["get_sus", account]);
    let first = 100_000 + 2 * quarter * 3 - quarter * 5 + quarter * 2;
    assert_eq!(sus(one), format!("Account {one} has {first} SUs\n"));
    let second = 100_000 + quarter * 5 - quarter * 2;
    assert_eq!(sus(two), format!("Account {two} has {second} SUs\n"));
    let history: serde_json::Value =
        serde_json::from_str(&bank.done(&["history", one, "--json"])).unwrap();
    let entries = history["entries"].as_array().unwrap().len();
    assert_eq!(entries, usize::try_from(1 + 8 * each).unwrap());
}

#[test]
fn a_thousand_changes_from_eight_at_once_add_up_exactly() {
    add_up(&Bank::new(""), ["bank-a", "bank-b"], 125);
}

#[test]
fn many_changes_at_once_add_up_on_postgresql_too() {
    let postgres = Postgres::start();
    let (url, file) = (postgres.url(), postgres.password_file());
    let bank = Bank::with_store("", &format!("url = {url:?}\npassword_file = {file:?}"));
    add_up(&bank, ["bank-c", "bank-d"], 24);
}
