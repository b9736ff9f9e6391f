//! Notices and programs that die: killed at any moment, and while the mail server has a mail in its hands.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use steward_tests::wait;

use crate::notices::{ALWAYS, EMAIL, PATIENCE, Site, command, wasteful};

/// Killed at any moment and run again: nobody gets two mails, and whoever got none is listed.
#[test]
fn two_hundred_kills_give_nobody_two_mails() {
    const KILLS: usize = 200;
    let site = Site::new();
    wasteful(&site);
    site.configure("measure", ALWAYS);
    let began = Instant::now();
    site.email(&[]);
    let mut whole = began.elapsed();
    assert_eq!(site.recipients().len(), 3);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut killed = 0;
    let mut rounds = 0;
    let mut ends = Vec::new();
    while killed < KILLS && rounds < 2 * KILLS {
        let config = site.path(&format!("round-{rounds}.toml"));
        // The sender tells the rounds apart.
        let settings = site
            .settings(&format!("state-{rounds}"), ALWAYS)
            .replace("steward@hpc.example", &format!("round-{rounds}@hpc.example"));
        std::fs::write(&config, settings).unwrap();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let share = u32::try_from(random % 1000).unwrap();
        // Most of a run is the evaluation: half of the kills are among its last third.
        let at = if rounds % 2 == 0 { share } else { 667 + share / 3 };
        killed += usize::from(kill_at(&config, at, &mut whole));
        // The next run of it; two at a time, as there are cores.
        ends.push((config.clone(), again(&config).spawn().unwrap()));
        if ends.len() >= 2 {
            finish(&mut ends);
        }
        rounds += 1;
    }
    finish(&mut ends);
    let lost = check_rounds(&site, rounds);
    println!("{killed} of {rounds} killed, {lost} of {} mails lost and listed", 3 * rounds);
    assert_eq!(killed, KILLS);
}

/// Starts a run and kills it after so many thousandths of the time that one takes; whether it was
/// still running. A run that was quicker says how long they take now.
fn kill_at(config: &Path, thousandths: u32, whole: &mut Duration) -> bool {
    let mut child = again(config).spawn().unwrap();
    let began = Instant::now();
    let due = *whole * thousandths / 1000;
    while began.elapsed() < due {
        if child.try_wait().unwrap().is_some() {
            *whole = began.elapsed();
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let running = child.try_wait().unwrap().is_none();
    drop(child.kill());
    child.wait().unwrap();
    running
}

/// Of every round each user has one mail, or none and it is listed; gives how many have none.
fn check_rounds(site: &Site, rounds: usize) -> usize {
    let mut came: HashMap<(String, String), usize> = HashMap::new();
    for mail in site.mail.messages() {
        let of = |name: &str| mail.header(name).unwrap();
        *came.entry((of("X-MailFrom"), of("X-RcptTo"))).or_default() += 1;
    }
    let mut none = 0;
    for round in 0..rounds {
        for user in ["stw-alice", "stw-bob", "stw-carol"] {
            let (from, to) = (format!("round-{round}@hpc.example"), format!("{user}@hpc.example"));
            match came.get(&(from, to.clone())).copied().unwrap_or(0) {
                1 => {}
                0 => {
                    none += 1;
                    let config = site.path(&format!("round-{round}.toml"));
                    let done = command(&config, &["notices", "--json"]).output().unwrap();
                    let listed: Value = serde_json::from_slice(&done.stdout).unwrap();
                    let open = listed["open"].as_array().unwrap();
                    let is = |one: &Value| one["address"] == *to;
                    assert!(open.iter().any(is), "{round} {user}: {listed}");
                }
                more => panic!("round {round}: {more} mails to {user}"),
            }
        }
    }
    none
}

fn again(config: &Path) -> Command {
    let mut command = command(config, &EMAIL);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn finish(runs: &mut Vec<(std::path::PathBuf, Child)>) {
    for (config, mut child) in runs.drain(..) {
        let status = child.wait().unwrap();
        assert!(
            status.code().is_some_and(|code| code == 0 || code == 3),
            "{}: {status}",
            config.display()
        );
    }
}

/// The server has the mail and has not said so when the program is killed: nobody knows. It counts as
/// sent and the administrators hear of it, or it goes again under the same name.
#[test]
fn a_mail_of_which_nobody_knows_counts_as_sent_or_goes_again_under_the_same_name() {
    let site = Site::new();
    wasteful(&site);
    for (after, copies) in [("counts-as-sent", 1), ("send-again", 2)] {
        let more = format!("{ALWAYS}after_crash = \"{after}\"\n");
        let sender = format!("{after}@hpc.example");
        let settings = site
            .settings(after, &more)
            .replace("steward@hpc.example", &sender)
            .replace("timeout = \"5s\"", "timeout = \"3s\"");
        std::fs::write(site.config(), &settings).unwrap();
        site.mail.stall();
        let mut child = again(&site.config()).spawn().unwrap();
        wait::until_true("the server has one", PATIENCE, || {
            site.mail
                .messages()
                .iter()
                .any(|mail| mail.header("X-MailFrom").as_ref() == Some(&sender))
        });
        child.kill().unwrap();
        child.wait().unwrap();
        site.mail.forgive();
        let told = "admins = [\"root@hpc.example\"]\n[mail.smtp]";
        std::fs::write(site.config(), settings.replace("[mail.smtp]", told)).unwrap();
        // Six steps of a dialogue, three seconds each, and ten.
        std::thread::sleep(Duration::from_secs(30));
        let answer = site.email(&[]);
        let of = |role: &dyn Fn(&str) -> bool| -> Vec<String> {
            let own = |mail: &&steward_tests::smtp::Mail| {
                mail.header("X-MailFrom").as_ref() == Some(&sender)
                    && role(&mail.header("X-RcptTo").unwrap())
            };
            site.mail
                .messages()
                .iter()
                .filter(own)
                .map(|m| m.header("Message-ID").unwrap())
                .collect()
        };
        let to_users = of(&|to| to != "root@hpc.example");
        let mut names = to_users.clone();
        names.sort();
        names.dedup();
        assert_eq!((to_users.len(), names.len()), (2 + copies, 3), "{after}: {to_users:?}");
        let unknown = answer["notices"]["open"].as_array().unwrap().len();
        assert_eq!(unknown, 2 - copies, "{}", answer["notices"]);
        // A word about the one mail that nobody knows of.
        assert_eq!(of(&|to| to == "root@hpc.example").len(), 2 - copies, "{after}");
    }
}
