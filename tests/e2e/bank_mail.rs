//! Mails of the bank: a real account, real jobs, a real mail server.

use std::time::{Duration, Instant};

use steward_tests::bank::{Account, Bank};
use steward_tests::slurm;
use steward_tests::smtp::Smtp;
use steward_tests::testbed::USERS;
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(150);

/// What an account may use, in SUs, and what a second of a job of it costs, in billing-seconds.
const LIMIT: u64 = 40;
const COST: u64 = 1000;

/// A quality of service that makes a second of a job count for many; it goes when it is dropped.
struct Dear(String);

impl Dear {
    fn new(account: &Account) -> Dear {
        let name = format!("stw-dear-{}", std::process::id());
        let factor = format!("UsageFactor={COST}");
        let (place, qos) = (format!("account={}", account.name), format!("qos+={name}"));
        // slurmctld hears of it a moment later, or, if it was too busy when slurmdbd told it, never.
        wait::until("slurmctld knows it", PATIENCE, || {
            slurm::run("sacctmgr", &["-i", "add", "qos", &name, &factor]);
            slurm::run("sacctmgr", &["-i", "modify", "account", "where", &place, "set", &qos]);
            let deadline = Instant::now() + PATIENCE / 5;
            while Instant::now() < deadline {
                if account.may_submit(&["-q", &name, "--wrap=true"]) {
                    return Some(());
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            slurm::run("sacctmgr", &["-i", "delete", "qos", &name]);
            None
        });
        Dear(name)
    }
}

impl Drop for Dear {
    fn drop(&mut self) {
        slurm::run("sacctmgr", &["-i", "delete", "qos", &self.0]);
    }
}

fn settings(smtp: &Smtp, mail: bool) -> String {
    format!(
        "mail = {mail}\n[mail]\nfrom = \"Steward <steward@hpc.example>\"\n\
         ask = \"help@hpc.example\"\n[mail.smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
         tls = \"none\"\n[mail.address]\nmethod = \"domain\"\ndomain = \"hpc.example\"\n",
        smtp.port()
    )
}

/// Recipients and subjects, sorted.
fn mails(smtp: &Smtp) -> Vec<(String, String)> {
    let of = |mail: &steward_tests::smtp::Mail, name| mail.header(name).unwrap_or_default();
    let mut all: Vec<_> =
        smtp.messages().iter().map(|mail| (of(mail, "X-RcptTo"), of(mail, "Subject"))).collect();
    all.sort();
    all
}

/// Lets a job of the account run until it has used so many percent of its limit, by what slurmctld counts.
fn burn(account: &Account, dear: &Dear, percent: u64) {
    let (before, wanted) = (account.used(), LIMIT * 3600 * percent / 100);
    let seconds = wanted.saturating_sub(before).div_ceil(COST);
    let script = format!("#!/bin/sh\nsleep {seconds}\n");
    let job = account.submit(&["-q", &dear.0, "-t", "10"], &script);
    job.wait_ended(PATIENCE);
    wait::until_true("slurmctld counts what was used", PATIENCE, || account.used() >= wanted);
}

#[test]
fn each_level_of_real_jobs_is_one_mail_to_the_coordinator() {
    let (smtp, account) = (Smtp::start(), Account::new("bank-mail", USERS[0]));
    account.coordinate(USERS[1]);
    let dear = Dear::new(&account);
    let name = account.name.as_str();
    let bank = Bank::new(&settings(&smtp, true));
    // A second bank looks at the same account and mails nobody.
    let silent = Bank::new(&settings(&smtp, false));
    for bank in [&bank, &silent] {
        bank.done(&["insert", name, &LIMIT.to_string()]);
    }
    let to = format!("{}@hpc.example", USERS[1]);
    let mut expected: Vec<(String, String)> = Vec::new();
    let flags = |bank: &Bank| {
        let info = bank.info(name);
        ["lower", "upper", "max"].map(|one| info[format!("{one}_limit_informed")] == true)
    };
    bank.done(&["check", name]);
    assert_eq!((mails(&smtp), flags(&bank)), (vec![], [false; 3]));
    // Between 60 and 90, between 90 and 100, above.
    for (percent, told, subject) in [
        (64, [true, false, false], "has used 6"),
        (93, [true, true, false], "has used 9"),
        (101, [true, true, true], "has used up its service units and is held"),
    ] {
        burn(&account, &dear, percent);
        // Killed at moments on the way; then to its end, twice.
        for millis in [20, 60, 120] {
            let mut child = bank.start(&["check", name]);
            std::thread::sleep(Duration::from_millis(millis));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for _ in 0..2 {
            let ended = bank.run(&["check", name]);
            // A kill while the server had the mail in its hands is told: nobody knows what became of it.
            assert!([0, 3].contains(&ended.code), "{ended:?}");
        }
        let now = mails(&smtp);
        assert_eq!(now.len(), expected.len() + 1, "{percent} %: {now:?}");
        let new: Vec<_> = now.iter().filter(|one| !expected.contains(one)).collect();
        assert!(new[0].0 == to && new[0].1.contains(subject), "{percent} %: {new:?}");
        assert_eq!(flags(&bank), told, "{percent} %");
        silent.done(&["check", name]);
        assert_eq!((flags(&silent), mails(&smtp).len()), (told, now.len()), "mail is off");
        expected = now;
    }
    let held = smtp
        .messages()
        .into_iter()
        .find(|mail| mail.header("Subject").is_some_and(|subject| subject.ends_with("is held")));
    let held = held.unwrap().parsed();
    let part = |kind: &str| {
        let parts = held["parts"].as_array().unwrap();
        parts.iter().find(|part| part["type"] == kind).unwrap()["text"].as_str().unwrap().to_owned()
    };
    let text = part("text/plain").replace('\n', " ");
    for words in [name, "Jobs that run go on.", "can be submitted, but wait", "help@hpc.example"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(part("text/html").contains(name));
    // Dumps show the flags, too.
    let file = silent.dir.path().join("dump.csv");
    silent.done(&["dump_csv", &file.display().to_string()]);
    let dump = std::fs::read_to_string(file).unwrap();
    assert!(dump.ends_with(",True,True,True\r\n"), "{dump}");
    // The end comes near; that is told once, too.
    let today = silent.info(name)["start"].as_str().unwrap().to_owned();
    let start = slurm::run("date", &["-d", &format!("{today} -300 days"), "+%F"]);
    bank.done(&["date", name, start.trim()]);
    for _ in 0..2 {
        bank.done(&["three_month_check", name]);
        let now = mails(&smtp);
        assert_eq!(now.len(), expected.len() + 1, "{now:?}");
        let subject = format!("The proposal of account {name} ends on");
        assert!(now.iter().any(|(_, one)| one.starts_with(&subject)), "{now:?}");
    }
    assert_eq!(bank.info(name)["end_informed"], true);
}

#[test]
fn a_month_of_the_ledger_is_one_statement() {
    let (smtp, account) = (Smtp::start(), Account::new("bank-month", USERS[0]));
    account.coordinate(USERS[2]);
    let bank = Bank::new(&format!("include = [{:?}]\n{}", account.name, settings(&smtp, true)));
    bank.done(&["insert", &account.name, "500", "--reason", "as it was"]);
    let day: u32 = slurm::run("date", &["-u", "+%d"]).trim().parse().unwrap();
    // What was written now is of the last month when the month is over; the ledger cannot wait for that.
    let database = bank.dir.path().join("steward.db");
    let code = "import sqlite3, sys, time; db = sqlite3.connect(sys.argv[1]); \
                db.execute('UPDATE bank_entry SET made_at = ?', (int(time.time()) - 32 * 86400,)); \
                db.commit()";
    slurm::run("python3", &["-c", code, &database.display().to_string()]);
    // On the first day of a month the last day before is not charged yet.
    let expected = usize::from(day > 1);
    // Without its jobs a month would be told as one in which nothing was used.
    let early = bank.run(&["check", "--all"]);
    assert_eq!(early.complaint.contains("statements wait"), expected == 1, "{early:?}");
    assert_eq!(mails(&smtp), []);
    bank.collect(32);
    for _ in 0..2 {
        bank.done(&["check", "--all"]);
    }
    let now = mails(&smtp);
    assert_eq!(now.len(), expected, "{now:?}");
    for (to, subject) in now {
        assert_eq!(to, format!("{}@hpc.example", USERS[2]));
        let begin = format!("Account {}: service units of ", account.name);
        assert!(subject.starts_with(&begin), "{subject}");
    }
}
