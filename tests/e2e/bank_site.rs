//! The bank of a site: the service checks, Prometheus and the dashboard show it, the slurm user runs it, files of
//! slurm_su_bank come in.

use std::time::Duration;

use steward_tests::bank::{Account, Bank};
use steward_tests::dashboard::{dashboards, fill, must_answer};
use steward_tests::prometheus::Prometheus;
use steward_tests::service::Service;
use steward_tests::slurm;
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(180);

const SLEEP: &str = "#!/bin/sh\nsleep 900\n";

fn cluster() -> &'static str {
    Testbed::get().value("STEWARD_CLUSTER")
}

fn days_ago(days: u32) -> String {
    slurm::run("date", &["-u", "-d", &format!("-{days} days"), "+%F"]).trim().to_owned()
}

#[test]
fn the_service_holds_and_releases_by_itself_and_the_dashboard_shows_it() {
    let account = Account::new("bank-serve", USERS[0]);
    let name = account.name.as_str();
    let settings =
        format!("include = [{name:?}]\ndefault_allocation = 0\nclusters = [{:?}]", cluster());
    let bank = Bank::new(&settings);
    bank.done(&["insert", name, "0"]);
    bank.done(&["date", name, &days_ago(10)]);
    let job = account.submit(&["-t", "60"], SLEEP);
    job.wait_running();
    wait::until_true("slurmctld counts what was used", PATIENCE, || account.used() > 0);
    let store = bank.dir.path().join("steward.db");
    let archive = bank.dir.path().join("archive");
    let more = format!(
        "time_zone = \"UTC\"\n[archive]\ndirectory = {archive:?}\n[store]\npath = {store:?}\n\
         [bank]\nenabled = true\nschedule = \"* * * * *\"\n{settings}\n"
    );
    let service = Service::start(bank.dir.path(), "serve", &more);
    wait::until_true("the service holds it", PATIENCE, || {
        account.limit(cluster(), "GrpTRESRunMins") == "cpu=0"
    });
    let own = [("account", name)];
    let value = |metric: &str, labels: &[(&str, &str)]| service.metrics().value(metric, labels);
    wait::until_true("it is on the page", PATIENCE, || {
        value("steward_bank_held", &[("account", name), ("cluster", cluster())]) == Some(1.0)
    });
    assert_eq!(
        value("steward_bank_level_told", &[("account", name), ("level", "over")]),
        Some(1.0)
    );
    assert_eq!(value("steward_bank_limit_units", &own), Some(0.0));
    let history = bank.done(&["history", name, "--json"]);
    assert!(history.contains("steward serve"), "{history}");
    // Units come from a person; the hold goes with them, and the next check of the service agrees.
    assert!(bank.done(&["add", name, "1000"]).contains("released"));
    wait::until_true("the service saw it", PATIENCE, || {
        value("steward_bank_limit_units", &own) == Some(1000.0)
    });
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "");
    let prometheus = Prometheus::start(service.url());
    let board = dashboards().into_iter().find(|one| one.file == "bank.json").unwrap();
    let pending: Vec<(String, String)> = board
        .queries()
        .into_iter()
        .map(|query| {
            let value = |variable: &str| (variable == "account").then(|| name.to_owned());
            let text = fill(&query.text, value).unwrap_or_else(|e| panic!("{}: {e}", query.place));
            (query.place, text)
        })
        .collect();
    assert!(pending.len() > 10, "{pending:?}");
    must_answer(prometheus.url(), pending);
}

#[test]
fn the_slurm_user_can_do_all_of_it() {
    let account = Account::new("bank-slurm", USERS[1]);
    let name = account.name.as_str();
    let bank = Bank::new("default_allocation = 0\nat_limit = \"inclusive\"");
    let own = bank.dir.path().display().to_string();
    slurm::run("chown", &["slurm", &own]);
    let done = |args: &[&str]| {
        let ended = bank.run_as("slurm", args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.text
    };
    done(&["insert", name, "0"]);
    assert!(done(&["check", name]).contains("Held"));
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "cpu=0");
    assert!(done(&["add", name, "5"]).contains("released"));
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "");
    done(&["reset_usage", name]);
    done(&["renewal", name, "7"]);
    assert!(done(&["history", name]).contains("slurm"));
    // A user without rights is refused by Slurm: said, and nothing is believed to be held.
    slurm::run("chown", &["-R", USERS[1], &own]);
    assert_eq!(bank.run_as(USERS[1], &["change", name, "0"]).code, 0);
    let refused = bank.run_as(USERS[1], &["check", name]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.complaint.contains("AdminLevel"), "{refused:?}");
    assert_eq!(account.limit(cluster(), "GrpTRESRunMins"), "");
}

#[test]
fn accounts_of_slurm_su_bank_are_taken_over_with_their_holds() {
    let (held, free) = (Account::new("bank-old-a", USERS[0]), Account::new("bank-old-b", USERS[0]));
    // The testbed's accounts have other names than those of the files.
    let fixture = steward_tests::directory().join("fixtures/slurm-su-bank");
    let renamed = |text: String| text.replace("physics", &held.name).replace("test1", &free.name);
    let bank = Bank::new("");
    let dump = bank.dir.path().join("dump.json");
    let text = std::fs::read_to_string(fixture.join("dump.json")).unwrap();
    std::fs::write(&dump, renamed(text)).unwrap();
    let database = bank.dir.path().join("bank.db");
    std::fs::copy(fixture.join("slurm_bank.db"), &database).unwrap();
    let code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
                [db.execute('UPDATE sbank SET account = ? WHERE account = ?', pair) \
                 for pair in ((sys.argv[2], 'physics'), (sys.argv[3], 'test1'))]; db.commit()";
    let path = database.display().to_string();
    slurm::run("python3", &["-c", code, &path, &held.name, &free.name]);
    // As slurm_su_bank held it.
    held.set(cluster(), "GrpTRESMins=cpu=0");
    let said = bank.done(&["import", &path]);
    assert!(said.contains("4 accounts were taken over, 1 holds"), "{said}");
    assert_eq!(
        bank.done(&["get_sus", &held.name]),
        format!("Account {} has 20000 SUs\n", held.name)
    );
    assert!(bank.refused(1, &["import", &dump.display().to_string()]).contains("already"));
    let of_json = Bank::new("");
    of_json.done(&["import", &dump.display().to_string()]);
    let raw = |bank: &Bank| bank.done(&["list", "--format", "raw"]);
    assert_eq!(raw(&of_json), raw(&bank));
    // It has used nothing, so the first check releases what slurm_su_bank left.
    assert_eq!(held.limit(cluster(), "GrpTRESMins"), "cpu=0");
    let released = bank.done(&["release-hold", &held.name]);
    assert!(released.contains("released"), "{released}");
    assert_eq!(held.limit(cluster(), "GrpTRESMins"), "");
}

#[test]
fn what_accounts_below_used_is_told_apart() {
    let above = Account::new("bank-above", USERS[1]);
    let below = Account::new("bank-below", USERS[0]);
    let place = format!("account={}", below.name);
    let parent = format!("parent={}", above.name);
    slurm::run("sacctmgr", &["-i", "modify", "account", "where", &place, "set", &parent]);
    let bank = Bank::new("");
    bank.done(&["insert", &above.name, "10"]);
    let job = below.submit(&["-n", "2", "-t", "5"], "#!/bin/sh\nsleep 3\n");
    job.wait_ended(PATIENCE);
    wait::until_true("sshare counts it above, too", PATIENCE, || {
        above.used() > 0 && above.used() == below.used()
    });
    let usage = bank.done(&["usage", &above.name, "--format", "csv"]);
    let has = |account: &Account, user: &str| {
        let row = format!("{},{},{user},", cluster(), account.name);
        assert!(usage.lines().any(|line| line.contains(&row)), "{row} {usage}");
    };
    has(&above, "all");
    has(&above, USERS[1]);
    has(&below, "all");
    has(&below, USERS[0]);
    let info = bank.info(&above.name);
    let part = info["used_below"][&below.name].as_f64().unwrap();
    assert!(part > 0.0 && (part - info["used"].as_f64().unwrap()).abs() < 1e-9, "{info}");
    let said = bank.done(&["info", &above.name]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("Slurm's figure has: {} ", below.name)), "{said}");
}

#[test]
fn the_other_commands_do_what_they_say() {
    let account = Account::new("bank-more", USERS[2]);
    let name = account.name.as_str();
    let bank = Bank::new("");
    bank.done(&["insert", name, "10"]);
    assert_eq!(bank.done(&["refund", name, "3"]), format!("Account {name} has 13 SUs\n"));
    assert_eq!(bank.done(&["withdraw", name, "2"]), format!("Account {name} has 11 SUs\n"));
    // A job that has ended costs what its cores cost.
    let job = account.submit(&["-n", "2", "-t", "5"], "#!/bin/sh\nsleep 2\n");
    job.wait_ended(PATIENCE);
    wait::until_true("sacct knows its end", PATIENCE, || {
        let rate = bank.done(&["rate", &job.id]);
        rate.contains(&format!("account {name}: 2 SUs an hour")) && rate.contains("COMPLETED")
    });
    wait::until_true("sshare knows it, too", PATIENCE, || account.used() > 0);
    let usage = bank.done(&["usage", name, "--format", "csv"]);
    assert!(usage.lines().any(|line| line.contains(USERS[2])), "{usage}");
    bank.done(&["date", name, &days_ago(10)]);
    let forecast = bank.info(name)["forecast"].clone();
    assert!(forecast["units_per_day"].as_f64().unwrap() > 0.0, "{forecast}");
    let day = forecast["exhausted"].as_str().unwrap();
    assert!(bank.done(&["forecast", name]).contains(day), "{forecast}");
    let month = slurm::run("date", &["-u", "+%Y-%m"]);
    let statement = bank.done(&["statement", name, "--month", month.trim(), "--format", "csv"]);
    assert!(statement.contains(&format!("{name},")) && statement.contains("11"), "{statement}");
    // The end is enforced only where that is wanted.
    bank.done(&["date", name, &days_ago(400)]);
    let said = bank.done(&["check_end_of_date_limit", name]);
    assert!(said.contains("not enforced"), "{said}");
    bank.configure("enforce_end_date = true");
    let dry = bank.done(&["check-end-of-date-limit", name, "--dry-run"]);
    assert!(dry.contains("would expire") && dry.contains("set RawUsage=0"), "{dry}");
    let said = bank.done(&["check_end_of_date_limit", name]);
    assert!(said.contains("have expired"), "{said}");
    assert_eq!(bank.done(&["get_sus", name]), format!("Account {name} has 1 SUs\n"));
    assert!(account.used() < 5, "usage began anew");
    let kinds = bank.done(&["history", name, "--format", "csv"]);
    for kind in ["grant", "refund", "adjustment", "expiry"] {
        assert!(kinds.contains(&format!(",{kind},")), "{kind}: {kinds}");
    }
}
